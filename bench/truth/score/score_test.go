package score

import (
	"testing"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/sanitizer"
	"diagnose/evidence"
)

func site(file string, line int) *evidence.Site {
	return &evidence.Site{File: file, Line: line, Function: "f"}
}

func place(file string, line int) sanitizer.Place { return sanitizer.Place{File: file, Line: line} }

// overflow is the answer of a bug at lines 10 and 11 of lib/a.c, of which an object that is
// allocated at lib/b.c:5 is overflowed at lib/b.c:20.
var overflow = mutant.Answer{
	File: "lib/a.c", Root: []int{10, 11},
	Violation: &sanitizer.Violation{
		Kind: "heap-buffer-overflow", Class: sanitizer.Bounds,
		Accesses: []sanitizer.Place{place("lib/b.c", 20)}, Callers: []sanitizer.Place{place("lib/b.c", 30)},
		Allocated: []sanitizer.Place{place("lib/mem.c", 3), place("lib/b.c", 5)},
	},
}

// freed is that of a second free.
var freed = mutant.Answer{
	File: "lib/a.c", Root: []int{10},
	Violation: &sanitizer.Violation{
		Kind: "double-free", Class: sanitizer.Lifetime,
		Accesses: []sanitizer.Place{place("lib/mem.c", 9)}, Callers: []sanitizer.Place{place("lib/b.c", 30), place("lib/b.c", 40)},
	},
}

func causes(list ...evidence.Cause) *evidence.Case {
	return &evidence.Case{Diagnosis: &evidence.Diagnosis{Causes: list}}
}

func object(file string, line int) *evidence.HeapObject {
	return &evidence.HeapObject{Allocated: &evidence.HeapCall{Site: site(file, line)}}
}

func story(sites ...*evidence.Site) (list []evidence.CauseStep) {
	for _, s := range sites {
		list = append(list, evidence.CauseStep{Site: s})
	}
	return list
}

