package verdict

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

const word = 0x1000 // the watched one

// logOf makes a log from lines such as "W p 0x401000 5->6": kind, who (program,
// heap, call), pc, values; "@9" behind it is the position.
func logOf(t *testing.T, lines ...string) *evidence.AccessLog {
	t.Helper()
	log := &evidence.AccessLog{Variables: []evidence.Watched{{Name: "x", Address: word, Size: 8}}}
	for i, l := range lines {
		a := evidence.Access{Hit: uint64(i), Size: 8, Thread: 1}
		var kind, by string
		var pc uint64
		if _, err := fmt.Sscanf(l, "%s %s %v %v->%v @%d", &kind, &by, &pc, &a.Old, &a.New, &a.Position); err != nil && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "unexpected newline") {
			t.Fatalf("%q: %v", l, err)
		}
		a.PC = evidence.Addr(pc)
		a.Kind = map[string]evidence.AccessCode{"R": evidence.CodeRead, "W": evidence.CodeWrite, "M": evidence.CodeReadWrite, "?": evidence.CodeUnknown}[kind]
		a.By = map[string]evidence.By{"p": evidence.ByProgram, "h": evidence.ByHeap, "c": evidence.ByCall}[by]
		log.Accesses = append(log.Accesses, a)
	}
	return log
}

func pointer[T any](v T) *T { return &v }

func TestStores(t *testing.T) {
	damaged := &evidence.Finding{Kind: evidence.FindingHeapOverflow}
	for _, test := range []struct {
		name          string
		v             victim
		log           []string
		base, culprit int
		hits          []uint64
	}{
		{"the first store behind the guard was set", victim{finding: damaged, size: 8},
			[]string{"W p 0x10 0->1", "W h 0x20 1->7", "W p 0x30 7->8", "W p 0x40 8->9"}, 1, 2, []uint64{2, 3}},
		{"a read damages nothing", victim{finding: damaged, size: 8}, []string{"W h 0x20 1->7", "R p 0x30 7->7", "W p 0x40 7->9"}, 0, 2, []uint64{2}},
		{"neither does the same value", victim{finding: damaged, size: 8}, []string{"W h 0x20 1->7", "W p 0x30 7->7", "W p 0x40 7->9"}, 0, 2, []uint64{2}},
		{"but it counts behind the culprit", victim{finding: damaged, size: 8}, []string{"W h 0x20 1->7", "W p 0x30 7->9", "W p 0x40 9->9"}, 0, 1, []uint64{1, 2}},
		{"bytes of the object in the same word are the program's", victim{finding: damaged, start: 4, size: 4},
			[]string{"W h 0x20 0->7", "W p 0x30 7->8", "W p 0x40 8->0x100000008"}, 0, 2, []uint64{2}},
		{"a guard that the function sets again", victim{finding: damaged, size: 8, makes: storing(pointer(uint64(5)))},
			[]string{"W p 0x10 0->5", "W p 0x11 5->6", "W p 0x10 6->5", "W p 0x12 5->7"}, 2, 3, []uint64{3}},
		{"a return address that the next call sets again", victim{size: 8, makes: func(a *evidence.Access) bool { return a.PC == 0x10 }},
			[]string{"W p 0x10 0->5", "W p 0x11 5->6", "W p 0x10 6->7", "W p 0x12 7->8", "W p 0x13 8->9"}, 2, 3, []uint64{3, 4}},
		{"the last store of the bad value", victim{size: 8, value: pointer(uint64(9))},
			[]string{"W p 0x10 0->9", "W p 0x20 9->3", "W p 0x30 3->9", "W p 0x40 9->4"}, -1, 2, []uint64{2}},
		{"a value of several stores of one loop", victim{size: 8, value: pointer(uint64(0x0302))},
			[]string{"W p 0x10 0->1", "W p 0x20 1->2", "W p 0x20 2->0x302"}, -1, 2, []uint64{2, 1}},
		{"but not of another time", victim{size: 8, value: pointer(uint64(2))}, []string{"W p 0x20 0->1 @4", "W p 0x20 1->2 @5"}, -1, 1, []uint64{1}},
		{"what a call brings", victim{size: 8, value: pointer(uint64(2))}, []string{"W h 0x5 0->0", "W c 0x20 0->2"}, 0, 1, []uint64{1}},
		{"nobody", victim{size: 8, value: pointer(uint64(2))}, []string{"R p 0x20 0->0"}, -1, -1, nil},
	} {
		log := logOf(t, test.log...)
		test.v.start += word
		base, culprit := test.v.stores(log, len(log.Accesses))
		if base != test.base || culprit != test.culprit {
			t.Errorf("%s: base %d and culprit %d, want %d and %d", test.name, base, culprit, test.base, test.culprit)
			continue
		}
		if culprit < 0 {
			continue
		}
		if hits := test.v.hits(log, culprit); !slices.Equal(hits, test.hits) {
			t.Errorf("%s: hits %v, want %v", test.name, hits, test.hits)
		}
	}
}

