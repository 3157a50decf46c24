package signature

import (
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

const module = "/srv/build-1/bank"

// frame is a function of the program, at an address of its own.
func frame(pc evidence.Addr, module, function string) evidence.Frame {
	return evidence.Frame{Kind: evidence.Physical, Trust: evidence.TrustCFI,
		Site: evidence.Site{PC: pc, Module: module, ModuleOffset: pc & 0xfff, Function: function}}
}

func site(function string, line int) *evidence.Site {
	return &evidence.Site{PC: evidence.Addr(0x1000 + line), Module: module, Function: function, File: "/srv/build-1/bank.c", Line: line}
}

// failed is an abort in withdraw, called by clerk.
func failed() *evidence.Case {
	return &evidence.Case{
		Program: evidence.Program{Exe: module},
		Failure: evidence.Failure{Kind: evidence.Abort, Signal: &evidence.Signal{Number: 6, Name: "SIGABRT"}, Site: site("withdraw", 64)},
		Stacks: []evidence.ThreadGroup{{Failing: true, Stack: evidence.Stack{Frames: []evidence.Frame{
			frame(0x7f01, "/lib/libc.so.6", "__pthread_kill_implementation"), frame(0x7f02, "/lib/libc.so.6", "__GI_abort"),
			frame(0x1000+64, module, "withdraw"), frame(0x2000, module, "clerk"), frame(0x7f03, "/lib/libc.so.6", "start_thread"),
		}}}},
	}
}

// raced adds the cause, of whose accesses one thread's come first.
func raced(c *evidence.Case, pattern evidence.PatternKind, lines ...int) *evidence.Case {
	x := &evidence.Interleaving{Pattern: pattern, Variables: []string{"accounts[0].balance"}}
	for _, l := range lines {
		function := "withdraw"
		if l < 50 {
			function = "has"
		}
		x.Failing = append(x.Failing, evidence.SeenAccess{Site: site(function, l)})
	}
	c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{
		{Kind: evidence.CauseAtomicity, Proof: evidence.Proved, Interleaving: x, Site: x.Failing[0].Site}}}
	c.Sources = []evidence.Source{{File: "/srv/build-1/bank.c", Lines: []evidence.SourceLine{
		{Number: 49, Text: "\tenough = a->balance >= amount; // asked too early"}, {Number: 61, Text: "\ta->balance -= amount;"}}}}
	return c
}

func TestStackLines(t *testing.T) {
	s := Of(failed())
	want := []string{"program bank", "ended SIGABRT", "in bank withdraw", "in bank clerk"}
	if !slices.Equal(s.StackLines, want) {
		t.Errorf("%q, want %q", s.StackLines, want)
	}
	if len(s.Stack) != 32 || s.Cause != "" || s.CauseLines != nil || s.Cluster() != s.Stack {
		t.Errorf("%+v", s)
	}
}