func TestCauses(t *testing.T) {
	const top = "/home/x/tree/"
	elsewhere := evidence.Cause{Kind: evidence.CauseBadValue, Site: site(top+"lib/c.c", 1)}
	proved := elsewhere
	proved.Proof = evidence.Proved
	for name, test := range map[string]struct {
		c      *evidence.Case
		answer *mutant.Answer
		want   Outcome
		proved bool
	}{
		"the bug":                   {causes(evidence.Cause{Site: site(top+"lib/a.c", 11), Proof: evidence.Proved}), &overflow, Right, true},
		"the line of another file":  {causes(evidence.Cause{Site: site(top+"lib/xa.c", 11)}), &overflow, Wrong, false},
		"a line before":             {causes(evidence.Cause{Site: site(top+"lib/a.c", 9)}), &overflow, Wrong, false},
		"the violation":             {causes(evidence.Cause{Kind: evidence.CauseHeapOverflow, Site: site("b.c", 20)}), &overflow, Right, false},
		"another kind of violation": {causes(evidence.Cause{Kind: evidence.CauseUseAfterFree, Site: site("b.c", 20)}), &overflow, Wrong, false},
		"the object":                {causes(evidence.Cause{Kind: evidence.CauseHeapOverflow, Site: site("b.c", 21), Object: object(top+"lib/b.c", 5)}), &overflow, Right, false},
		"another object":            {causes(evidence.Cause{Kind: evidence.CauseHeapOverflow, Object: object(top+"lib/b.c", 6)}), &overflow, Wrong, false},
		"the caller of the wrapper": {causes(evidence.Cause{Kind: evidence.CauseDoubleFree, Site: site(top+"lib/b.c", 30)}), &freed, Right, false},
		"its caller":                {causes(evidence.Cause{Kind: evidence.CauseDoubleFree, Site: site(top+"lib/b.c", 40)}), &freed, Wrong, false},
		"a caller of an access":     {causes(evidence.Cause{Site: site(top+"lib/b.c", 30)}), &overflow, Wrong, false},
		"proved elsewhere":          {causes(proved), &overflow, WrongProved, true},
		"a second cause":            {causes(elsewhere, evidence.Cause{Site: site(top+"lib/a.c", 10)}), &overflow, Reported, false},
		"a second after a proved":   {causes(proved, evidence.Cause{Site: site(top+"lib/a.c", 10)}), &overflow, WrongProved, true},
		"the chain": {causes(evidence.Cause{Site: site(top+"lib/c.c", 1), Proof: evidence.Proved, Story: story(site(top+"lib/a.c", 10), site(top+"lib/c.c", 1))}),
			&overflow, Root, true},
		"the violation in the story": {causes(evidence.Cause{Site: site(top+"lib/c.c", 1), Story: story(site(top+"lib/b.c", 20))}), &overflow, Wrong, false},
		"an access outside":          {causes(evidence.Cause{Kind: evidence.CauseBadValue, Site: site(top+"lib/c.c", 1), Outside: &evidence.OutsideAccess{Site: site("b.c", 20)}}), &overflow, Right, false},
		"one elsewhere":              {causes(evidence.Cause{Kind: evidence.CauseBadValue, Site: site(top+"lib/c.c", 1), Outside: &evidence.OutsideAccess{Site: site("b.c", 22)}}), &overflow, Wrong, false},
		"no place":                   {causes(evidence.Cause{Kind: evidence.CauseBadValue}), &overflow, Wrong, false},
	} {
		if got := Judge(test.c, test.answer); got != (Score{test.want, test.proved}) {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

func TestRace(t *testing.T) {
	answer := mutant.Answer{File: "q.c", Root: []int{4, 5, 6}, Violation: &sanitizer.Violation{
		Class: sanitizer.Race, Accesses: []sanitizer.Place{place("q.c", 5), place("r.c", 50)},
	}}
	race := func(line int) *evidence.Case {
		return causes(evidence.Cause{Kind: evidence.CauseAtomicity, Site: site("r.c", 1), Interleaving: &evidence.Interleaving{
			Failing: []evidence.SeenAccess{{Site: site("r.c", line)}, {Site: site("r.c", 2)}},
		}})
	}
	if got := Judge(race(50), &answer); got.Outcome != Right {
		t.Errorf("an access of the race: %+v", got)
	}
	if got := Judge(race(51), &answer); got.Outcome != Wrong {
		t.Errorf("another access: %+v", got)
	}
}

func TestFailure(t *testing.T) {
	damage := func(kind evidence.FindingKind, o *evidence.HeapObject) []evidence.Finding {
		return []evidence.Finding{{Kind: kind, Object: o}}
	}
	at := func(s *evidence.Site) evidence.Failure { return evidence.Failure{Site: s} }
	for name, test := range map[string]struct {
		c    evidence.Case
		want Outcome
	}{
		"at the violation":        {evidence.Case{Failure: at(site("lib/b.c", 20))}, Right},
		"at the bug":              {evidence.Case{Failure: at(site("lib/a.c", 10))}, Right},
		"elsewhere":               {evidence.Case{Failure: at(site("lib/z.c", 10))}, Unknown},
		"the damaged object":      {evidence.Case{Failure: at(site("lib/z.c", 10)), Findings: damage(evidence.FindingHeapOverflow, object("lib/b.c", 5))}, Right},
		"another object":          {evidence.Case{Failure: at(site("lib/z.c", 10)), Findings: damage(evidence.FindingHeapOverflow, object("lib/b.c", 6))}, Wrong},
		"another kind":            {evidence.Case{Failure: at(site("lib/z.c", 10)), Findings: damage(evidence.FindingUseAfterFree, object("lib/b.c", 5))}, Wrong},
		"a fact about an address": {evidence.Case{Failure: at(site("lib/z.c", 10)), Findings: damage(evidence.FindingHeapObject, object("lib/b.c", 6))}, Unknown},
		"the origin":              {evidence.Case{Failure: evidence.Failure{Origin: []evidence.OriginStep{{Site: site("lib/a.c", 11)}}}}, Root},
		"a caller": {evidence.Case{Stacks: []evidence.ThreadGroup{
			{Stack: evidence.Stack{Frames: []evidence.Frame{{Site: *site("lib/z.c", 2)}}}},
			{Failing: true, Stack: evidence.Stack{Frames: []evidence.Frame{{Site: *site("lib/z.c", 3)}, {Site: *site("lib/b.c", 20)}}}},
		}}, Reported},
		"another thread": {evidence.Case{Stacks: []evidence.ThreadGroup{
			{Stack: evidence.Stack{Frames: []evidence.Frame{{Site: *site("lib/b.c", 20)}}}},
		}}, Unknown},
		"a suspect": {evidence.Case{Scan: &evidence.Scan{Suspects: []evidence.Suspect{{Lines: []evidence.SuspectUse{{Site: *site("lib/a.c", 10)}}}}}}, Reported},
	} {
		if got := Judge(&test.c, &overflow); got != (Score{Outcome: test.want}) {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

// A bug may fail without a violation: by an assertion or a status.
func TestNoViolation(t *testing.T) {
	answer := mutant.Answer{File: "a.c", Root: []int{3}}
	if got := Judge(causes(evidence.Cause{Kind: evidence.CauseHeapOverflow, Site: site("a.c", 3)}), &answer); got.Outcome != Right {
		t.Errorf("%+v", got)
	}
	if got := Judge(&evidence.Case{Failure: evidence.Failure{Site: site("b.c", 3)}}, &answer); got.Outcome != Unknown {
		t.Errorf("%+v", got)
	}
	allocated := causes(evidence.Cause{Kind: evidence.CauseHeapOverflow, Site: site("b.c", 3), Object: object("a.c", 3)})
	if got := Judge(allocated, &answer); got.Outcome != Right {
		t.Errorf("an object that the bug allocates: %+v", got)
	}
}

// A signal that was taken out leaves no line to name, but what it would have signalled.
func TestUnsignalled(t *testing.T) {
	answer := mutant.Answer{File: "q.c", Root: []int{4}, Unsignalled: "filled"}
	for variable, want := range map[string]Outcome{"filled": Right, "queue.filled": Right, "q->filled": Right, "emptied": Wrong, "unfilled": Wrong} {
		if got := Judge(causes(evidence.Cause{Kind: evidence.CauseMissingWakeup, Variable: variable, Site: site("q.c", 9)}), &answer); got.Outcome != want {
			t.Errorf("%s: %+v", variable, got)
		}
	}
}

// Of an initialisation that was taken out the uses are left, which may be anywhere: the variable is named, or the member.
func TestUnset(t *testing.T) {
	answer := mutant.Answer{File: "q.cc", Root: []int{4}, Unset: &mutant.Unset{Name: "skip", Function: "Queue::scan"}}
	for _, test := range []struct {
		kind               evidence.CauseKind
		variable, function string
		want               Outcome
	}{
		{evidence.CauseUninitialised, "skip", "n::Queue::scan(char const*)", Right},
		{evidence.CauseUninitialised, "skip[2].size", "Queue::scan", Right},
		{evidence.CauseUninitialised, "skip", "Queue::take", Wrong},
		{evidence.CauseUninitialised, "skipped", "Queue::scan", Wrong},
		{evidence.CauseUninitialised, "q->skip", "Queue::take", Right},
		{evidence.CauseUninitialised, "q->list[3].skip[1]", "Queue::take", Right},
		{evidence.CauseUninitialised, "q->skip.size", "Queue::take", Wrong},
		{evidence.CauseUninitialised, "", "Queue::scan", Wrong},
		{evidence.CauseBadValue, "skip", "Queue::scan", Wrong},
	} {
		s := site("q.cc", 9)
		s.Function = test.function
		if got := Judge(causes(evidence.Cause{Kind: test.kind, Variable: test.variable, Site: s}), &answer); got.Outcome != test.want {
			t.Errorf("%s %s in %s: %+v", test.kind, test.variable, test.function, got)
		}
	}
}

// Where the wait for a thread's end was taken out, what the function does after it comes before what the thread does.
func TestUnjoined(t *testing.T) {
	answer := mutant.Answer{File: "q.c", Root: []int{4}, Unjoined: &sanitizer.Place{File: "q.c", Line: 10, Function: "main"}}
	seen := func(function string, line, number int, start string) evidence.SeenAccess {
		return evidence.SeenAccess{Site: &evidence.Site{File: "/top/q.c", Function: function, Line: line}, Thread: evidence.ThreadRef{Number: number, Start: start}}
	}
	after, worker := seen("main", 12, 1, "main"), seen("work", 30, 3, "write_all")
	for name, test := range map[string]struct {
		accesses []evidence.SeenAccess
		want     Outcome
	}{
		"after it, and the thread":      {[]evidence.SeenAccess{after, worker}, Right},
		"the other order":               {[]evidence.SeenAccess{worker, after}, Wrong},
		"before it":                     {[]evidence.SeenAccess{seen("main", 9, 1, "main"), worker}, Wrong},
		"in another function":           {[]evidence.SeenAccess{seen("other", 12, 1, "main"), worker}, Wrong},
		"the same thread":               {[]evidence.SeenAccess{after, seen("work", 30, 1, "main")}, Wrong},
		"a thread of the same function": {[]evidence.SeenAccess{after, seen("main", 30, 2, "main")}, Wrong},
		"three accesses":                {[]evidence.SeenAccess{after, worker, after}, Wrong},
	} {
		c := evidence.Cause{Kind: evidence.CauseOrder, Site: test.accesses[0].Site, Interleaving: &evidence.Interleaving{Failing: test.accesses}}
		if got := Judge(causes(c), &answer); got.Outcome != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestHeadlineOf(t *testing.T) {
	first := evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisBounds, Proof: evidence.Replayed, Experiments: []evidence.Experiment{{Runs: 3}}}
	c := causes(first, evidence.Cause{Kind: evidence.CauseUninitialised})
	c.Failure.Kind = evidence.NullPointer
	if got, want := *HeadlineOf(c), (Headline{evidence.NullPointer, evidence.CauseBadValue, evidence.BasisBounds, evidence.Replayed, true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := *HeadlineOf(&evidence.Case{}); got != (Headline{}) {
		t.Errorf("a report without a cause: %+v", got)
	}
}

func TestParted(t *testing.T) {
	answer := &mutant.Answer{File: "src/a.c", Root: []int{7}}
	at := func(line int) *evidence.Site { return &evidence.Site{File: "/build/src/a.c", Line: line} }
	for _, test := range []struct {
		list            []evidence.Divergence
		compared, right bool
	}{
		{nil, false, false},
		{[]evidence.Divergence{{Site: at(8)}}, true, false},
		{[]evidence.Divergence{{Site: at(8)}, {Site: at(7)}}, true, true},
		{[]evidence.Divergence{{Site: at(8), Origin: []evidence.CauseStep{{Site: at(7)}}}}, true, true},
	} {
		compared, right := Parted(&evidence.Case{Diagnosis: &evidence.Diagnosis{Divergences: test.list}}, answer)
		if compared != test.compared || right != test.right {
			t.Errorf("%+v: %v, %v", test.list, compared, right)
		}
	}
	if compared, _ := Parted(&evidence.Case{}, answer); compared {
		t.Error("without a diagnosis nothing is compared")
	}
}