// Before a store, only what came earlier counts.
func TestStoresBefore(t *testing.T) {
	v := victim{start: word, size: 8, value: pointer(uint64(9))}
	log := logOf(t, "W p 0x10 0->9", "W p 0x20 9->9", "W p 0x30 9->9")
	if _, culprit := v.stores(log, 1); culprit != 0 {
		t.Errorf("culprit %d, want 0", culprit)
	}
}

func TestRankPutsReasonsFirst(t *testing.T) {
	k := &conclusion{out: &evidence.Diagnosis{Causes: []evidence.Cause{
		{Kind: evidence.CauseHeapOverflow, Proof: evidence.Replayed},
		{Kind: evidence.CauseBadValue, Proof: evidence.Proved},
		{Kind: evidence.CauseOrder, Proof: evidence.Proved}}}}
	k.rank()
	var kinds []evidence.CauseKind
	for _, c := range k.out.Causes {
		kinds = append(kinds, c.Kind)
	}
	if want := []evidence.CauseKind{evidence.CauseOrder, evidence.CauseBadValue, evidence.CauseHeapOverflow}; !slices.Equal(kinds, want) {
		t.Errorf("ranked %v, want %v", kinds, want)
	}
}

// TestOrderedFirst: that nothing had given a variable its value is not proved by another value where it came too late.
func TestOrderedFirst(t *testing.T) {
	late := evidence.Cause{Kind: evidence.CauseSignalHandler, Proof: evidence.Replayed, Interleaving: &evidence.Interleaving{Variables: []string{"table"}},
		Experiments: []evidence.Experiment{{Runs: 3, Failed: 3, Expect: true, Control: true}, {Runs: 3}}}
	untried := late
	untried.Experiments = untried.Experiments[:1]
	for _, x := range []struct {
		variable string
		other    evidence.Cause
		first    evidence.CauseKind
	}{
		{"table", late, evidence.CauseSignalHandler},
		{"length", late, evidence.CauseUninitialised},
		{"table", untried, evidence.CauseUninitialised},
	} {
		k := &conclusion{out: &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseUninitialised, Variable: x.variable, Proof: evidence.Proved}, x.other}}}
		k.rank()
		if got := k.out.Causes[0].Kind; got != x.first {
			t.Errorf("%s: %s is first, want %s", x.variable, got, x.first)
		}
	}
}

// TestInterruptedBaseline: a replay that was ended with the diagnosis does not say that the failure was never replayed.
func TestInterruptedBaseline(t *testing.T) {
	for _, x := range []struct {
		interrupted bool
		undecided   string
		causes      int
	}{{true, "it was stopped by SIGINT", 1}, {false, "it diverged", 0}, {true, "", 0}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &work{progress: &progress{ctx: ctx, coverage: new(evidence.Coverage)}, reached: new(reach), conclusion: new(conclusion), out: &evidence.Diagnosis{Causes: []evidence.Cause{{Proof: evidence.Replayed}}},
			experiments: &experiments{baselines: map[replayOf]evidence.Experiment{{}: {Runs: 1, Undecided: x.undecided}}}}
		if x.interrupted {
			cancel()
		}
		if w.asRecorded(); len(w.out.Causes) != x.causes {
			t.Errorf("interrupted %v, %q: %d causes", x.interrupted, x.undecided, len(w.out.Causes))
		}
	}
}

