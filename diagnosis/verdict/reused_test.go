package verdict_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/recordtest"
)

// TestReused: memory that is used as two objects at once is a lead, which names both; what either stored there is no cause.
func TestReused(t *testing.T) {
	for _, test := range []struct{ name, summary, step string }{
		{"pool_twice.cc", "stored this->name in the memory that Pool::Alloc", "drop (pool_twice.cc:48)"},
		{"arena_size.c", "stored c->register_number in the memory that ", ""},
	} {
		for _, clang := range []bool{false, true} {
			p, err := recordtest.Read("../../internal/testdata/flow/" + test.name)
			if err != nil {
				t.Fatal(err)
			}
			p.Clang = clang
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{p.Record(t).Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			d := result.Diagnosis
			switch {
			case len(d.Causes) > 0:
				t.Errorf("%s: %q is called a cause", test.name, d.Causes[0].Summary)
			case len(d.Leads) == 0:
				t.Errorf("%s: no lead is told", test.name)
			case d.Leads[0].Open != evidence.OpenReused || !strings.Contains(d.Leads[0].Summary, test.summary):
				t.Errorf("%s: %s, %q", test.name, d.Leads[0].Open, d.Leads[0].Summary)
			case test.step != "" && (len(d.Leads[0].Story) == 0 || !strings.HasPrefix(d.Leads[0].Story[0].Text, test.step)):
				t.Errorf("%s: %+v", test.name, d.Leads[0].Story)
			}
		}
	}
}
