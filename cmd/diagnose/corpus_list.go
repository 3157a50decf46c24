package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/evidence/suppress"
	"diagnose/internal/wording"
	"diagnose/reports"
)

// corpusVersion is the version of the JSON of list and show. reports/schema/corpus-1.json describes
// it.
const corpusVersion = "1.3"

// shownCorpus is the JSON of list and show.
type shownCorpus struct {
	// Version of this form, MAJOR.MINOR.
	Version string `json:"version"`
	// Corpus is its directory.
	Corpus string `json:"corpus"`
	// Entries are failures, the newest first; Clusters those with one cause, the most
	// frequent first. One of the two is asked for.
	Entries  []shownEntry     `json:"entries,omitempty"`
	Clusters []corpus.Cluster `json:"clusters,omitempty"`
	// Suppressed counts the failures that a suppression keeps from Entries.
	Suppressed int `json:"suppressed,omitempty"`
}

// shownEntry is an entry with the fields that show adds.
type shownEntry struct {
	corpus.Entry
	// Path is where its files are.
	Path string `json:"path"`
	// Diagnoses are all diagnoses, the earliest first. History lists the changes of the entry. Only
	// show has the two.
	Diagnoses []corpus.Diagnosis `json:"diagnoses,omitempty"`
	History   []corpus.Event     `json:"history,omitempty"`
}

type corpusListFlags struct {
	corpusFlags
	suppressFlag
	filter   corpus.Filter
	since    days
	clusters bool
}

func newCorpusList() *cobra.Command {
	f := &corpusListFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the failures, or the clusters with one cause",
		Long: `list shows the failures of the corpus with their diagnoses, the newest first. --clusters shows what they have in common instead: failures that replays
found one cause of, whatever their stacks, or that failed with one stack where no
cause is known.
` + corpusExitHelp,
		Example: `  diagnose corpus list --since 7d --label host=ci-7
  diagnose corpus list --clusters
  diagnose corpus list --cluster 9a4f20c1`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.listEntries(c) },
	}
	f.register(c)
	f.registerFilter(c)
	c.Flags().BoolVar(&f.filter.Dropped, "all", false, "those as well that are suppressed, or whose files gc has removed")
	f.registerSuppressions(c)
	c.Flags().BoolVar(&f.clusters, "clusters", false, "list clusters")
	f.registerFormat(c)
	return c
}

