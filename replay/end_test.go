package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

func recordBasic(t *testing.T, name string) *recordtest.Recorded {
	t.Helper()
	p, err := recordtest.Read(filepath.Join("../internal/testdata/record/basic", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Record(t)
}

// mostRecordings bounds how often a program is recorded until it shows the behavior under test.
const mostRecordings = 50

func open(t *testing.T, dir string) *record.Recording {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// coreOf opens the core of the recording's end.
func coreOf(t *testing.T, rec *record.Recording) *image.Process {
	t.Helper()
	core, err := image.OpenCore(rec.Dir+"/"+record.CoreName, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { core.Close() })
	return core
}

// findCall returns the first event of a system call.
func findCall(t *testing.T, rec *record.Recording, number uint64) eventlog.Event {
	t.Helper()
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindSyscall && e.Object == number {
			return *e
		}
	}
	t.Fatalf("the recording has no %s", eventlog.SyscallName(number))
	return eventlog.Event{}
}

func TestMoment(t *testing.T) {
	rec := open(t, recordBasic(t, "null").Dir)
	write := findCall(t, rec, unix.SYS_WRITE)
	at := evidence.Moment{Thread: 1, Ordinal: write.Ordinal}
	var stack []string
	var text uint64
	r, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: at, Do: func(s *replay.Stopped) error {
		var err error
		if stack, err = s.Stack(); err != nil {
			return err
		}
		if s.Moment.Ordinal != at.Ordinal || s.Moment.PC == 0 {
			t.Errorf("stopped at %v, want %v with a pc", s.Moment, at)
		}
		p, err := s.Process()
		if err != nil {
			return err
		}
		symbol, ok := p.SymbolNamed("text")
		if !ok {
			return errors.New("no symbol text")
		}
		var b [8]byte
		if _, err := s.ReadMemory(symbol.Addr, b[:]); err != nil {
			return err
		}
		text = binary.LittleEndian.Uint64(b[:])
		return replay.ErrEnough
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if r.End != replay.EndMoment || r.Events < write.Ordinal || r.Events > r.Total {
		t.Errorf("ended with %q after %d of %d events", r.End, r.Events, r.Total)
	}
	if !strings.Contains(strings.Join(stack, "\n"), "main (null.c:") {
		t.Errorf("the stack is %q", stack)
	}
	if text == 0 {
		t.Error("text was not read")
	}
}

// Moments at one address after one event are reached one after the other.
func TestMomentCounts(t *testing.T) {
	rec := open(t, recordBasic(t, "calls").Dir)
	core := coreOf(t, rec)
	step, ok1 := core.SymbolNamed("step")
	done, ok2 := core.SymbolNamed("done")
	if !ok1 || !ok2 {
		t.Fatal("no symbols step and done")
	}
	for _, test := range []struct {
		counts []uint64
		every  bool
		want   []byte
	}{
		{[]uint64{1, 2, 3, 7}, false, []byte{0, 1, 2, 6}},
		{[]uint64{1}, true, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{[]uint64{7}, true, []byte{6, 7, 8}},
		{[]uint64{10}, true, nil},
	} {
		var seen []byte
		var hooks []replay.Hook
		for _, count := range test.counts {
			hooks = append(hooks, replay.Hook{At: evidence.Moment{Thread: 1, Ordinal: 1, PC: step.Addr, Count: count}, Every: test.every, Do: func(s *replay.Stopped) error {
				var b [1]byte
				_, err := s.ReadMemory(done.Addr, b[:])
				if seen = append(seen, b[0]); s.Moment.Count != uint64(b[0])+1 {
					t.Errorf("arrival %d is said to be %d", b[0]+1, s.Moment.Count)
				}
				return err
			}})
		}
		if _, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: hooks}}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(seen, test.want) {
			t.Errorf("done was %v at %v (every %v), want %v", seen, test.counts, test.every, test.want)
		}
	}
}

func TestMomentNotReached(t *testing.T) {
	rec := open(t, recordBasic(t, "null").Dir)
	write := findCall(t, rec, unix.SYS_WRITE)
	at := evidence.Moment{Thread: 1, Ordinal: write.Ordinal, PC: 0x10, Count: 1}
	_, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: at, Do: func(*replay.Stopped) error { return nil }}}}})
	var never *replay.MomentError
	if !errors.As(err, &never) || never.Moment != at {
		t.Errorf("a pc that is never reached: %v", err)
	}
}

