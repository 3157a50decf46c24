package verdict_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// TestDecidedCauses: a mistake with memory is the cause of an exit or an exception, also where the program noticed its consequence
// functions later; and where there is none, nothing is called a cause.
func TestDecidedCauses(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, test := range []struct {
		name string
		kind evidence.CauseKind // empty: there is no cause, but a lead
		at   string             // part of the summary
	}{
		{"freed_table", evidence.CauseUseAfterFree, "drop_table"},
		{"unset_weights", evidence.CauseUninitialised, "sum (unset_weights.c:"},
		{"outside_length", evidence.CauseHeapOverflow, "length (outside_length.c:"},
		{"set", evidence.CauseBadValue, "adjust (set.c:"},
		{"unset_limit", evidence.CauseUninitialised, "allowed (unset_limit.c:31) uses o->limits[1].flags"},
		{"bits", "", ""},
		{"other_bits", "", ""},
	} {
		for _, level := range []string{"-O0", "-O2"} {
			t.Run(test.name+level, func(t *testing.T) {
				p, err := recordtest.Read("../../internal/testdata/decided/" + test.name + ".c")
				if err != nil {
					t.Fatal(err)
				}
				p.Flags = append(p.Flags, level)
				result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{p.Record(t).Dir}, Replays: 1})
				if err != nil {
					t.Fatal(err)
				}
				if err := result.Check(); err != nil {
					t.Error(err)
				}
				d := result.Diagnosis
				switch {
				case test.kind == "" && len(d.Causes) > 0:
					t.Errorf("%q is called a cause", d.Causes[0].Summary)
				case test.kind == "" && len(d.Leads) == 0:
					t.Error("no lead is told")
				case test.kind == "":
				case len(d.Causes) == 0:
					t.Fatal("no cause is named")
				case d.Causes[0].Kind != test.kind || !strings.Contains(d.Causes[0].Summary, test.at):
					t.Errorf("%s: %q", d.Causes[0].Kind, d.Causes[0].Summary)
				}
			})
		}
	}
}
