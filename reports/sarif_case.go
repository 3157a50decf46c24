package reports

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/evidence/signature"
)

// sarifBuilder makes the log of a case.
type sarifBuilder struct {
	c *evidence.Case
	// open is the case with its secrets. Signatures are computed from it, as they must be those of
	// the corpus.
	open   *evidence.Case
	root   string
	rooted bool
	rules  []sarifRule
}

// ruleTexts describe the rules. A rule without a text is described by its id.
var ruleTexts = map[string]string{
	string(evidence.CauseHeapOverflow):  "A store past the end of an object of the heap",
	string(evidence.CauseHeapUnderflow): "A store before the start of an object of the heap",
	string(evidence.CauseUseAfterFree):  "A use of an object of the heap after it was freed",
	string(evidence.CauseStackSmashing): "A store outside of an array on the stack",
	string(evidence.CauseOverwritten):   "A variable was overwritten by a store that meant another one",
	string(evidence.CauseBadValue):      "A value that was stored earlier made the program fail",
	string(evidence.CauseUninitialised): "A value was used that was never set",
	string(evidence.CauseBadInput):      "A value from the program's input made it fail",
	string(evidence.CauseAtomicity):     "Accesses that belong together were interleaved with another thread's",
	string(evidence.CauseOrder):         "Two threads came in an order that the program does not allow for",
	string(evidence.CauseSignalHandler): "A signal's handler came between accesses that belong together",
	string(evidence.CauseDeadlock):      "Threads wait for each other's locks",
	string(evidence.CauseDoubleFree):    "An object of the heap was freed twice",
	string(evidence.CauseMissingWakeup): "A thread waits for what no thread signals afterwards",
}

// rule returns the index of a rule. Its id is that of a kind of cause, finding or
// failure, and never changes.
func (b *sarifBuilder) rule(kind string) int {
	for i := range b.rules {
		if b.rules[i].ID == kind {
			return i
		}
	}
	text := ruleTexts[kind]
	if text == "" {
		text = "The program failed: " + strings.ReplaceAll(kind, "-", " ")
	}
	b.rules = append(b.rules, sarifRule{ID: kind, Name: ruleName(kind), Short: sarifText(text), Config: sarifConfig{"error"}})
	return len(b.rules) - 1
}

// ruleName is the id as one word, as 3.49.7 has it.
func ruleName(kind string) string {
	var name strings.Builder
	for _, word := range strings.Split(kind, "-") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
}

// sarifCase has a result for each cause. Without a cause it has one for the failure and one for
// each finding. open is the case before secrets were replaced.
func sarifCase(c, open *evidence.Case, opts Options) *sarifLog {
	b := &sarifBuilder{c: c, open: open, root: strings.TrimRight(opts.SourceRoot, "/")}
	results := []sarifResult{}
	if c.Diagnosis != nil {
		for i := range c.Diagnosis.Causes {
			results = append(results, b.cause(i))
		}
	}
	if len(results) == 0 {
		if c.Failure.Kind != evidence.NoFailure {
			results = append(results, b.failure())
		}
		for i := range c.Findings {
			results = append(results, b.finding(&c.Findings[i]))
		}
	}
	b.severity(results)
	if s := c.Suppression; s != nil && !s.Expired {
		for i := range results {
			results[i].Suppressions = []sarifSuppression{{Kind: "external", Status: "accepted", Justification: cutSpan(Clean(s.Reason))}}
		}
	}
	limits := c.Limits
	if c.Diagnosis != nil {
		limits = slices.Concat(limits, c.Diagnosis.Coverage.Limits)
	}
	return b.log(&c.Program, results, limits, opts)
}

// severity gives the first result, which is the likeliest cause or the failure, the severity of the
// case, and its rule the same: code scanning sorts by the rule's.
func (b *sarifBuilder) severity(results []sarifResult) {
	s := b.c.Severity
	if s == nil || len(results) == 0 {
		return
	}
	r := &results[0]
	r.Properties["security-severity"] = securitySeverity(s)
	r.Properties["severity"] = s
	b.rules[r.RuleIndex].Properties = securityProperties(s)
}

func sarifHeap(h *evidence.Heap, opts Options) *sarifLog {
	b := &sarifBuilder{c: &evidence.Case{}, root: strings.TrimRight(opts.SourceRoot, "/")}
	results := []sarifResult{}
	for i := range h.Findings {
		results = append(results, b.finding(&h.Findings[i]))
	}
	return b.log(&h.Program, results, h.Limits, opts)
}

func (b *sarifBuilder) log(program *evidence.Program, results []sarifResult, limits []evidence.Limit, opts Options) *sarifLog {
	run := sarifRun{Tool: sarifTool{sarifComponent{Name: "diagnose", Version: cutSpan(opts.Version), Rules: b.rules}},
		ColumnKind: "unicodeCodePoints", Results: results, Properties: map[string]any{"program": cutSpan(programLine(program).String())}}
	inv := sarifInvocation{Successful: true}
	for _, l := range limits {
		level := "note"
		if l.Severe {
			level = "warning"
		}
		inv.Notifications = append(inv.Notifications, sarifNotification{level, sarifText(limitLine(l).String())})
	}
	run.Invocations = []sarifInvocation{inv}
	if b.rooted {
		run.BaseIDs = map[string]sarifArtifactLocation{sarifRoot: {URI: "file://" + fileURI(b.root) + "/"}}
	}
	return &sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}}
}

