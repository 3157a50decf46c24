package driver

import (
	"errors"
	"os"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
)

// The thread that ended the process with a status is the failing one, unless the process itself
// names another.
func TestMarkExited(t *testing.T) {
	rs := &recordings{exit: &record.Outcome{TID: 12}}
	for was, want := range map[int]int{-1: 1, 0: 0} {
		p := &image.Process{Failing: was, Threads: []image.Thread{{Ref: evidence.ThreadRef{TID: 11}}, {Ref: evidence.ThreadRef{TID: 12}}}}
		if rs.markExited(p); p.Failing != want {
			t.Errorf("failing %d becomes %d, want %d", was, p.Failing, want)
		}
	}
}

// The end of a replay completes the outcome of a recording that does not have the end, and does not
// change one that does.
func TestCompleteOutcome(t *testing.T) {
	thread := &image.Thread{Ref: evidence.ThreadRef{Number: 2, TID: 12}, Signal: &evidence.Signal{Number: 11, Addr: 0x40, HasAddr: true}}
	thread.Registers.Set(image.RIP, 0x1000)
	for _, x := range []struct {
		was    record.Outcome
		number int
	}{{record.Outcome{Kind: record.OutcomeCut}, 11}, {record.Outcome{Kind: record.OutcomeSignal, Signal: 9}, 9}} {
		rec := &record.Recording{Dir: "run", Manifest: &record.Manifest{Outcome: x.was}}
		limit := (&recordings{failing: []*record.Recording{rec}}).completeOutcome(thread)
		o := &rec.Manifest.Outcome
		if o.Kind != record.OutcomeSignal || o.Signal != x.number || limit.Text == "" || limit.Subject != "run" {
			t.Errorf("%v becomes %+v; limit %+v", &x.was, o, limit)
		}
		if x.number == 11 && (o.TID != 12 || o.PC == nil || *o.PC != 0x1000 || o.FaultAddr == nil || *o.FaultAddr != 0x40) {
			t.Errorf("the completed outcome is %+v", o)
		}
	}
}

// Recordings determine how the process is read only if the request names no process.
func TestRefusedCalls(t *testing.T) {
	rec := &record.Recording{Manifest: &record.Manifest{Refused: []record.Refused{{Call: "ptrace", Error: "EPERM"}}}}
	for given, want := range map[bool]int{false: 1, true: 0} {
		rs := &recordings{failing: []*record.Recording{rec}, given: given}
		if got := rs.refusedCalls(); len(got) != want {
			t.Errorf("given %v: %+v", given, got)
		}
	}
	if got := (&recordings{}).refusedCalls(); got != nil {
		t.Errorf("without a recording: %+v", got)
	}
}

// A recording that the caller opened is used as it is, once, and is not closed here.
func TestOpenedByCaller(t *testing.T) {
	given := &record.Recording{Dir: "given"}
	rs := &recordings{}
	opened := map[string]*record.Recording{"given": given}
	r, err := rs.openOne(t.Context(), "given", opened)
	if err != nil || r != given || len(rs.opened) != 0 {
		t.Fatalf("got %v, %v, and %d to be closed", r, err, len(rs.opened))
	}
	rs.failing = append(rs.failing, r)
	if r, err := rs.openOne(t.Context(), "given", opened); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second time it is not opened: %v, %v", r, err)
	}
}