func (f *corpusListFlags) registerFilter(c *cobra.Command) {
	f.registerLabels(c, "`key=value` that entries must have; may be repeated")
	flags := c.Flags()
	flags.StringVar(&f.filter.Program, "program", "", "`name` of the executable")
	flags.StringVar(&f.filter.Cluster, "cluster", "", "`cluster` that they belong to, or a beginning of its name")
	flags.Var(&f.since, "since", "what failed within this `time`, as in 12h or 7d")
	for _, name := range []string{"program", "cluster", "since"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

// chosen returns the filter that the flags describe.
func (f *corpusListFlags) chosen() (corpus.Filter, error) {
	var err error
	f.filter.Labels, err = f.parsedLabels()
	if f.since > 0 {
		f.filter.Since = time.Now().Add(-time.Duration(f.since))
	}
	return f.filter, err
}

func (f *corpusListFlags) listEntries(c *cobra.Command) error {
	filter, err := f.chosen()
	err = cmp.Or(err, f.checkRedact())
	if err == nil && f.clusters && (len(f.labels) > 0 || filter.Program != "" || filter.Cluster != "" || f.since > 0) {
		err = usagef("--clusters lists all of them, and goes with no other choice (see '%s --help')", c.CommandPath())
	}
	if err != nil {
		return err
	}
	known, err := f.readSuppressions()
	if err != nil {
		return err
	}
	return f.with(c, corpus.Open, func(store *corpus.Corpus) error {
		shown := shownCorpus{Version: corpusVersion, Corpus: store.Dir}
		if f.clusters {
			shown.Clusters, err = store.Clusters(c.Context())
			return f.emit(c, &shown, err, clusterTable)
		}
		entries, err := store.List(c.Context(), filter)
		if err == nil && !filter.Dropped {
			entries, shown.Suppressed, err = unsuppressed(c.Context(), store, entries, known)
		}
		for _, e := range entries {
			shown.Entries = append(shown.Entries, shownEntry{Entry: e, Path: store.EntryDir(e.ID)})
		}
		if err == nil && len(entries) == 0 {
			return f.nothing(c, store, &shown)
		}
		return f.emit(c, &shown, err, entryTable)
	})
}

// unsuppressed returns the entries that no suppression hides, and how many it hides.
func unsuppressed(ctx context.Context, store *corpus.Corpus, entries []corpus.Entry, known *suppress.List) ([]corpus.Entry, int, error) {
	kept, err := nightly.NewSuppressed(store, known, time.Now()).Without(ctx, entries, time.Time{})
	return kept, len(entries) - len(kept), err
}

// nothing tells a user whose filter matches no failure which values there are.
func (f *corpusListFlags) nothing(c *cobra.Command, store *corpus.Corpus, shown *shownCorpus) error {
	all, err := store.List(c.Context(), corpus.Filter{Dropped: true})
	return f.emit(c, shown, err, func(out *reports.Listing, _ *shownCorpus) {
		text := "no failures"
		if len(all) > 0 {
			var programs []string
			for i := range all {
				programs = append(programs, all[i].Name())
			}
			slices.Sort(programs)
			text += fmt.Sprintf(" are as chosen; the corpus has %d, of %s", len(all), cut(strings.Join(slices.Compact(programs), ", ")))
		}
		out.Line("%s", text)
		tellSuppressed(out, shown)
	})
}

func (f *corpusFlags) emit(c *cobra.Command, shown *shownCorpus, err error, text func(*reports.Listing, *shownCorpus)) error {
	if err != nil {
		return err
	}
	asJSON := f.format == string(reports.JSON)
	return f.show(c.OutOrStdout(), asJSON, func(w io.Writer) error {
		if asJSON {
			return reports.WriteJSON(w, shown)
		}
		out := &reports.Listing{}
		text(out, shown)
		return out.WriteText(w)
	})
}

// shortID is how many characters of a name lists show.
const shortID = 12

func entryTable(out *reports.Listing, shown *shownCorpus) {
	var rows [][]string
	for i := range shown.Entries {
		e := &shown.Entries[i]
		state, cluster := "not diagnosed yet", ""
		switch d := e.Diagnosis; {
		case e.Passed:
			state = "passed"
		case d == nil:
		case d.Diagnosed:
			state, cluster = d.Kind+", "+d.Proof, d.Cluster()[:min(shortID, len(d.Cluster()))]
		default:
			state = "not diagnosed: " + d.Reason
		}
		rows = append(rows, []string{e.ID[:min(shortID, len(e.ID))], e.FailedAt.Local().Format(time.DateTime), e.Name(), e.Ended, cluster, cut(state), labelText(e.Labels)})
	}
	out.Table([]reports.Column{{Name: "Entry"}, {Name: "Failed"}, {Name: "Program"}, {Name: "Ended"}, {Name: "Cluster"}, {Name: "State"}, {Name: "Labels"}}, rows)
	tellSuppressed(out, shown)
}

func tellSuppressed(out *reports.Listing, shown *shownCorpus) {
	if shown.Suppressed > 0 {
		out.Line("%s suppressed; --all lists them, too", wording.Count(shown.Suppressed, "failure"))
	}
}

func cut(text string) string {
	const most = 70
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return text
}

func labelText(labels map[string]string) string {
	var list []string
	for k, v := range labels {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func clusterTable(out *reports.Listing, shown *shownCorpus) {
	var rows [][]string
	for i := range shown.Clusters {
		g := &shown.Clusters[i]
		by, state := "stack", ""
		if g.ByCause {
			by = "cause"
		}
		switch {
		case g.Back != "":
			state = "back"
		case g.Fixed != nil:
			state = "fixed"
		}
		rows = append(rows, []string{g.Digest[:min(shortID, len(g.Digest))], strconv.Itoa(g.Count), by, state, g.Last.Local().Format(time.DateTime), string(g.Estimate), g.Program, cut(g.Kind + ": " + g.Summary)})
	}
	if len(rows) == 0 {
		out.Line("no clusters: nothing was diagnosed yet")
		return
	}
	out.Table([]reports.Column{{Name: "Cluster"}, {Name: "Failures", Number: true}, {Name: "By"}, {Name: "State"}, {Name: "Last"}, {Name: "Severity"}, {Name: "Program"}, {Name: "Cause"}}, rows)
}
