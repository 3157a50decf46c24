package signature

import (
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

// stored is a store by a function, in its frame and that of its callers, to memory on
// the heap.
func stored(variable string, sites ...*evidence.Site) evidence.CauseStep {
	a := &evidence.SeenAccess{Variable: variable, Address: 0x208000080010, Site: sites[0]}
	for i, s := range sites {
		f := evidence.Frame{Kind: evidence.Physical, Site: *s, CFA: evidence.Addr(0x7fffffffe000 + 64*i)}
		if i+1 < len(sites) && s.PC == sites[i+1].PC {
			f.Kind = evidence.Inlined
		}
		a.Stack.Frames = append(a.Stack.Frames, f)
	}
	return evidence.CauseStep{Access: a, Proof: evidence.Replayed}
}

// onTheStack makes a store one to a variable of its own function.
func onTheStack(s evidence.CauseStep) evidence.CauseStep {
	s.Access.Address = s.Access.Stack.Frames[0].CFA - 0x20
	return s
}

// bad is a failure in withdraw by a bad value, with its story.
func bad(proof evidence.Proof, story ...evidence.CauseStep) *evidence.Case {
	c := failed()
	c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseBadValue, Proof: proof, Site: story[0].Site, Story: story}}}
	c.Sources = []evidence.Source{{File: "/srv/build-1/bank.c", Lines: []evidence.SourceLine{
		{Number: 10, Text: "\tfor (i = 0; i < n; i++)"}, {Number: 12, Text: "\treturn NULL;"}, {Number: 13, Text: "\treturn -1; // closed"},
		{Number: 20, Text: "\taccounts[i].limit = limit;"}, {Number: 21, Text: "\taccounts[i].limit = -5;"}, {Number: 30, Text: "\tset_limit(1, -5);"},
		{Number: 31, Text: "\tset_limit(2, -7);"}, {Number: 40, Text: "\tcurrent = find(name);"}, {Number: 41, Text: "\tother = find(name);"}}}}
	return c
}

func from(proof evidence.Proof, s *evidence.Site) evidence.CauseStep {
	return evidence.CauseStep{Site: s, Proof: proof}
}

// causeOf is the cause without the program's line.
func causeOf(t *testing.T, c *evidence.Case) string {
	t.Helper()
	got := Of(c)
	if len(got.CauseLines) < 2 {
		t.Fatalf("%q", got.CauseLines)
	}
	return strings.Join(got.CauseLines[1:], "; ")
}

