package verdict

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/patterns"
	"diagnose/watchtrace"
)

// report makes a cause of a candidate, with the accesses in full.
func (r *race) report(t *tested) (*evidence.Cause, error) {
	c := t.candidate
	out := evidence.Cause{Kind: r.kindOf(c), Variable: c.Variables[0], Experiments: t.experiments, Rivals: slices.Concat(t.along, t.rivals), Proof: evidence.Replayed}
	if t.cured && !t.unconfirmed && !r.contradicted(t) && !r.detector(c) && !(len(c.Accesses) > 2 && c.Apart) {
		if others := r.movedWith(c); len(others) > 0 {
			r.progress.limit(evidence.Limit{Code: evidence.LimitHandlerWritesMore, Names: others})
		} else {
			r.prove(&out, c)
		}
		if c.Pattern == evidence.PatternPair && out.Proof != evidence.Proved && r.bystander(&out, c) {
			out.Open = evidence.OpenUntested
		}
	} else if out.Kind == evidence.CauseSignalHandler {
		out.Proof = evidence.Inferred // no experiment had the accesses in another order
	} else if t.loose || (t.unconfirmed || t.recurred && !t.cured) && len(c.Accesses) < 3 || c.Pattern == evidence.PatternPair && r.contradicted(t) {
		out.Open = evidence.OpenUntested
	}
	i := &evidence.Interleaving{
		Pattern: c.Pattern, Variables: c.Variables, Missing: c.Missing, Instead: insteadText(c),
		FailingRuns: c.FailingRuns, FailingOf: c.FailingOf, PassingRuns: c.PassingRuns, PassingOf: c.PassingOf,
		Score: c.Score, Measure: r.found.Measure,
	}
	var err error
	if i.Failing, err = r.seen(&r.failing[c.Run], c.Accesses); err != nil {
		return nil, err
	}
	if t.unreached != nil {
		i.Failing = append(i.Failing, r.unreachedAccess(c, t.unreached))
	}
	for j := range i.Failing {
		i.Failing[j].Object = objectOf(r.Process, r.Object, watchtrace.Target{Addr: i.Failing[j].Address})
	}
	if len(c.Passing) > 0 {
		if i.Passing, err = r.seen(&r.passing[c.PassingRun], c.Passing); err != nil {
			return nil, err
		}
	}
	if c.Pattern == evidence.PatternLockOrder {
		i.Failing = r.acquisitions(c)
	}
	if c.Pattern != evidence.PatternLockOrder {
		i.Variables = named(c, i.Failing, r.part(c))
		out.Variable = i.Variables[0]
	}
	i.Identities = r.identities(i, r.failing[c.Run].log)
	out.Interleaving = i
	if len(i.Failing) > 0 {
		out.Site = i.Failing[0].Site
	}
	out.Summary = r.summaryOf(c, i)
	out.Story = r.storyOf(c, i)
	if r.detector(c) {
		if out.Summary += "; " + ordersItself; r.apart(c) {
			out.Open = evidence.OpenUntested
		}
	}
	if further := r.unfinished(c); further != "" && out.Kind == evidence.CauseOrder {
		out.Summary += "; " + further
	}
	return &out, nil
}

// prove makes a cause proved by the experiments that changed the order of a candidate's accesses.
func (r *race) prove(out *evidence.Cause, c *patterns.Candidate) {
	claim := r.orderEvent(c)
	// What a thread leaves out because of a value has no part in the check either: that a passing run fails by the order tells more.
	forced := func(e evidence.Experiment) bool { return !e.Control && e.Expect && e.Agrees() }
	flow, apart := r.flowOf(c.Run), !slices.ContainsFunc(out.Experiments, forced) && r.apart(c)
	for i := range out.Experiments {
		if e := &out.Experiments[i]; !e.Control {
			e.Change = &claim
			if e.Check != nil {
				if e.Check.Inputs = flow.inputs(c, e.Check.Guard != ""); apart {
					e.Check.Inputs = []string{otherInputs}
				}
			}
		}
	}
	r.experiments.proveBy(out, claim)
}

