package evidence

import "testing"

func TestBasis(t *testing.T) {
	for kind, want := range map[CauseKind]Basis{
		CauseHeapOverflow: BasisBounds, CauseDoubleFree: BasisLifetime, CauseUninitialised: BasisUndefined,
		CauseOverwritten: BasisOverwritten, CauseMissingWakeup: BasisOrder,
	} {
		if got := BasisOf(kind); got != want || !got.Broken() {
			t.Errorf("%s: %s, want the broken rule %s", kind, got, want)
		}
	}
	for _, kind := range []CauseKind{CauseBadValue, CauseBadInput} {
		if got := BasisOf(kind); got != "" {
			t.Errorf("%s has the one basis %s", kind, got)
		}
	}
	if BasisCount.Broken() || Basis("").Broken() {
		t.Error("a value breaks no rule")
	}
}

func TestSupported(t *testing.T) {
	control := Experiment{Control: true, Expect: true, Failed: 3, Runs: 3}
	agrees := Experiment{Runs: 3}
	undecided := Experiment{Runs: 3, Undecided: "it ended too soon to tell"}
	refutes := Experiment{Runs: 3, Failed: 3}
	for name, test := range map[string]struct {
		list []Experiment
		want bool
	}{
		"none": {nil, false}, "a control": {[]Experiment{control}, false}, "one that decides nothing": {[]Experiment{control, undecided}, false},
		"one against it": {[]Experiment{control, refutes}, false}, "one for it": {[]Experiment{control, refutes, agrees}, true},
	} {
		if c := (Cause{Experiments: test.list}); c.Supported() != test.want {
			t.Errorf("%s: %v", name, c.Supported())
		}
	}
}
