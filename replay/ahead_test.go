package replay_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/patch"
	"diagnose/replay/record"
)

// executed is an instruction, with all by which two traces are compared.
type executed struct {
	replay.Executed
	op string
}

// traced is a part of a replay.
type traced struct {
	list   []executed
	copied int
	end    replay.EndKind
	took   time.Duration
}

// flagsAtCall are the flags that are always set while a program makes a system call; the processor puts them into r11.
const flagsAtCall = 0x202

// traceOf executes a part of a recording one instruction at a time, or ahead in copies of the code.
func traceOf(t *testing.T, rec *record.Recording, windows map[uint32]replay.StepWindow, most uint64, ahead bool) (*traced, error) {
	t.Helper()
	x, started := &traced{}, time.Now()
	result, err := replay.Run(t.Context(), rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager, Unnamed: true},
		Stepping: replay.Stepping{Windows: windows, Most: most, Ahead: ahead, Each: func(i *replay.Executed) {
			e := executed{Executed: *i}
			if i.Inst != nil {
				e.op = i.Inst.Op
				if holds, known := transfer.Holds(e.op, i.Flags); known && !i.Ahead && strings.HasPrefix(e.op, "cmov") {
					e.Holds = holds
				}
			}
			if i.Ahead {
				x.copied++
			}
			if r := &e.General[x86.R11]; *r&^patch.ResultFlags == flagsAtCall {
				*r = flagsAtCall // the engine's flags at a system call, which may come from the number of a thread
			}
			e.Inst, e.Flags, e.Ahead = nil, 0, false
			x.list = append(x.list, e)
		}}})
	x.took = time.Since(started)
	if err == nil {
		x.end = result.End
	}
	return x, err
}

// compareAhead compares the instructions of copies of the code with single steps, and returns how many instructions
// were compared, and how many of them were executed in copies.
func compareAhead(t *testing.T, rec *record.Recording, windows map[uint32]replay.StepWindow, most uint64) (compared, copied int) {
	t.Helper()
	want, err := traceOf(t, rec, windows, most, false)
	if err != nil {
		t.Logf("single steps: %v", err)
		return 0, 0
	}
	have, err := traceOf(t, rec, windows, most, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d instructions, %d in copies; %v, %v", len(want.list), have.copied, want.took, have.took)
	cloned := 0
	for i := range min(len(want.list), len(have.list)) {
		if i > 0 && want.list[i-1].op == "syscall" && want.list[i-1].General[x86.RAX] == unix.SYS_CLONE3 {
			const soon = 64 // instructions, after which the thread's number is no longer in the register
			cloned = i + soon
		}
		if i < cloned {
			want.list[i].General[x86.RAX] = have.list[i].General[x86.RAX]
		}
		if want.list[i] != have.list[i] {
			t.Fatalf("instruction %d is %+v, not %+v; the one before is %+v", i, have.list[i], want.list[i], want.list[max(i-1, 0)])
		}
	}
	if len(want.list) != len(have.list) || want.end != have.end || want.copied != 0 {
		t.Errorf("%d instructions up to %v, not %d up to %v", len(have.list), have.end, len(want.list), want.end)
	}
	return len(want.list), have.copied
}

// windowsFrom are windows of all threads that begin with the same share of their events.
func windowsFrom(t *testing.T, rec *record.Recording, part, of uint64) map[uint32]replay.StepWindow {
	t.Helper()
	schedule, err := rec.Log.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	windows := map[uint32]replay.StepWindow{}
	for thread, events := range schedule.Events() {
		windows[thread] = replay.StepWindow{From: max(events*part/of, 1), To: 1 << 62}
	}
	return windows
}

// onOneProcessor keeps the test's processes on one processor: cpuid tells its number.
func onOneProcessor(t *testing.T) {
	t.Helper()
	var own, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(own) * 64 {
		if own.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	set := func(to *unix.CPUSet) {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range threads {
			tid, err := strconv.Atoi(x.Name())
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.SchedSetaffinity(tid, to); err != nil && !errors.Is(err, unix.ESRCH) {
				t.Fatal(err)
			}
		}
	}
	set(&one)
	t.Cleanup(func() { set(&own) })
}

// everyProgram: the oracle runs all programs (make flow-oracle).
func everyProgram() bool { return os.Getenv("DIAGNOSE_MATRIX") == "full" }

// Copies of the code of real programs execute the same instructions, with the same registers, as single steps.
func TestAheadOfRealPrograms(t *testing.T) {
	onOneProcessor(t)
	const most, parts = 20_000, 12
	step, compared := uint64(4), 0
	if everyProgram() {
		step = 1
	}
	for _, command := range [][]string{
		{"sort", "/etc/services"},
		{"gzip", "-c", "/etc/services"},
		{"awk", "{ n += length($0) } END { print n, sin(n) }", "/etc/services"},
		{"perl", "-e", "my %h; $h{$_ % 7} .= $_ for 1..300; print join(',', map { $h{$_} } sort keys %h)"},
		{"python3", "-S", "-c", "print(sum(len(str(i / 3)) for i in range(2000)))"},
	} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			rec, err := record.Open(recordtest.RecordProgram(t, path, command[1:], "", "").Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			for part := uint64(0); part < parts; part += step {
				n, copied := compareAhead(t, rec, windowsFrom(t, rec, part, parts), most)
				compared += n
				if n > most/2 && copied < n/2 {
					t.Errorf("only %d of %d instructions in copies", copied, n)
				}
			}
		})
	}
	if compared < 5*most {
		t.Errorf("only %d instructions were compared", compared)
	}
}