// What differs between two runs, two builds or two machines differs in no signature.
func TestSignaturesOutliveBuilds(t *testing.T) {
	want := Of(raced(failed(), evidence.PatternRWR, 49, 61, 61))
	if want.Cause == "" || want.Cluster() != want.Cause {
		t.Fatalf("%+v", want)
	}
	for name, change := range map[string]func(c *evidence.Case) *evidence.Case{
		"other order and letters": func(*evidence.Case) *evidence.Case { return raced(failed(), evidence.PatternRWW, 61, 49, 61) },
		"another account": func(c *evidence.Case) *evidence.Case {
			c.Diagnosis.Causes[0].Interleaving.Variables[0] = "accounts[2].balance"
			return c
		},
		"another place of the files and the libraries": func(c *evidence.Case) *evidence.Case {
			c.Program.Exe = "/opt/2/bank"
			c.Stacks[0].Stack.Frames = append([]evidence.Frame{frame(9, "/usr/lib/libc-2.40.so", "raise")}, c.Stacks[0].Stack.Frames[1:]...)
			for i := range c.Stacks[0].Stack.Frames {
				f := &c.Stacks[0].Stack.Frames[i].Site
				f.Module = strings.Replace(f.Module, "build-1", "build-2", 1)
				f.ModuleOffset += 0x40
			}
			return c
		},
		"three lines inserted above": func(c *evidence.Case) *evidence.Case {
			for i := range c.Diagnosis.Causes[0].Interleaving.Failing {
				s := *c.Diagnosis.Causes[0].Interleaving.Failing[i].Site
				s.Line += 3
				c.Diagnosis.Causes[0].Interleaving.Failing[i].Site = &s
			}
			for i := range c.Sources[0].Lines {
				c.Sources[0].Lines[i].Number += 3
			}
			return c
		},
		"another comment and indentation": func(c *evidence.Case) *evidence.Case {
			c.Sources[0].Lines[0].Text = "enough =  a->balance /* now */ >= amount;"
			return c
		},
		"a clone of the function": func(c *evidence.Case) *evidence.Case {
			c.Stacks[0].Stack.Frames[3].Site.Function = "clerk.constprop.0"
			return c
		},
	} {
		if got := Of(change(raced(failed(), evidence.PatternRWR, 49, 61, 61))); got.Stack != want.Stack || got.Cause != want.Cause {
			t.Errorf("%s:\n%q\n%q, want\n%q\n%q", name, got.StackLines, got.CauseLines, want.StackLines, want.CauseLines)
		}
	}
}

// One cause under two stacks is one cluster, two causes under one stack are two.
func TestClusters(t *testing.T) {
	one, two := raced(failed(), evidence.PatternRWR, 49, 61, 61), raced(failed(), evidence.PatternRWR, 49, 61, 61)
	two.Failure.Site = site("deposit", 72)
	two.Stacks[0].Stack.Frames[2] = frame(0x1000+72, module, "deposit")
	a, b := Of(one), Of(two)
	if a.Stack == b.Stack || a.Cluster() != b.Cluster() {
		t.Errorf("one cause with two stacks: %+v\n%+v", a, b)
	}
	other := raced(failed(), evidence.PatternRWR, 61, 61, 61)
	if c := Of(other); c.Stack != a.Stack || c.Cluster() == a.Cluster() {
		t.Errorf("two causes with one stack: %+v\n%+v", a, c)
	}
}

// A tail call leaves no frame, and the function that calls may have been inlined: neither makes a
// failure another one than in a build without optimisation.
func TestTailCalls(t *testing.T) {
	plain, optimised := failed(), failed()
	frames := plain.Stacks[0].Stack.Frames
	plain.Stacks[0].Stack.Frames = slices.Insert(slices.Clone(frames), 3, frame(0x1800, module, "pay"), frame(0x1900, module, "serve"))
	tail := evidence.Frame{Kind: evidence.TailCall, Trust: evidence.TrustCallSites, Site: frame(0x1804, module, "pay").Site,
		InlinedInto: []evidence.Site{frame(0x1804, module, "serve").Site}}
	optimised.Stacks[0].Stack.Frames = slices.Insert(slices.Clone(frames), 3, tail)
	if a, b := Of(plain), Of(optimised); a.Stack != b.Stack || len(a.StackLines) != 6 {
		t.Errorf("%q\n%q", a.StackLines, b.StackLines)
	}
}

// What no replay has seen is no cause, and the next one counts if it was seen.
func TestOnlySeenCausesCount(t *testing.T) {
	c := raced(failed(), evidence.PatternRWR, 49, 61, 61)
	want := Of(c).Cause
	guess := c.Diagnosis.Causes[0]
	guess.Proof, guess.Kind, guess.Interleaving = evidence.Inferred, evidence.CauseBadValue, nil
	c.Diagnosis.Causes = []evidence.Cause{guess, c.Diagnosis.Causes[0]}
	if got := Of(c).Cause; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Diagnosis.Causes = c.Diagnosis.Causes[:1]
	if got := Of(c); got.Cause != "" {
		t.Errorf("a rule's cause has the signature %q", got.CauseLines)
	}
}