// bystander reports whether it is known what reaches the check, and that a candidate's variables do not.
func (r *race) bystander(out *evidence.Cause, c *patterns.Candidate) bool {
	thing := namesText(c.Variables)
	return slices.ContainsFunc(out.Experiments, func(e evidence.Experiment) bool {
		return !e.Control && e.Check != nil && len(e.Check.Inputs) > 0 && !slices.Contains(e.Check.Inputs, thing)
	})
}

// otherInputs stands for what reaches the check where a trace of the run shows that a candidate's variables do not.
const otherInputs = "other memory"

// apart reports whether a trace of the run shows that no value of a candidate's variables has a part in the failing check. What a detector
// finds is tested right there, so that the trace need not be whole.
func (r *race) apart(c *patterns.Candidate) bool {
	f := &r.failing[c.Run]
	if f.rec != r.exact.rec || r.exact.record(r.progress.ctx, r.Image, r.progress.say) != nil {
		return false
	}
	reached := r.exact.reached()
	if reached == nil || !reached.Whole && !r.detector(c) {
		return false
	}
	return !slices.ContainsFunc(f.log.Variables, func(v evidence.Watched) bool {
		return slices.Contains(c.Variables, v.Name) && reached.From(v.Address, int(v.Size))
	})
}

// orderEvent is an order of accesses, or of locks, as a cause claims it.
func (r *race) orderEvent(c *patterns.Candidate) evidence.Event {
	log := r.failing[c.Run].log
	e := evidence.Event{Thing: namesText(c.Variables)}
	switch {
	case len(c.Accesses) > 0:
		a := &log.Accesses[c.Accesses[0]]
		e.At = evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal, PC: a.PC, Count: a.Hit + 1}
	case len(c.Acquisitions) > 0:
		a := &log.Acquisitions[c.Acquisitions[0]]
		e.At = evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal}
	}
	return e
}

// insteadText is what passing runs do; of an order that some of them have as well, those
// that do not.
func insteadText(c *patterns.Candidate) string { return c.Instead.Of(c.PassingRuns, c.PassingOf) }

// part names the part of an array with static storage of which the accesses of a candidate changed bytes: the whole array was watched because of one
// member of its elements, and a word has several. It is empty if that is not one part, or not of such an array.
func (r *race) part(c *patterns.Candidate) (name string) {
	if _, member, _ := strings.Cut(c.Variables[0], "[...]"); len(c.Variables) > 1 || member == "" {
		return ""
	}
	log := r.failing[c.Run].log
	for _, n := range c.Accesses {
		a := &log.Accesses[n]
		if !writesMemory(a.Kind) {
			continue
		}
		for _, t := range watchtrace.Around(r.Process, wordOf(log, a), int(a.Size)) {
			v := victim{start: t.Addr, size: t.Size}
			switch {
			case !v.concerns(log, a) || !v.changes(log, a), t.Name == name:
			case name != "":
				return ""
			default:
				name = t.Name
			}
		}
	}
	return name
}

// named are the variables as the accesses name them: the part, if one is known, or the element, where a whole
// array was watched.
func named(c *patterns.Candidate, seen []evidence.SeenAccess, part string) []string {
	var names []string
	for i := range seen {
		n := seen[i].Variable
		if len(c.Variables) == 1 {
			n = element(c.Variables[0], n)
		}
		if part != "" && !strings.HasPrefix(part, n) {
			n = part // the element's other member
		}
		if n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) != len(c.Variables) {
		return c.Variables
	}
	return names
}

// element puts the index of a name into one that says of an array which member it
// is about, and not of which element.
func element(vague, name string) string {
	array, member, ok := strings.Cut(vague, "[...]")
	rest, of := strings.CutPrefix(name, array+"[")
	index, more, closed := strings.Cut(rest, "]")
	if !ok || !of || !closed || more != "" {
		return name
	}
	return array + "[" + index + "]" + member
}

