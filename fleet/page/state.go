package page

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/evidence/suppress"
	"diagnose/reports"
)

// The bounds of a state.
const (
	// mostEntries bounds the entries that are shown, the newest of the corpus.
	mostEntries = 200_000
	// fresh is how long a state is served without a look at the database.
	fresh = time.Second
	// stale is how long a state is served at most: two changes within the resolution of the file
	// system's clock have one Revision.
	stale = time.Minute
)

// state is what a corpus has at a moment. It is not changed after it was made.
type state struct {
	made, looked time.Time
	revision     corpus.Revision
	// entries are those that no suppression hides, the newest first. Left counts the older ones
	// beyond mostEntries, Hidden the suppressed ones.
	entries      []corpus.Entry
	byID         map[string]int
	left, hidden int
	// causes are the clusters, the most severe first.
	causes   []cause
	byDigest map[string]*cause
	tickets  map[string][]corpus.Ticket
}

// cause is a cluster, with the texts that may be shown.
type cause struct {
	corpus.Cluster
	Tickets []corpus.Ticket
	// Hosts and Versions are the different ones of its failures.
	Versions int
	Hosts    int
	// text is what a search looks at, in lower case.
	text string
}

// keeper holds the present state of a corpus.
type keeper struct {
	corpus *corpus.Corpus
	known  *suppress.List
	redact *reports.Redaction
	now    func() time.Time

	mu   sync.Mutex
	last *state
	// followed says that follow keeps last up to date.
	followed bool
}

// state returns the state of the corpus: the last one if it is followed, else one that is looked
// for now. One request at a time makes a new one if the corpus was changed.
func (k *keeper) state(ctx context.Context) (*state, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != nil && (k.followed || k.now().Sub(k.last.looked) < fresh) {
		return k.last, nil
	}
	next, err := k.next(ctx, k.last)
	if err == nil {
		k.last = next
	}
	return next, err
}

// next returns the state after another one, which may be nil: the same if the corpus was not changed.
func (k *keeper) next(ctx context.Context, last *state) (*state, error) {
	now := k.now()
	revision, err := k.corpus.Revision()
	if err != nil {
		return nil, err
	}
	if last != nil && last.revision == revision && now.Sub(last.made) < stale {
		same := *last
		same.looked = now
		return &same, nil
	}
	s, err := k.read(ctx, now)
	if err != nil {
		return nil, err
	}
	s.revision = revision // from before the read: a later change is seen the next time
	return s, nil
}

// follow looks for changes until ctx ends, so that no request waits for a large corpus to be read. A
// corpus that is changed all the time costs a tenth of a processor. An error is told once; the last
// state stays.
func (k *keeper) follow(ctx context.Context, tell func(error)) {
	told := ""
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		k.mu.Lock()
		last := k.last
		k.mu.Unlock()
		began := time.Now()
		next, err := k.next(ctx, last)
		pause = max(fresh, 9*time.Since(began))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if err.Error() != told {
				tell(err)
			}
			told = err.Error()
			continue
		}
		told = ""
		k.mu.Lock()
		if k.last == last { // else a label was changed meanwhile, which the next look sees
			k.last = next
		}
		k.followed = true
		k.mu.Unlock()
	}
}

// relabel gives an entry other labels in the present state, which the database already has.
func (k *keeper) relabel(id string, set map[string]string, remove []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		return
	}
	i, ok := k.last.byID[id]
	if !ok {
		return
	}
	next := *k.last
	next.revision = corpus.Revision{} // all that follows from labels is made again
	next.entries = slices.Clone(next.entries)
	e := &next.entries[i]
	labels := map[string]string{}
	maps.Copy(labels, e.Labels)
	for _, key := range remove {
		delete(labels, key)
	}
	maps.Copy(labels, set)
	e.Labels = labels
	k.last = &next
}