func TestMemoryErrors(t *testing.T) {
	object := func(line int) *evidence.HeapObject {
		return &evidence.HeapObject{Allocated: &evidence.HeapCall{Site: site("begin", line)}}
	}
	cause := func(kind evidence.CauseKind, alloc, store int) Signature {
		c := failed()
		c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: kind, Proof: evidence.Replayed, Site: site("receive", store), Object: object(alloc)}}}
		return Of(c)
	}
	base := cause(evidence.CauseHeapOverflow, 29, 41)
	want := []string{"program bank", "kind heap-overflow", "allocated begin bank.c:29", "at receive bank.c:41"}
	if !slices.Equal(base.CauseLines, want) {
		t.Errorf("%q, want %q", base.CauseLines, want)
	}
	for _, x := range []Signature{cause(evidence.CauseUseAfterFree, 29, 41), cause(evidence.CauseHeapOverflow, 30, 41), cause(evidence.CauseHeapOverflow, 29, 42)} {
		if x.Cause == base.Cause {
			t.Errorf("%q and %q are one", x.CauseLines, base.CauseLines)
		}
	}
}

// A bad value is told as whichever of the variables that it went through.
func TestTheVariableOfABadValue(t *testing.T) {
	var causes []string
	for _, name := range []string{"w->last", "j->quota"} {
		c := failed()
		c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseBadValue, Proof: evidence.Proved, Variable: name, Site: site("defaults", 12)}}}
		causes = append(causes, Of(c).Cause)
	}
	if causes[0] != causes[1] || causes[0] == "" {
		t.Errorf("%q", causes)
	}
}

// A cause of which no place is known would be one with each other of its kind.
func TestNoPlaceNoCause(t *testing.T) {
	c := failed()
	c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseBadInput, Proof: evidence.Replayed}}}
	if got := Of(c); got.Cause != "" {
		t.Errorf("%q", got.CauseLines)
	}
}