func TestDistance(t *testing.T) {
	for n, want := range map[uint64]string{0: "directly past", 1: "1 byte past", 12: "12 bytes past"} {
		if got := distance(n, "past"); got != want {
			t.Errorf("distance(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestLibraryName(t *testing.T) {
	for name, want := range map[string]string{"__isoc99_sscanf": "sscanf", "strtoq": "strtol", "__read_chk": "read", "memcpy": "memcpy"} {
		if got := libraryName(name); got != want {
			t.Errorf("libraryName(%q) = %q, want %q", name, got, want)
		}
	}
}

// A copy may store a word by several instructions: they are one store, unlike those
// of the program's own line.
func TestHitsOfOneCall(t *testing.T) {
	for call, want := range map[evidence.Addr][]uint64{0x99: {2, 1}, 0x20: {2}} {
		log := logOf(t, "W p 0x5 0->1", "W p 0x10 1->2", "W p 0x20 2->2")
		log.Contexts = []evidence.Context{{Site: evidence.Site{PC: 1}}, {Site: evidence.Site{PC: call}}}
		log.Accesses[1].Context, log.Accesses[2].Context = 1, 1
		v := victim{start: word, size: 8, value: pointer(uint64(2))}
		if got := v.hits(log, 2); !slices.Equal(got, want) {
			t.Errorf("called at %v: hits %v, want %v", call, got, want)
		}
	}
}

// A freed object that the failing code used is a cause only if the run does not
// fail without the free, where it failed by something else.
func TestUses(t *testing.T) {
	object := &evidence.HeapObject{Addr: 0x5000, Size: 24}
	use := evidence.Finding{Kind: evidence.FindingUseAfterFree, Object: object}
	damage := evidence.Finding{Kind: evidence.FindingHeapOverflow, Object: object, Damage: &evidence.Damage{Start: 0x5018, End: 0x5020}}
	for _, test := range []struct {
		failure  evidence.FailureKind
		findings []evidence.Finding
		uses     int
	}{
		{evidence.Abort, []evidence.Finding{use, use}, 2},
		{evidence.Abort, []evidence.Finding{use, damage}, 0},
		{evidence.UseAfterFree, []evidence.Finding{use}, 0},
		{evidence.Abort, nil, 0},
	} {
		s := &victimSearch{progress: &progress{}, in: &Input{Case: &evidence.Case{Failure: evidence.Failure{Kind: test.failure}, Findings: test.findings}}, exact: &exact{window: window{tried: true, err: errLong}}}
		if got := s.uses(); len(got) != test.uses || len(got) > 0 && (!got[0].use || !got[0].freed()) {
			t.Errorf("%s with %d findings: %+v", test.failure, len(test.findings), got)
		}
	}
	again := evidence.Experiment{Runs: 3, Failed: 3, Expect: true}
	for _, test := range []struct {
		name  string
		cause evidence.Cause
		want  bool
	}{
		{"it fails without", evidence.Cause{Experiments: []evidence.Experiment{again, {Runs: 3, Failed: 3}}}, true},
		{"it does not", evidence.Cause{Proof: evidence.Proved, Experiments: []evidence.Experiment{again, {Runs: 3}}}, false},
		{"one of two proves it", evidence.Cause{Proof: evidence.Proved, Experiments: []evidence.Experiment{again, {Runs: 3, Failed: 3}, {Runs: 3}}}, false},
		{"undecided", evidence.Cause{Experiments: []evidence.Experiment{again, {Runs: 3, Failed: 3, Undecided: "it diverged from the recording"}}}, false},
		{"no experiment", evidence.Cause{Experiments: []evidence.Experiment{again}}, false},
	} {
		if got := refuted(&test.cause); got != test.want {
			t.Errorf("%s: refuted is %v", test.name, got)
		}
	}
}

// A cause is ruled out if each change left the failing instruction the value that it had. A run that
// failed by another value, or of which it is not known, rules nothing out.
func TestContradicted(t *testing.T) {
	again := evidence.Experiment{Runs: 3, Failed: 3, Expect: true, Control: true}
	without := func(before, after string) evidence.Experiment {
		return evidence.Experiment{Runs: 3, Failed: 3, Check: &evidence.FailingCheck{Recorded: 1, Arrivals: 1, Again: 1,
			Before: evidence.CheckedValue{Value: before}, After: evidence.CheckedValue{Value: after}}}
	}
	for _, x := range []struct {
		name string
		list []evidence.Experiment
		want bool
	}{
		{"the same value", []evidence.Experiment{again, without("0x41", "0x41")}, true},
		{"another bad value", []evidence.Experiment{again, without("0x41", "0x0")}, false},
		{"one of two gave another", []evidence.Experiment{again, without("0x41", "0x41"), without("0x41", "0x0")}, false},
		{"a value that is not known", []evidence.Experiment{again, without("", "")}, false},
		{"the check was not seen", []evidence.Experiment{again, {Runs: 3, Failed: 3}}, false},
		{"one run passed", []evidence.Experiment{again, {Runs: 3, Failed: 2, Check: without("0x41", "0x41").Check}}, false},
		{"undecided", []evidence.Experiment{again, {Runs: 1, Failed: 1, Undecided: "it diverged", Check: without("0x41", "0x41").Check}}, false},
		{"the recorded run did not fail again", []evidence.Experiment{{Runs: 3, Expect: true, Control: true}, without("0x41", "0x41")}, false},
		{"no change", []evidence.Experiment{again}, false},
	} {
		if got := contradicted(&evidence.Cause{Experiments: x.list}); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