// Of a function that returned nothing, one level of optimisation tells the return and
// another the loop in front of it, and a variable of the caller is stored or not.
func TestReturnedValues(t *testing.T) {
	want := "kind bad-value; returned by find; used in bank withdraw"
	plain := bad(evidence.Proved, from(evidence.Replayed, site("find", 12)), onTheStack(stored("a", site("withdraw", 60))))
	for name, c := range map[string]*evidence.Case{
		"as it stands":        plain,
		"optimised":           bad(evidence.Proved, from(evidence.Replayed, site("find", 10))),
		"through another one": bad(evidence.Replayed, from(evidence.Replayed, site("find", 12)), from(evidence.Replayed, site("search", 50)), onTheStack(stored("a", site("withdraw", 60)))),
	} {
		if got := causeOf(t, c); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	elsewhere := bad(evidence.Proved, from(evidence.Replayed, site("find", 10)))
	elsewhere.Failure.Site = site("deposit", 72)
	elsewhere.Stacks[0].Stack.Frames[2] = frame(0x1000+72, module, "deposit")
	for name, x := range map[string]struct {
		c    *evidence.Case
		want string
	}{
		"another caller fails":     {elsewhere, "kind bad-value; returned by find; used in bank deposit"},
		"kept on the heap":         {bad(evidence.Proved, from(evidence.Replayed, site("find", 12)), stored("current", site("open", 40))), "kind bad-value; returned by find; at open: current = find(name);"},
		"kept elsewhere":           {bad(evidence.Proved, from(evidence.Replayed, site("find", 10)), stored("other", site("open", 41))), "kind bad-value; returned by find; at open: other = find(name);"},
		"something is returned":    {bad(evidence.Proved, from(evidence.Replayed, site("find", 13))), "kind bad-value; at find: return -1;"},
		"a library returned it":    {bad(evidence.Proved, from(evidence.Replayed, site("open", 40)), stored("current", site("open", 40))), "kind bad-value; at open: current = find(name);"},
		"a library, and no store":  {bad(evidence.Proved, from(evidence.Replayed, site("withdraw", 40))), "kind bad-value; at withdraw: current = find(name);"},
		"it is of unknown origin":  {bad(evidence.Replayed, from(evidence.Inferred, site("find", 12)), stored("current", site("open", 40))), "kind bad-value; at find: return NULL;; used in bank withdraw"},
		"the function has no name": {bad(evidence.Proved, from(evidence.Replayed, &evidence.Site{PC: 0x1010, Module: module, ModuleOffset: 0x10})), "kind bad-value; at bank +0x10"},
	} {
		if got := causeOf(t, x.c); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// Where a function that stores what it was handed is inlined, the store has the
// constant: it is the call's, as it is where nothing is inlined.
func TestHandedOverValues(t *testing.T) {
	inlined := func(line, call int) *evidence.Case {
		at, by := site("set_limit", line), site("load", call)
		by.PC = at.PC
		return bad(evidence.Proved, from(evidence.FromCore, at), stored("accounts[1].limit", at, by, site("main", 90)))
	}
	called := bad(evidence.Proved, from(evidence.FromCore, site("load", 30)), onTheStack(stored("limit", site("set_limit", 18), site("load", 30))),
		stored("accounts[1].limit", site("set_limit", 20), site("load", 30)))
	want := "kind bad-value; at load: set_limit(1, -5);"
	for name, c := range map[string]*evidence.Case{"called": called, "inlined": inlined(20, 30)} {
		if got := causeOf(t, c); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, want := causeOf(t, inlined(20, 31)), "kind bad-value; at load: set_limit(2, -7);"; got != want {
		t.Errorf("another call: %q, want %q", got, want)
	}
	own := "kind bad-value; at set_limit: accounts[i].limit = -5;"
	if got := causeOf(t, inlined(21, 30)); got != own {
		t.Errorf("a constant of the function's own: %q, want %q", got, own)
	}
	whole := bad(evidence.Proved, from(evidence.FromCore, site("set_limit", 20)), stored("accounts[1].limit", site("set_limit", 20), site("load", 30)))
	if got, want := causeOf(t, whole), "kind bad-value; at set_limit: accounts[i].limit = limit;"; got != want {
		t.Errorf("not inlined: %q, want %q", got, want)
	}
}

func TestStoresName(t *testing.T) {
	for text, want := range map[string]bool{
		"m[i].scale = scale;": true, "m->scale = (int)scale;": true, "x = y": true, "n += step;": true,
		"m->scale = -5;": false, "m->next = NULL;": false, "m->on = true;": false, "m->scale = other->scale;": false, "m->scale = SCALE;": false,
		"if (a == b)": false, "f(scale);": false, "m->scale = f(scale);": false, "a <= b;": false, "": false,
	} {
		if got := storesName(text); got != want {
			t.Errorf("storesName(%q) = %t", text, got)
		}
	}
}

func TestReturnsSomething(t *testing.T) {
	for text, want := range map[string]bool{
		"return NULL;": false, "return (NULL);": false, "return nullptr;": false, "return (struct a *)0;": false, "return 0x0;": false, "return;": false,
		"std::ptr::null_mut()": false, "return core::ptr::null();": false, "for (;;)": false, "if (!n) return 0;": false,
		"return -1;": true, "return 10;": true, "return found;": true, "return find(name);": true, "returned = 1;": false,
	} {
		if got := returnsSomething(text); got != want {
			t.Errorf("returnsSomething(%q) = %t", text, got)
		}
	}
}

// What belongs together is met again at whichever access, and in whichever variable,
// the compiler left; what it began with, and what broke into it, is the same.
func TestInterruptedAccesses(t *testing.T) {
	access := func(thread int, variable, function string, line int) evidence.SeenAccess {
		return evidence.SeenAccess{Thread: evidence.ThreadRef{Number: thread}, Variable: variable, Site: site(function, line)}
	}
	lines := func(pattern evidence.PatternKind, variables []string, accesses ...evidence.SeenAccess) []string {
		c := failed()
		c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseAtomicity, Proof: evidence.Proved,
			Interleaving: &evidence.Interleaving{Pattern: pattern, Variables: variables, Failing: accesses}}}}
		return Of(c).CauseLines
	}
	want := []string{"program bank", "pattern in between", "variable q.size", "at get bank.c:52", "at get bank.c:57"}
	for name, got := range map[string][]string{
		"one variable": lines(evidence.PatternRWR, []string{"q.size"}, access(1, "q.size", "get", 52), access(2, "q.size", "get", 57), access(1, "q.size", "get", 57)),
		"another look": lines(evidence.PatternRWR, []string{"q.size"}, access(1, "q.size", "get", 52), access(2, "q.size", "get", 57), access(1, "q.size", "get", 59)),
		"two of them": lines(evidence.PatternPair, []string{"q.size", "q.first"}, access(1, "q.size", "get", 52), access(2, "q.first", "get", 56),
			access(2, "q.size", "get", 57), access(1, "q.first", "get", 55)),
		"the other thread": lines(evidence.PatternRWW, []string{"q.size"}, access(2, "q.size", "get", 52), access(1, "q.size", "get", 57), access(2, "q.size", "get", 57)),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	other := lines(evidence.PatternRWR, []string{"q.size"}, access(1, "q.size", "get", 52), access(2, "q.size", "put", 37), access(1, "q.size", "get", 57))
	if slices.Equal(other, want) {
		t.Errorf("what another function broke into is the same: %q", other)
	}
	// Nothing of the second variable's writers touches the first.
	apart := lines(evidence.PatternPair, []string{"a", "b"}, access(1, "a", "get", 52), access(2, "b", "put", 36), access(1, "b", "get", 55))
	if want := []string{"program bank", "pattern in between", "variable a", "variable b", "at get bank.c:52", "at get bank.c:55", "at put bank.c:36"}; !slices.Equal(apart, want) {
		t.Errorf("%q, want %q", apart, want)
	}
	handler := access(1, "n", "on_alarm", 9)
	handler.Handler = "SIGALRM"
	if got := lines(evidence.PatternRWR, []string{"n"}, access(1, "n", "main", 20), handler, access(1, "n", "main", 22)); !slices.Contains(got, "at on_alarm bank.c:9") || len(got) != 5 {
		t.Errorf("%q", got)
	}
}