// The same for programs with faults, signals, threads and preemptions within the part.
func TestAheadOfPrograms(t *testing.T) {
	const most = 10_000
	onOneProcessor(t)
	for n, p := range slices.Concat(recordtest.Programs(t, "../internal/testdata/record"), recordtest.Programs(t, "../internal/testdata/flow")) {
		if !everyProgram() && n%16 != 0 || p.Never != "" || p.Varies != "" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			if p.Name == "threads/fails_unbegun" {
				t.Skip("its threads have no events when it fails: what they execute until then is not recorded, and two replays differ")
			}
			for _, r := range []*recordtest.Recorded{p.Record(t), p.RecordTurns(t, 7)} {
				rec, err := record.Open(r.Dir)
				if err != nil {
					t.Fatal(err)
				}
				compareAhead(t, rec, windowsFrom(t, rec, 0, 2), most)
				compareAhead(t, rec, windowsFrom(t, rec, 1, 2), most)
				rec.Close()
			}
		})
	}
}

// A replay whose instructions are executed in copies ends as the recording did, byte by byte.
func TestAheadEndsIdentically(t *testing.T) {
	// Single steps end otherwise in one of 15 replays of these programs, too: see docs/flow.md. On a loaded machine all replays of one recording may: where
	// threads were when the program ended is not in it.
	const tries = 5
	for _, name := range []string{"faults/busy", "threads/c11"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read("../internal/testdata/record/" + name + ".c")
			if err != nil {
				t.Fatal(err)
			}
			last := ""
			for range tries {
				if last = endsOtherwise(t, p.Record(t).Dir); last == "" {
					return
				}
				t.Log(last)
			}
			t.Errorf("none of %d recordings was replayed to its end; the last: %s", tries, last)
		})
	}
}

// endsOtherwise replays a recording in copies of the code and says how its end differs from the recorded one; empty: not at all.
func endsOtherwise(t *testing.T, dir string) string {
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	copied := 0
	result, err := replay.Run(t.Context(), rec, replay.StepRequest{Common: replay.Common{Timing: record.TimingEager}, Verify: true,
		Stepping: replay.Stepping{Windows: windowsFrom(t, rec, 0, 1), Ahead: true, Each: func(x *replay.Executed) {
			if x.Ahead {
				copied++
			}
		}}})
	switch {
	case err != nil:
		return err.Error()
	case copied == 0:
		t.Error("no instruction was executed in copies")
	case result.Comparison == nil || !result.Comparison.Identical():
		return recordtest.Differences(result)
	}
	return ""
}