func (r *race) kindOf(c *patterns.Candidate) evidence.CauseKind {
	log := r.failing[c.Run].log
	handler := func(i int) bool { return log.Accesses[i].Handler != 0 }
	switch {
	case c.Pattern == evidence.PatternLockOrder:
		return evidence.CauseDeadlock
	case slices.ContainsFunc(c.Accesses, handler), r.missed(c):
		return evidence.CauseSignalHandler
	case len(c.Accesses) > 2:
		return evidence.CauseAtomicity
	}
	return evidence.CauseOrder
}

// seen goes back to the accesses of a log. What cannot be visited again is told
// from the log, and that it is.
func (r *race) seen(t *traced, indices []int) ([]evidence.SeenAccess, error) {
	if len(indices) == 0 {
		return nil, nil
	}
	list, err := t.plan.Details(r.progress.ctx, t.log, indices)
	if err := r.progress.ctx.Err(); err != nil && !r.progress.stopsBefore("stacks of accesses") {
		return nil, err
	}
	if err == nil && len(list) == len(indices) {
		for j := range list {
			r.complete(&list[j], t.log, indices[j])
		}
		return list, nil
	}
	r.progress.limit(evidence.Limit{Code: evidence.LimitStacks, Subject: t.rec.Dir, Reason: err.Error()})
	list = make([]evidence.SeenAccess, len(indices))
	for j, i := range indices {
		r.complete(&list[j], t.log, i)
	}
	return list, nil
}

// unreachedAccess is an access that the failing run ended before.
func (r *race) unreachedAccess(c *patterns.Candidate, h *seenHit) evidence.SeenAccess {
	log := r.failing[c.Run].log
	a := &log.Accesses[c.Accesses[0]]
	s := evidence.SeenAccess{Thread: log.Threads[a.Thread], Variable: c.Variables[0], Identity: log.Variables[a.Variable].Identity, Kind: h.kind.Kind(),
		Unreached: true, Address: log.Variables[a.Variable].Address + evidence.Addr(a.Offset), Size: int(a.Size), Stack: evidence.Stack{Frames: []evidence.Frame{}}}
	calls := r.Process.Symbolize(h.pc, image.AtInstruction)
	for i := range calls {
		frame := evidence.Frame{Index: i, Kind: evidence.Inlined, Trust: evidence.TrustContext, Site: calls[i].Site}
		if !calls[i].Inlined {
			frame.Kind = evidence.Physical
		}
		s.Stack.Frames = append(s.Stack.Frames, frame)
	}
	s.Site = &calls[0].Site
	return s
}

// complete fills in from the log what is missing.
func (r *race) complete(s *evidence.SeenAccess, log *evidence.AccessLog, index int) {
	a := &log.Accesses[index]
	if s.Variable == "" {
		v := &log.Variables[a.Variable]
		s.Variable, s.Identity = v.Name, v.Identity
	}
	if s.Kind == "" {
		s.Kind = a.Kind.Kind()
	}
	if s.Moment.Thread == 0 {
		s.Moment = evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal}
		s.Position, s.Thread = a.Position, log.Threads[a.Thread]
		s.Address, s.Size = log.Variables[a.Variable].Address+evidence.Addr(a.Offset), int(a.Size)
		s.Old, s.New = delta.ValueText(a.Old), delta.ValueText(a.New)
	}
	if s.Site == nil && log.Contexts[a.Context].Site.PC != 0 {
		site := log.Contexts[a.Context].Site
		s.Site = &site
	}
	s.ByHeap = a.By == evidence.ByHeap
	if s.Handler == "" && a.Handler != 0 {
		s.Handler = wording.Signal(int(a.Handler))
	}
	if s.Locks == nil && int(a.Locks) < len(log.LockSets) {
		s.Locks = log.LockSets[a.Locks]
	}
}