// TestDivergence changes the log of a call.
func TestDivergence(t *testing.T) {
	dir := recordBasic(t, "null").Dir
	write := findCall(t, open(t, dir), unix.SYS_WRITE)
	f, err := os.OpenFile(filepath.Join(dir, record.LogName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	const header = 48 // sizeof(struct dg_event)
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, write.Args[2]+1), write.Offset+header+2*8)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := replay.Run(t.Context(), open(t, dir), replay.PlainRequest{})
	var d *replay.DivergenceError
	if !errors.As(err, &d) {
		t.Fatalf("a changed log replays: %v", err)
	}
	if d.Reason != replay.DiffersArgument || d.Place != 2 || d.Want != d.Have+1 || d.Moment.Ordinal != write.Ordinal {
		t.Errorf("%+v", d)
	}
	for _, part := range []string{"thread 1, event ", "the recording has write(1, ", "write.c", "in the replay argument 3 is "} {
		if !strings.Contains(d.Error(), part) {
			t.Errorf("%q is missing in %q", part, d.Error())
		}
	}
	if !strings.Contains(strings.Join(d.Stack, "\n"), "main (null.c:") {
		t.Errorf("the stack is %q", d.Stack)
	}
	if r.End != replay.EndDiverged || r.Events != write.Ordinal-1 {
		t.Errorf("ended with %q after %d events", r.End, r.Events)
	}
}

func TestChangedProgram(t *testing.T) {
	r := recordBasic(t, "exit")
	path := string(open(t, r.Dir).Manifest.Program.Path)
	other, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, other, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = replay.Run(t.Context(), open(t, r.Dir), replay.PlainRequest{})
	var input *replay.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), path) {
		t.Errorf("another program in the recorded one's place: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	rec := open(t, recordBasic(t, "null").Dir)
	write := findCall(t, rec, unix.SYS_WRITE)
	ctx, cancel := context.WithCancel(t.Context())
	pid := 0
	_, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: evidence.Moment{Thread: 1, Ordinal: write.Ordinal},
		Do: func(s *replay.Stopped) error {
			pid = s.PID()
			cancel()
			return ctx.Err()
		}}}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a replay that was cancelled: %v", err)
	}
	if unix.Kill(pid, 0) != unix.ESRCH {
		t.Errorf("process %d was not ended", pid)
	}
}

// TestImpossibleOrder replays main's join before all events of the other thread.
func TestImpossibleOrder(t *testing.T) {
	rec := open(t, recordBasic(t, "wait").Dir)
	recorded, err := rec.Log.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	counts := recorded.Events()
	if len(counts) != 2 {
		t.Fatalf("%d threads were recorded, want 2", len(counts))
	}
	wrong := eventlog.Schedule{{Thread: 1, Events: uint32(counts[1])}, {Thread: 2, Events: uint32(counts[2])}}
	_, err = replay.Run(t.Context(), rec, replay.PlainRequest{Schedule: wrong})
	var d *replay.DivergenceError
	if !errors.As(err, &d) || d.Reason != replay.DiffersState || d.Expected == nil || d.Expected.Kind != eventlog.KindJoin {
		t.Errorf("a join of a thread that has not run: %v", err)
	}
}

// TestStuck gives a program that computes less time than it needs.
func TestStuck(t *testing.T) {
	rec := open(t, recordBasic(t, "compute").Dir)
	const inMain = "main (compute.c:"
	var r *replay.Result
	var stuck *replay.StuckError
	// On a busy machine the start alone may take that long, or the watchdog may not look while the
	// program computes.
	for range 20 {
		var err error
		r, err = replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Computing: 50 * time.Millisecond}})
		if !errors.As(err, &stuck) && err != nil {
			t.Fatalf("a replay without events for a long time: %v", err)
		}
		if err != nil && len(stuck.Threads) > 0 && strings.Contains(stuck.Threads[0].At, inMain) {
			break
		}
	}
	if stuck == nil {
		t.Fatal("a replay without events for a long time was continued")
	}
	if !stuck.Computing || len(stuck.Threads) != 1 || stuck.Threads[0].Thread != 1 || !strings.Contains(stuck.Threads[0].At, inMain) {
		t.Errorf("%+v", stuck)
	}
	if r.End != replay.EndStuck || r.Events >= r.Total {
		t.Errorf("ended with %q after %d of %d events", r.End, r.Events, r.Total)
	}
}

