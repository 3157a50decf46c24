package verdict_test

import (
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// TestSpared: that memory is not damaged in a changed run proves nothing about a status with which the run ends all the same.
func TestSpared(t *testing.T) {
	crashtest.TracesAccesses(t)
	p, err := recordtest.Read("../../internal/testdata/spared/stopped.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"-O0", "-O2"} {
		x := *p
		x.Flags = append(p.Flags[:len(p.Flags):len(p.Flags)], level)
		result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{x.Record(t).Dir}, Replays: 1})
		if err != nil {
			t.Fatal(err)
		}
		causes := result.Diagnosis.Causes
		if len(causes) == 0 || causes[0].Kind != evidence.CauseUseAfterFree {
			t.Fatalf("%s: the damage is not told: %+v", level, causes)
		}
		for i := range causes {
			if causes[i].Proof == evidence.Proved {
				t.Errorf("%s: %q is proved", level, causes[i].Summary)
			}
		}
	}
}