func TestWithoutSymbols(t *testing.T) {
	c := failed()
	c.Failure.Site = &evidence.Site{PC: 0x1040, Module: module, ModuleOffset: 0x40}
	c.Stacks[0].Stack.Frames = []evidence.Frame{frame(0x7f01, "/lib/libc.so.6", ""), frame(0x1040, module, ""), frame(0x1080, module, "")}
	want := []string{"program bank", "ended SIGABRT", "in bank +0x40", "in bank +0x80"}
	if got := Of(c).StackLines; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A source that was changed since it was compiled tells of another line.
func TestStaleSourceIsNotQuoted(t *testing.T) {
	c := raced(failed(), evidence.PatternRWR, 49, 61, 61)
	c.Sources[0].Stale = true
	for _, l := range Of(c).CauseLines {
		if strings.Contains(l, "balance -=") {
			t.Errorf("%q", l)
		}
	}
}

func TestRecursionAndHugeNames(t *testing.T) {
	c := failed()
	huge := strings.Repeat("x", 1<<20)
	frames := []evidence.Frame{frame(0x1000+64, module, "withdraw")}
	for i := range 50 {
		frames = append(frames, frame(evidence.Addr(0x3000+i), module, "parse"))
	}
	c.Stacks[0].Stack.Frames = append(frames, frame(0x9000, module, huge+"1"))
	got := Of(c)
	if n := len(got.StackLines); n != 5 || len(got.StackLines[4]) > 2*longest {
		t.Fatalf("%d lines", n)
	}
	c.Stacks[0].Stack.Frames[51].Site.Function = huge + "2"
	if Of(c).Stack == got.Stack {
		t.Error("the end of a long name does not count")
	}
}

// normal checks that a function turns each text into the wanted one.
func normal(t *testing.T, f func(string) string, wanted map[string]string) {
	t.Helper()
	for text, want := range wanted {
		if got := f(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestStatement(t *testing.T) {
	normal(t, statement, map[string]string{
		"\tn -=  m; // why":             "n -= m;",
		"a = b /* c */ + d;":            "a = b + d;",
		`puts("// no comment"); // one`: `puts("// no comment");`,
		`c = '"'; // quote`:             `c = '"';`,
		`c = '\''; /* quote */ d();`:    `c = '\''; d();`,
		"fn f<'a>(x: &'a u8) { // life": "fn f<'a>(x: &'a u8) {",
		"n = 1'000'000; // digits":      "n = 1'000'000;",
		"} /* open":                     "}",
		"// only a comment":             "",
		`s = "open`:                     `s = "open`,
		`s = "\`:                        `s = "\`,
	})
}

func TestVariable(t *testing.T) {
	begin := evidence.Identity{Kind: evidence.IdentityHeap, Name: "malloc", Addr: 0x208000050060, Site: &evidence.Site{File: "/src/begin.c", Line: 29}}
	for _, x := range []struct {
		of   evidence.Identity
		want string
	}{
		{evidence.Expression("accounts[12].balance"), "accounts[].balance"},
		{evidence.Expression("shown->references"), "shown->references"},
		{evidence.Expression("0x7ffff7a00010:8"), ":8"},
		{evidence.Expression("ns::table.rows[3][4]"), "ns::table.rows[][]"},
		{evidence.Expression("accounts[...].balance"), "accounts[...].balance"},
		{evidence.Expression("table+0x10"), "table+0x10"},
		{begin.At("+0x8"), "malloc at begin.c"},
		{begin.At("->a[2].b"), "malloc at begin.c"},
		{evidence.Identity{Kind: evidence.IdentityHeap, Name: "malloc", Addr: 0x208000050060}, "heap object"},
		{evidence.Identity{Kind: evidence.IdentityStack, Function: "main", Name: "totals"}.At("[3].sum"), "main's totals[].sum"},
		{evidence.Identity{Kind: evidence.IdentityReturn, Function: "worker"}, "worker's return address"},
	} {
		if got := variable(&x.of); got != x.want {
			t.Errorf("%+v becomes %q, want %q", x.of, got, x.want)
		}
	}
}

func TestFunctionNames(t *testing.T) {
	normal(t, functionName, map[string]string{
		"withdraw":                        "withdraw",
		"bank::account::draw(int) const":  "bank::account::draw",
		"counter::add::h0123456789abcdef": "counter::add",
		"parse.part.0":                    "parse",
		"memcpy@GLIBC_2.14":               "memcpy",
		"f(int) [clone .constprop.0]":     "f",
		"counter::hash::hfff":             "counter::hash::hfff",
	})
}

// called is an access of a thread in a function that another one called.
func called(thread int, kind evidence.AccessKind, variable string, at, by *evidence.Site, locks ...evidence.Lock) evidence.SeenAccess {
	a := evidence.SeenAccess{Thread: evidence.ThreadRef{Number: thread}, Variable: variable, Kind: kind, Site: at, Locks: locks}
	a.Stack.Frames = []evidence.Frame{{Site: *at}, {Site: *by}}
	return a
}

// interleaved is the cause's lines of accesses without those of the program and pattern.
func interleaved(pattern evidence.PatternKind, variables []string, accesses ...evidence.SeenAccess) []string {
	c := failed()
	c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseAtomicity, Proof: evidence.Proved,
		Interleaving: &evidence.Interleaving{Pattern: pattern, Variables: variables, Failing: accesses}}}}
	return Of(c).CauseLines[1:]
}

// Where functions lock for themselves, what belongs together is their caller's.
func TestWhoCallsWhatLocks(t *testing.T) {
	lines := func(by *evidence.Site, last evidence.Lock) []string {
		first := evidence.Lock{Address: 0x40, Name: "till", Taken: 3}
		return interleaved(evidence.PatternRWW, []string{"cash"}, called(1, evidence.Read, "cash", site("get", 5), by, first),
			called(2, evidence.Write, "cash", site("set", 9), site("sale", 24), evidence.Lock{Address: 0x40, Name: "till", Taken: 4}),
			called(1, evidence.Write, "cash", site("set", 9), site("sale", 24), last))
	}
	again := evidence.Lock{Address: 0x40, Name: "till", Taken: 6}
	want := []string{"pattern in between", "variable cash", "at get bank.c:5", "at set bank.c:9", "called sale bank.c:20"}
	if got := lines(site("sale", 20), again); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lines(site("refund", 30), again); slices.Equal(got, want) || !slices.Contains(got, "called refund bank.c:30") {
		t.Errorf("another caller: %q", got)
	}
	if got := lines(site("sale", 20), evidence.Lock{Address: 0x40, Name: "till", Taken: 3}); !slices.Equal(got, want[:4]) {
		t.Errorf("in one critical section: %q, want %q", got, want[:4])
	}
	parts := called(1, evidence.Read, "cash", site("sale", 20), site("sale", 2))
	library := frame(0x7f03, "/lib/libc.so.6", "start_thread").Site
	parts.Stack.Frames = append(parts.Stack.Frames, evidence.Frame{Site: library})
	if by := parts.Caller(); by == nil || by.Function != "start_thread" {
		t.Errorf("the caller of a function of which the compiler made two is %+v", by)
	}
	if got := lines(&library, again); !slices.Equal(got, want[:4]) {
		t.Errorf("called by a library: %q, want %q", got, want[:4])
	}
}

// A part of a heap object is known by where that was allocated, however it is called.
func TestHeapVariables(t *testing.T) {
	lines := func(variable string, allocated int) []string {
		a := called(1, evidence.ReadWrite, variable, site("change", 5), site("look", 20))
		a.Object = &evidence.HeapObject{Addr: 0x208000050060, State: evidence.HeapLive, Allocated: &evidence.HeapCall{Site: site("show", allocated)}}
		return interleaved(evidence.PatternRW, []string{variable}, a)
	}
	want := []string{"pattern two accesses", "variable allocated show bank.c:54", "at change bank.c:5"}
	for _, name := range []string{"shown->references", "malloc at bank.c:54 (0x208000050060)->references", "malloc at bank.c:54 (0x208000050060)+0x8"} {
		if got := lines(name, 54); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := lines("shown->references", 55); slices.Equal(got, want) {
		t.Errorf("of another allocation: %q", got)
	}
}

// A free between a thread and its object is that, with whichever accesses it is told.
func TestFreedInUse(t *testing.T) {
	object := &evidence.HeapObject{Addr: 0x208000170010, State: evidence.HeapQuarantined, Allocated: &evidence.HeapCall{Site: site("add", 54)}}
	free := called(3, evidence.Write, "l.name", site("add", 57), site("main", 80))
	free.ByHeap, free.Object = true, object
	use := func(by string) evidence.SeenAccess {
		a := called(2, evidence.Read, "l.name", site("send", 34), site(by, 48))
		a.Object = object
		return a
	}
	begin := called(2, evidence.Read, "listeners.first", site("tell", 47), site("main", 64))
	moved := called(3, evidence.Write, "listeners.first", site("add", 58), site("main", 65))
	want := []string{"pattern freed in use", "allocated add bank.c:54", "freed add bank.c:57", "used send bank.c:34", "called by tell"}
	for name, got := range map[string][]string{
		"alone":            interleaved(evidence.PatternWR, []string{"l.name"}, free, use("tell")),
		"of two variables": interleaved(evidence.PatternPair, []string{"listeners.first", "l.name"}, begin, free, moved, use("tell")),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := interleaved(evidence.PatternWR, []string{"l.name"}, free, use("tally")); slices.Equal(got, want) {
		t.Errorf("another one uses it: %q", got)
	}
	// What is used first, or by the thread that frees it, or not the heap's to free, is not.
	own, live := use("tell"), free
	own.Thread = free.Thread
	live.Object = &evidence.HeapObject{Addr: object.Addr, State: evidence.HeapLive, Allocated: object.Allocated}
	for name, got := range map[string][]string{
		"used first":     interleaved(evidence.PatternRW, []string{"l.name"}, use("tell"), free),
		"its own":        interleaved(evidence.PatternWR, []string{"l.name"}, free, own),
		"not freed":      interleaved(evidence.PatternWR, []string{"l.name"}, live, use("tell")),
		"by the program": interleaved(evidence.PatternWR, []string{"l.name"}, moved, use("tell")),
	} {
		if got[0] != "pattern two accesses" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
