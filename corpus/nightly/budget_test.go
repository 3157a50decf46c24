package nightly

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/corpus/analysis"
)

// An analysis that uses too much memory fails alone, whichever way its budget is enforced.
func TestMemory(t *testing.T) {
	c, ids := filled(t, failure{what: "eat"}, failure{what: "ok", cause: "copy"})
	o := options(c)
	o.Memory = 256 << 20
	run := night1(t, o)
	if run.Diagnosed != 1 || run.Undiagnosed != 1 || run.Memory != o.Memory || (run.MemoryBy == analysis.MemoryGrouped) != (run.MemoryWhy == "") {
		t.Errorf("%+v", run)
	}
	t.Logf("%s %s", run.MemoryBy, run.MemoryWhy)
	e, err := c.Find(t.Context(), ids[0])
	if err != nil || !strings.Contains(e.Diagnosis.Reason, "more than 256 MiB") || e.Diagnosis.Memory < 256<<20 {
		t.Errorf("%+v, %v", e.Diagnosis, err)
	}
}

// An analysis that hangs uses only its own time, and no process of it is left, including the
// child that left its group.
func TestTime(t *testing.T) {
	c, ids := filled(t, failure{what: "hang"})
	o := options(c)
	o.Retry = true
	child := 0
	// On a busy machine it may not hang yet when its time is over.
	for o.Time = time.Second; child == 0 && o.Time < time.Minute; o.Time *= 2 {
		if run := night1(t, o); run.Undiagnosed != 1 {
			t.Fatalf("%+v", run)
		}
		if e, err := c.Find(t.Context(), ids[0]); err != nil || e.Diagnosis.Reason != fmt.Sprintf("it took longer than %v", o.Time) {
			t.Fatalf("%+v, %v", e.Diagnosis, err)
		}
		if text, err := os.ReadFile(os.Getenv(logName) + ".child"); err == nil {
			fmt.Sscan(string(text), &child)
		}
	}
	if child == 0 {
		t.Fatal("it never hung")
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); err == nil && !strings.Contains(string(text), ") Z ") {
		syscall.Kill(child, syscall.SIGKILL)
		t.Errorf("its child process %d is left", child)
	}
	if left, _ := os.ReadDir(filepath.Join(c.Dir, "incoming")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// The end of the night is not counted against the failure that is being analysed.
func TestTheNightEnds(t *testing.T) {
	c, ids := filled(t, failure{what: "hang"})
	o := options(c)
	o.Budget = time.Second
	if run := night1(t, o); run.NotReached != 1 || run.Diagnosed+run.Undiagnosed != 0 {
		t.Errorf("%+v", run)
	}
	if e, err := c.Find(t.Context(), ids[0]); err != nil || e.Diagnosis != nil {
		t.Errorf("%+v, %v", e.Diagnosis, err)
	}
	if set, err := c.Claimed(t.Context()); err != nil || len(set) != 0 {
		t.Errorf("%v, %v", set, err)
	}
}

func TestInterrupted(t *testing.T) {
	c, ids := filled(t, failure{what: "hang"})
	ctx, cancel := context.WithCancel(t.Context())
	o := options(c)
	o.Progress = func(Progress) { cancel() }
	if _, err := Diagnose(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if e, err := c.Find(t.Context(), ids[0]); err != nil || e.Diagnosis != nil {
		t.Errorf("%+v, %v", e.Diagnosis, err)
	}
}

// A command that cannot be run is not counted against a failure.
func TestNoCommand(t *testing.T) {
	c, ids := filled(t, failure{what: "ok"})
	o := options(c)
	o.Command = []string{filepath.Join(t.TempDir(), "missing")}
	if _, err := Diagnose(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if e, err := c.Find(t.Context(), ids[0]); err != nil || e.Diagnosis != nil {
		t.Errorf("%+v, %v", e.Diagnosis, err)
	}
}
