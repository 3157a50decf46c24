package verdict

import (
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

func TestPassedSameInput(t *testing.T) {
	run := func(call uint64, data string, args ...record.Text) *record.Recording {
		return &record.Recording{Manifest: &record.Manifest{Program: record.Program{Args: args}}, Log: eventLog(t, []eventlog.Event{
			{Kind: eventlog.KindStart, Object: 1, Args: []uint64{0, 4711, 0, 0, 0}},
			{Kind: eventlog.KindSyscall, Object: call, Args: []uint64{3, 0x7000, 16}, Result: int64(len(data)),
				Payloads: []eventlog.Payload{{Addr: 0x7000, Kind: eventlog.PayloadOut, Data: []byte(data)}}},
		})}
	}
	failing := run(unix.SYS_READ, "12", "a", "x")
	for name, c := range map[string]struct {
		passing *record.Recording
		want    bool
	}{
		"another name of the program": {run(unix.SYS_READ, "12", "b", "x"), true},
		"another argument":            {run(unix.SYS_READ, "12", "a", "y"), false},
		"other data":                  {run(unix.SYS_READ, "13", "a", "x"), false},
		"data of another call":        {run(unix.SYS_RECVFROM, "12", "a", "x"), true},
		"no data that was read":       {run(unix.SYS_UNAME, "12", "a", "x"), false},
	} {
		w := &work{rec: failing, Input: Input{Passing: []*record.Recording{run(unix.SYS_READ, "0", "a"), c.passing}}, inputs: inputs{}}
		if got := w.passedSameInput(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		// The logs are read once.
		c.passing.Log, w.Passing[0].Log = nil, nil
		if got := w.passedSameInput(); got != c.want {
			t.Errorf("%s, asked again: %v, want %v", name, got, c.want)
		}
	}
	if (&work{rec: failing, inputs: inputs{}}).passedSameInput() {
		t.Error("a passing run where there is none")
	}
}