// The names of the fingerprints have a version, as 3.27.17 asks for: the digested data may have to
// change.
const (
	stackFingerprint = "diagnoseStack/v1"
	causeFingerprint = "diagnoseCause/v1"
)

// fingerprints are the signatures of the failure and of the cause with the given index; -1 is none.
func (b *sarifBuilder) fingerprints(cause int) map[string]string {
	if b.open == nil {
		return nil
	}
	c := *b.open
	if cause >= 0 {
		d := *c.Diagnosis
		d.Causes = d.Causes[cause : cause+1]
		c.Diagnosis = &d
	}
	s := signature.Of(&c)
	prints := map[string]string{}
	if s.Stack != "" {
		prints[stackFingerprint] = s.Stack
	}
	if s.Cause != "" && cause >= 0 {
		prints[causeFingerprint] = s.Cause
	}
	return prints
}

func (b *sarifBuilder) cause(i int) sarifResult {
	x := &b.c.Diagnosis.Causes[i]
	index := b.rule(string(x.Kind))
	r := sarifResult{RuleID: string(x.Kind), RuleIndex: index, Kind: "fail", Level: "error", Message: sarifText(x.Summary + " (" + string(x.Proof) + ")"),
		Fingerprints: b.fingerprints(i), Properties: map[string]any{"proof": x.Proof, "cause": i + 1, "failure": cutSpan(Clean(b.c.Failure.Sentence))}}
	if i > 0 && x.Proof != evidence.Proved {
		r.Level = "note" // reported after a likelier one
	}
	if x.Variable != "" {
		r.Properties["variable"] = cutSpan(Clean(x.Variable))
	}
	var experiments []string
	for j := range x.Experiments {
		experiments = append(experiments, cutSpan(experimentLine(&x.Experiments[j]).String()))
	}
	if experiments != nil {
		r.Properties["experiments"] = experiments
	}
	if x.Site != nil {
		r.Locations = []sarifLocation{b.place(x.Site, "")}
	} else if b.c.Failure.Site != nil {
		r.Locations = []sarifLocation{b.place(b.c.Failure.Site, "")}
	}
	if b.c.Failure.Site != nil {
		r.Related = append(r.Related, b.place(b.c.Failure.Site, "the failure: "+b.c.Failure.Sentence))
	}
	r.Related = append(r.Related, b.objectPlaces(x.Object, "the object")...)
	r.Related = append(r.Related, b.lastWords()...)
	number(r.Related)
	r.Stacks = b.stacks()
	if n := x.Interleaving; n != nil {
		r.Properties["pattern"] = n.Pattern
		r.CodeFlows = append(r.CodeFlows, b.interleaved("the failing run", n.Failing))
		if len(n.Passing) > 0 {
			r.CodeFlows = append(r.CodeFlows, b.interleaved("a passing run", n.Passing))
		}
	} else if len(x.Story) > 0 {
		r.CodeFlows = []sarifCodeFlow{b.story(x.Story)}
	}
	return r
}

// number gives related places ids that are unique in one result, as 3.28.2 requires.
func number(list []sarifLocation) {
	for i := range list {
		list[i].ID = i + 1
	}
}

func (b *sarifBuilder) objectPlaces(o *evidence.HeapObject, what string) []sarifLocation {
	var list []sarifLocation
	add := func(c *evidence.HeapCall, verb string) {
		if c != nil && c.Site != nil {
			list = append(list, b.place(c.Site, what+" was "+verb+" here"))
		}
	}
	if o != nil {
		add(o.Allocated, "allocated")
		add(o.Freed, "freed")
	}
	return list
}

func (b *sarifBuilder) failure() sarifResult {
	f := &b.c.Failure
	r := sarifResult{RuleID: string(f.Kind), RuleIndex: b.rule(string(f.Kind)), Kind: "fail", Level: "error", Message: sarifText(f.Sentence),
		Fingerprints: b.fingerprints(-1), Properties: map[string]any{"proof": f.Proof}, Stacks: b.stacks()}
	if f.Site != nil {
		r.Locations = []sarifLocation{b.place(f.Site, "")}
	}
	steps := f.Origin
	if f.Check != nil {
		r.Related = append(r.Related, b.place(&f.Check.Site, "it was found that "+checkText(f.Check)))
		steps = slices.Concat(steps, f.Check.Left.Origin, f.Check.Right.Origin)
	}
	for _, s := range steps {
		if s.Site != nil {
			r.Related = append(r.Related, b.place(s.Site, s.Text))
		}
	}
	r.Related = append(r.Related, b.lastWords()...)
	number(r.Related)
	return r
}

