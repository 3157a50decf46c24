package recorder

import (
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"diagnose/agent"
	"diagnose/replay/ptrace"
)

// opener returns a process that was told where its files are: this one, with its own control
// page.
func opener(t *testing.T) (*process, *agent.RawControl) {
	t.Helper()
	memory, err := ptrace.OpenMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	c := &agent.RawControl{Magic: agent.RecordMagic, Version: agent.RecordVersion, Mode: agent.ModeRecord, LogFD: -1, DataFD: -1}
	r := &recording{run: &run{order: &order{}}, memory: memory, controlAt: uint64(uintptr(unsafe.Pointer(c)))}
	return &process{pid: os.Getpid(), recording: r}, c
}

// A process that has opened its files, or will not open them, is not waited for.
func TestOpening(t *testing.T) {
	p, c := opener(t)
	told := *c
	for name, x := range map[string]struct {
		change func()
		want   bool
	}{
		"told":    {func() {}, true},
		"open":    {func() { c.LogFD = 900 }, false}, // the data file is created when there is data
		"refused": {func() { c.Mode, c.Stopped = 0, agent.LimitStart }, false},
		"gone":    {func() { c.Magic = 0 }, false},
	} {
		*c = told
		x.change()
		if got := p.recording.opening(); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if p.recording.controlAt = 0; p.recording.opening() {
		t.Error("a control page that cannot be read is waited for")
	}
}

// A run gets its name after its processes have opened their files. The rename would make the
// files' names invalid.
func TestNameWaitsForFiles(t *testing.T) {
	waiting, c := opener(t)
	processes := map[int]*process{1: {pid: 1}, 2: waiting}
	var open atomic.Bool
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(20 * time.Millisecond)
		open.Store(true)
		c.LogFD = 900
	}()
	awaitOpening(processes)
	if !open.Load() && time.Since(begun) < longestOpening {
		t.Error("it has its name before the files were opened")
	}
	<-ended
}