// acquisitions are the locks of a ring, as accesses.
func (r *race) acquisitions(c *patterns.Candidate) []evidence.SeenAccess {
	var list []evidence.SeenAccess
	for _, i := range c.Acquisitions {
		list = append(list, r.acquired(r.failing[c.Run].log, i))
	}
	return list
}

// acquired is a lock that was taken, as an access.
func (w *work) acquired(log *evidence.AccessLog, index int) evidence.SeenAccess {
	a := &log.Acquisitions[index]
	s := evidence.SeenAccess{
		Moment: evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal}, Position: a.Position, Thread: log.Threads[a.Thread],
		Variable: a.Lock.Name, Identity: w.lockIdentity(&a.Lock), Address: a.Lock.Address, Kind: evidence.ReadWrite, Locks: log.LockSets[a.Held],
	}
	if site := log.Contexts[a.Context].Site; site.PC != 0 {
		s.Site = &site
	}
	return s
}

// identities are those of the variables of an interleaving: of their accesses, or else of
// the log that they were found in.
func (w *work) identities(i *evidence.Interleaving, log *evidence.AccessLog) []evidence.Identity {
	list := make([]evidence.Identity, len(i.Variables))
	for n, name := range i.Variables {
		seen := slices.IndexFunc(i.Failing, func(a evidence.SeenAccess) bool { return a.Variable == name })
		watched := -1
		if log != nil {
			watched = slices.IndexFunc(log.Variables, func(v evidence.Watched) bool { return v.Name == name })
		}
		switch {
		case seen >= 0:
			list[n] = i.Failing[seen].Identity
		case watched >= 0:
			list[n] = log.Variables[watched].Identity
		default:
			list[n] = evidence.Expression(name)
		}
	}
	return list
}

// lockIdentity is the variable that a lock is.
func (w *work) lockIdentity(l *evidence.Lock) evidence.Identity {
	for _, t := range w.stacks.locks {
		if t.Name == l.Name {
			return t.Identified()
		}
	}
	return evidence.Expression(lockText(l))
}

func namesText(names []string) string { return strings.Join(names, " and ") }

// placesText is where the accesses of a candidate are, or a ring's locks are taken.
func (r *race) placesText(c *patterns.Candidate) string {
	var parts []string
	for _, x := range contextsOf(r.failing[c.Run].log, c) {
		parts = append(parts, delta.SiteText(x))
	}
	return strings.Join(parts, ", ")
}

// contextsOf is the code of a candidate's accesses, or acquisitions.
func contextsOf(log *evidence.AccessLog, c *patterns.Candidate) (list []*evidence.Context) {
	for _, i := range c.Accesses {
		list = append(list, &log.Contexts[log.Accesses[i].Context])
	}
	for _, i := range c.Acquisitions {
		list = append(list, &log.Contexts[log.Acquisitions[i].Context])
	}
	return list
}