// TestHandOver lets gdb attach at the failure.
func TestHandOver(t *testing.T) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip(err)
	}
	rec := open(t, recordBasic(t, "null").Dir)
	var said []byte
	pid := 0
	_, err = replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{AtEnd: func(s *replay.Stopped) error {
		return s.HandOver(func(p int) error {
			pid = p
			var err error
			said, err = exec.CommandContext(t.Context(), gdb, "-nx", "-batch", "-p", strconv.Itoa(p), "-ex", "bt", "-ex", "print text").CombinedOutput()
			return err
		})
	}}})
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, part := range []string{"main () at ", "null.c:", `"a text at 0x`} {
		if !strings.Contains(string(said), part) {
			t.Errorf("%q is missing in what gdb says:\n%s", part, said)
		}
	}
	if unix.Kill(pid, 0) != unix.ESRCH {
		t.Errorf("process %d was not ended", pid)
	}
}

// TestChildren replays recordings of forked processes, with the replays of their ancestors before
// them.
func TestChildren(t *testing.T) {
	dirs := []string{recordBasic(t, "forks").Dir}
	ends := []replay.EndKind{replay.EndFailure, replay.EndExit, replay.EndFailure}
	for i, end := range ends {
		if i == len(dirs) {
			t.Fatalf("%d recordings, want %d", len(dirs), len(ends))
		}
		rec := open(t, dirs[i])
		for _, c := range rec.Manifest.Children {
			dirs = append(dirs, filepath.Join(rec.Dir, filepath.FromSlash(c.Path)))
		}
		r, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true})
		if err != nil {
			t.Fatalf("%s: %v", dirs[i], err)
		}
		if text := recordtest.Differences(r); text != "" {
			t.Errorf("%s: %s", dirs[i], text)
		}
		if r.End != end || r.Moment.Thread != 1 {
			t.Errorf("%s ended with %q at %v, want %q", dirs[i], r.End, r.Moment, end)
		}
	}
	if len(dirs) != len(ends) {
		t.Errorf("%d recordings, want %d", len(dirs), len(ends))
	}
}

// TestVforked replays the recording of a child of vfork, up to its exec.
func TestVforked(t *testing.T) {
	parent := open(t, recordBasic(t, "vforks").Dir)
	if len(parent.Manifest.Children) != 1 {
		t.Fatalf("%d children, want one", len(parent.Manifest.Children))
	}
	rec := open(t, filepath.Join(parent.Dir, filepath.FromSlash(parent.Manifest.Children[0].Path)))
	r, err := replay.Run(t.Context(), rec, replay.PlainRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r.End != replay.EndExec || r.Events != r.Total || r.Total == 0 {
		t.Errorf("ended with %q after %d of %d events", r.End, r.Events, r.Total)
	}
}

// TestHandOverAtMoment: a process that was handed over at a moment is not examined afterwards.
func TestHandOverAtMoment(t *testing.T) {
	at := evidence.Moment{Thread: 1, Ordinal: 2}
	var pid, tid int
	r, err := replay.Run(t.Context(), open(t, recordBasic(t, "wait").Dir), replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: at, Do: func(s *replay.Stopped) error {
		tid = s.TID()
		return s.HandOver(func(p int) error { pid = p; return nil })
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if r.End != replay.EndMoment || r.Moment.Ordinal != at.Ordinal || r.Events < at.Ordinal || r.Events >= r.Total {
		t.Errorf("ended with %q at %v after %d of %d events", r.End, r.Moment, r.Events, r.Total)
	}
	if pid == 0 || tid != pid {
		t.Errorf("process %d was handed over at thread %d", pid, tid)
	}
}

// A signal that ends the process after another thread's exit is in the log is the end of the
// replay, too: the exit waits for ever.
func TestReplayExitOvertaken(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/hunt/exit_overtaken.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := p.Build(t)
	const most = 4 * mostRecordings
	for range most {
		r := recordtest.RecordProgram(t, exe, nil, "", "")
		rec := open(t, r.Dir)
		if rec.Manifest.Outcome.Kind != record.OutcomeSignal || !hasEvent(t, rec, eventlog.KindEnd) {
			continue
		}
		o, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if text := recordtest.Differences(o); text != "" || o.End != replay.EndFailure || o.Signal != int(unix.SIGABRT) {
			t.Fatalf("the replay ended with %v, signal %d: %s", o.End, o.Signal, text)
		}
		return
	}
	t.Skipf("in %d recordings no signal came after the exit was in the log", most)
}

func hasEvent(t *testing.T, rec *record.Recording, kind eventlog.Kind) bool {
	t.Helper()
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == kind {
			return true
		}
	}
	return false
}