func (k *keeper) read(ctx context.Context, now time.Time) (*state, error) {
	all, err := k.corpus.List(ctx, corpus.Filter{Dropped: true})
	if err != nil {
		return nil, err
	}
	s := &state{made: now, looked: now, byID: map[string]int{}, byDigest: map[string]*cause{}}
	if len(all) > mostEntries {
		s.left, all = len(all)-mostEntries, all[:mostEntries]
	}
	if s.entries, err = nightly.NewSuppressed(k.corpus, k.known, now).Without(ctx, all, now); err != nil {
		return nil, err
	}
	s.hidden = len(all) - len(s.entries)
	for i := range s.entries {
		s.byID[s.entries[i].ID] = i
	}
	clusters, err := k.corpus.ClustersOf(ctx, slices.DeleteFunc(slices.Clone(s.entries), func(e corpus.Entry) bool { return e.Passed }))
	if err != nil {
		return nil, err
	}
	if s.tickets, err = k.corpus.Tickets(ctx); err != nil {
		return nil, err
	}
	k.describe(s, clusters)
	return s, nil
}

// describe sets the causes.
func (k *keeper) describe(s *state, clusters []corpus.Cluster) {
	d := k.redact.Redactor()
	for i := range clusters {
		for _, text := range []string{clusters[i].Summary, clusters[i].Program, clusters[i].Note} {
			d.Learn(text)
		}
	}
	for _, g := range clusters {
		c := cause{Cluster: g, Tickets: s.tickets[g.Digest]}
		c.Summary, c.Program, c.Note = d.Text(g.Summary), d.Text(g.Program), d.Text(g.Note)
		c.Lines = slices.Clone(g.Lines)
		for i := range c.Lines {
			c.Lines[i] = d.Source(c.Lines[i])
		}
		versions, hosts := map[string]bool{}, map[string]bool{}
		for i := range g.Entries {
			versions[versionOf(&g.Entries[i])], hosts[g.Entries[i].Labels[hostLabel]] = true, true
		}
		delete(versions, "")
		delete(hosts, "")
		c.Versions, c.Hosts = len(versions), len(hosts)
		c.text = searchText(&c, versions, hosts)
		s.causes = append(s.causes, c)
	}
	slices.SortStableFunc(s.causes, func(a, b cause) int {
		return cmp.Or(b.Estimate.Rank()-a.Estimate.Rank(), b.Count-a.Count, b.Last.Compare(a.Last))
	})
	for i := range s.causes {
		s.byDigest[s.causes[i].Digest] = &s.causes[i]
	}
}

// mostSearchText bounds what a search looks at of one cause, in bytes.
const mostSearchText = 64 << 10

func searchText(c *cause, sets ...map[string]bool) string {
	var b strings.Builder
	add := func(list ...string) {
		for _, t := range list {
			if b.Len() < mostSearchText {
				b.WriteString(strings.ToLower(reports.Span(t)))
				b.WriteByte('\n')
			}
		}
	}
	add(c.Digest, c.Kind, c.Program, c.Summary, c.Note, string(c.Class))
	add(c.Lines...)
	for _, t := range c.Tickets {
		add(t.Issue, t.URL)
	}
	for _, set := range sets {
		for v := range set {
			add(v)
		}
	}
	return b.String()
}

// The labels that have pages of their own.
const (
	hostLabel    = "host"
	versionLabel = "version"
	commitLabel  = "commit"
	testLabel    = "test"
	runsLabel    = "runs"
	failedLabel  = "failed"
	jobLabel     = "job"
)

// versionOf is the version of a failure's program: its label, or else its build-id.
func versionOf(e *corpus.Entry) string {
	if v := e.Labels[versionLabel]; v != "" {
		return v
	}
	return e.BuildID
}

// clusterOf is the digest of an entry's cause; "" before a diagnosis.
func clusterOf(e *corpus.Entry) string {
	if e.Diagnosis == nil {
		return ""
	}
	return e.Diagnosis.Cluster()
}