// summaryOf is the cause in a sentence.
func (r *race) summaryOf(c *patterns.Candidate, i *evidence.Interleaving) string {
	at := func(n int) string {
		if n >= len(i.Failing) || i.Failing[n].Site == nil {
			return "code without a name"
		}
		text := siteText(i.Failing[n].Site)
		// One function may make both accesses, for two callers.
		for m := range i.Failing {
			other := &i.Failing[m]
			if caller := i.Failing[n].Caller(); m != n && caller != nil && other.Site != nil && siteText(other.Site) == text {
				return text + ", called by " + siteText(caller)
			}
		}
		return text
	}
	names := namesText(i.Variables)
	text := ""
	switch last := len(i.Failing) - 1; {
	case c.Pattern == evidence.PatternLockOrder:
		return r.lockSummary(i)
	case c.Pattern == evidence.PatternPair:
		text = fmt.Sprintf("%s are taken as belonging together by %s and %s, and %s comes between", names, at(0), at(last), at(1))
	case len(i.Failing) == 3:
		text = fmt.Sprintf("%s %s %s between the accesses of %s and %s, which belong together", at(1), verb(&i.Failing[1]), names, at(0), at(2))
	case c.Never && r.missed(c) && len(i.Passing) > 0 && i.Passing[0].Site != nil:
		text = fmt.Sprintf("%s %s %s before %s, the handler of %s, writes it", at(0), verb(&i.Failing[0]), names,
			siteText(i.Passing[0].Site), i.Passing[0].Handler)
	case c.Never:
		text = fmt.Sprintf("%s %s %s before it is written", at(0), verb(&i.Failing[0]), names)
	case last == 1:
		text = fmt.Sprintf("%s %s %s before %s %s it", at(0), verb(&i.Failing[0]), names, at(1), verb(&i.Failing[1]))
	}
	if i.Missing != "" {
		if c.Guard != "" {
			return text + fmt.Sprintf("; %s is released in between", i.Missing)
		}
		if c.Reading {
			return text + fmt.Sprintf("; %s is held for reading only", i.Missing)
		}
		if apart := apartText(i); apart != "" {
			return text + "; " + apart
		}
		text += fmt.Sprintf("; one side does not hold %s", i.Missing)
	}
	return text
}

// apartText is of an interleaving in which everybody holds a lock, and none that the
// others hold: that one of these locks is missing would be half of it.
func apartText(i *evidence.Interleaving) string {
	var missing, other *evidence.SeenAccess
	for n := range i.Failing {
		s := &i.Failing[n]
		holds := slices.ContainsFunc(s.Locks, func(l evidence.Lock) bool { return lockText(&l) == i.Missing })
		switch {
		case len(s.Locks) == 0:
			return ""
		case holds && missing == nil:
			missing = s
		case !holds && other == nil:
			other = s
		}
	}
	if missing == nil || other == nil || missing.Site == nil || other.Site == nil {
		return ""
	}
	return fmt.Sprintf("%s holds %s and %s holds %s, which are different locks", siteText(missing.Site), i.Missing,
		siteText(other.Site), lockText(&other.Locks[len(other.Locks)-1]))
}

func verb(s *evidence.SeenAccess) string {
	switch s.Kind {
	case evidence.Write:
		return "writes"
	case evidence.ReadWrite:
		return "changes"
	}
	return "reads"
}

func (r *race) lockSummary(i *evidence.Interleaving) string {
	var parts []string
	for _, s := range i.Failing {
		held := "a lock"
		if len(s.Locks) > 0 {
			held = s.Locks[len(s.Locks)-1].Name
		}
		where := "somewhere"
		if s.Site != nil {
			where = siteText(s.Site)
		}
		parts = append(parts, fmt.Sprintf("%s takes %s at %s while it holds %s", s.Thread.Label(), s.Variable, where, held))
	}
	return strings.Join(parts, ", and ")
}

// storyOf tells the accesses in time.
func (r *race) storyOf(c *patterns.Candidate, i *evidence.Interleaving) []evidence.CauseStep {
	var steps []evidence.CauseStep
	for n := range i.Failing {
		s := &i.Failing[n]
		text := fmt.Sprintf("%s %s %s", where(s), verb(s), s.Variable)
		if c.Pattern == evidence.PatternLockOrder {
			text = fmt.Sprintf("%s waits for %s", where(s), s.Variable)
		}
		if s.Kind == evidence.Write && s.New != "" {
			text += ", which is " + s.New + " then"
		} else if s.Old != "" {
			text += ", which is " + s.Old
		}
		steps = append(steps, evidence.CauseStep{Text: text, Site: s.Site, Proof: evidence.Replayed})
	}
	if i.Instead != "" {
		steps = append(steps, evidence.CauseStep{Text: i.Instead, Proof: evidence.Replayed})
	}
	return steps
}