// lastWords are the places where the program wrote its last messages and made the calls
// that failed.
func (b *sarifBuilder) lastWords() (list []sarifLocation) {
	for _, x := range lastWordsOf(b.c.Ending) {
		if x.seen.Site != nil {
			list = append(list, b.place(x.seen.Site, x.what.String()+"; "+strings.Join(x.text, "; ")))
		}
	}
	return list
}

func (b *sarifBuilder) finding(f *evidence.Finding) sarifResult {
	r := sarifResult{RuleID: string(f.Kind), RuleIndex: b.rule(string(f.Kind)), Kind: "fail", Level: "error", Message: sarifText(f.Summary),
		Fingerprints: b.fingerprints(-1), Properties: map[string]any{"proof": f.Proof}}
	if f.Kind == evidence.FindingHeapObject { // names the object of an address, not an error
		r.Kind, r.Level = "informational", "none"
	}
	if f.Site != nil {
		r.Locations = []sarifLocation{b.place(f.Site, "")}
	}
	r.Related = append(b.objectPlaces(f.Object, "the object"), b.objectPlaces(f.Beyond, "the object beyond")...)
	for _, w := range f.Wait {
		if w.Site != nil {
			r.Related = append(r.Related, b.place(w.Site, w.Waiter.Label()+" "+waitLine(w).String()))
		}
	}
	number(r.Related)
	for _, c := range findingCalls(f) {
		if len(c.call.Stack.Frames) > 0 {
			r.Stacks = append(r.Stacks, b.stack(c.what, c.call.Stack, 0))
		}
	}
	return r
}

// stacks returns the stack of the failing thread.
func (b *sarifBuilder) stacks() []sarifStack {
	for _, g := range b.c.Stacks {
		if g.Failing && len(g.Stack.Frames) > 0 {
			return []sarifStack{b.stack(groupLine(g).String(), g.Stack, g.Threads[0].TID)}
		}
	}
	return nil
}

func (b *sarifBuilder) stack(title string, s evidence.Stack, tid int) sarifStack {
	x := sarifStack{Message: sarifTextPointer(title), Frames: []sarifFrame{}}
	for i := range s.Frames[:min(len(s.Frames), maxSarifFrames)] {
		f := &s.Frames[i]
		frame := sarifFrame{Location: b.place(&f.Site, ""), ThreadID: tid}
		if f.Site.Module != "" {
			frame.Module = cutSpan(Clean(path.Base(f.Site.Module)))
		}
		x.Frames = append(x.Frames, frame)
	}
	return x
}

// interleaved is a run, with a thread flow for each of its threads, in the order
// of their first accesses.
func (b *sarifBuilder) interleaved(what string, list []evidence.SeenAccess) sarifCodeFlow {
	flow := sarifCodeFlow{Message: sarifText("the accesses in " + what), ThreadFlows: []sarifThreadFlow{}}
	for i := range list {
		a := &list[i]
		flow.addLocation(a.Thread, b.access(a, accessCell(a), i+1))
	}
	return flow
}

// addLocation adds a place after the other places of its thread.
func (f *sarifCodeFlow) addLocation(thread evidence.ThreadRef, l sarifFlowLocation) {
	id := fmt.Sprintf("thread %d", thread.Number)
	for i := range f.ThreadFlows {
		if f.ThreadFlows[i].ID == id {
			f.ThreadFlows[i].Locations = append(f.ThreadFlows[i].Locations, l)
			return
		}
	}
	f.ThreadFlows = append(f.ThreadFlows, sarifThreadFlow{ID: id, Message: sarifText(thread.Label()), Locations: []sarifFlowLocation{l}})
}

func (b *sarifBuilder) access(a *evidence.SeenAccess, text string, order int) sarifFlowLocation {
	l := sarifFlowLocation{Location: b.place(a.Site, text), Kinds: []string{"memory"}, Order: order, Importance: "essential"}
	if len(a.Stack.Frames) > 0 {
		s := b.stack("", untilStart(a.Stack), a.Thread.TID)
		l.Stack = &s
	}
	value := a.New
	if a.Kind == evidence.Read {
		value = a.Old
	}
	if value != "" && a.Variable != "" {
		l.State = map[string]sarifMessage{cutSpan(Clean(a.Variable)): sarifText(value)}
	}
	return l
}

// story is the code flow of a memory error. A step without an access belongs to the thread of the
// step before it, or else of the first access.
func (b *sarifBuilder) story(steps []evidence.CauseStep) sarifCodeFlow {
	flow := sarifCodeFlow{Message: sarifText("how it came about"), ThreadFlows: []sarifThreadFlow{}}
	thread := evidence.ThreadRef{Number: 1}
	if b.c.Failure.Thread != nil {
		thread = *b.c.Failure.Thread
	}
	for i := range steps {
		if steps[i].Access != nil {
			thread = steps[i].Access.Thread
			break
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.Access == nil {
			flow.addLocation(thread, sarifFlowLocation{Location: b.place(s.Site, s.Text), Order: i + 1, Importance: "important"})
			continue
		}
		thread = s.Access.Thread
		flow.addLocation(thread, b.access(s.Access, s.Text, i+1))
	}
	return flow
}
