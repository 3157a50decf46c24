package replay_test

import (
	"runtime"
	"strconv"
	"testing"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// TestTurns is TestIdentity where threads take turns.
func TestTurns(t *testing.T) {
	times := replays(t)
	for _, p := range recordtest.Programs(t, "../internal/testdata/record") {
		t.Run(p.Name, func(t *testing.T) {
			if p.Never != "" {
				t.Skip(p.Never)
			}
			needsMachine(t, p)
			r := p.RecordTurns(t, 1)
			if p.Varies != "" {
				recordtest.Reaches(t, r.Dir, times)
				return
			}
			recordtest.Identical(t, r.Dir, times)
		})
	}
}

// TestTurnsSignalled: a thread that waits for its turn at an instruction gives the process's signal to another thread. It has arrived
// there once.
func TestTurnsSignalled(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/record/faults/busy.c")
	if err != nil {
		t.Fatal(err)
	}
	const recordings = 5 // in one of seven, a thread's arrival was counted twice
	for range recordings {
		recordtest.Identical(t, p.RecordTurns(t, 1).Dir, 1)
	}
}

// needsDebugRegisters skips a test whose replays need debug registers: its turns end in code that is written after the replay has begun, which
// writes over a trap.
func needsDebugRegisters(t *testing.T) {
	t.Helper()
	if err := ptrace.DebugRegistersFire(); err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
}

// TestTurnsGeneratedCode: turns end in code that the program has written, which is among the memory that a place is compared by.
func TestTurnsGeneratedCode(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			p, err := recordtest.Read("../internal/testdata/turns/generated.c")
			if err != nil {
				t.Fatal(err)
			}
			if when == "after" {
				needsDebugRegisters(t)
			}
			p.Args = []string{when}
			for seed := range uint64(20) {
				r := p.RecordTurns(t, seed+1)
				if turnsInGenerated(t, r) > 0 {
					recordtest.Identical(t, r.Dir, 3)
					return
				}
			}
			t.Error("no turn of 20 recordings ended in the code that the program wrote")
		})
	}
}

// turnsInGenerated counts the turns of a recording that ended outside of all objects.
func turnsInGenerated(t *testing.T, r *recordtest.Recorded) (count int) {
	t.Helper()
	rec, core := r.Open(t)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != eventlog.KindPoint {
			continue
		}
		if m := core.MappingAt(evidence.Addr(e.Object)); m == nil || m.Path == "" {
			count++
		}
	}
	return count
}

// TestTurnsVariables: turns of young threads end where the program's code names a variable.
func TestTurnsVariables(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/turns/list.c")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for seed := range uint64(60) {
		r := p.RecordTurns(t, seed+1)
		if turnsAtVariables(t, r) == 0 {
			continue
		}
		recordtest.Identical(t, r.Dir, 3)
		if found++; found == 3 {
			return
		}
	}
	t.Errorf("in %d of 60 recordings a turn ended at an access to the list's head, want 3", found)
}

// TestTurnsSpawn: neither a vfork nor a mapped file takes the memory away in which the engine counts the arrivals of another thread.
func TestTurnsSpawn(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/turns/spawn_counted.c")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		recordtest.Identical(t, p.RecordTurns(t, seed+1).Dir, 3)
	}
}

// TestTurnsAtLock: a thread whose turn ended at the lock of a mutex, and that has no later event, does not take it in the replay.
func TestTurnsAtLock(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/cases/races/stack_pool.c")
	if err != nil {
		t.Fatal(err)
	}
	p.Ends = ""
	for seed := range uint64(8) {
		recordtest.Identical(t, p.RecordTurns(t, seed+1).Dir, 1)
	}
}

// TestTurnsExchange: two threads that spin until the other has done its part change where they do, and need no end of a turn by time.
func TestTurnsExchange(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/cause/search_publish.c")
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 4000
	p.Args, p.Ends = []string{strconv.Itoa(rounds)}, ""
	for seed := range uint64(2) {
		r := p.RecordTurns(t, seed+1)
		atVariables, byTime := turnsAtVariables(t, r), turnsByTime(t, r)
		if atVariables < 2*rounds || byTime > rounds/4 {
			t.Errorf("of %d exchanges, %d turns ended at variables, and %d by time", rounds, atVariables, byTime)
		}
		recordtest.Identical(t, r.Dir, 1)
	}
}

// turnsAtVariables counts the turns of a recording that ended at an instruction which a replay finds by the number of arrivals.
func turnsAtVariables(t *testing.T, r *recordtest.Recorded) int {
	return turnsThatEnded(t, r, agent.PointPC)
}

// turnsByTime counts those that ended at any instruction.
func turnsByTime(t *testing.T, r *recordtest.Recorded) int {
	return turnsThatEnded(t, r, agent.PointState)
}

func turnsThatEnded(t *testing.T, r *recordtest.Recorded, class uint64) (count int) {
	t.Helper()
	rec, _ := r.Open(t)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindPoint && e.Args[0] == class {
			count++
		}
	}
	return count
}

// TestTurnsOnce: a thread that waited for an initialisation by another one continues where it did.
func TestTurnsOnce(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/turns/initialised.c")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(8) {
		recordtest.Identical(t, p.RecordTurns(t, seed+1).Dir, 1)
	}
}

// TestTurnsPending: a thread whose turn is over when the process ends is there in the replay, too.
func TestTurnsPending(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/turns/pending.c")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for seed := range uint64(20) {
		r := p.RecordTurns(t, seed+1)
		rec, _ := r.Open(t)
		const mainThread = 1
		pending := false
		for c := rec.Log.Cursor(mainThread); ; {
			e, err := c.Next()
			if err != nil {
				break
			}
			pending = e.Pending()
		}
		if !pending {
			continue
		}
		recordtest.Identical(t, r.Dir, 3)
		if found++; found == 3 {
			return
		}
	}
	t.Errorf("in %d of 20 recordings the process ended while main had no turn, want 3", found)
}

// TestTurnsProcessor: the replay is on the processor that the threads ran on, which cpuid tells them.
func TestTurnsProcessor(t *testing.T) {
	for _, args := range [][]string{nil, {"extended"}} {
		p, err := recordtest.Read("../internal/testdata/turns/processor.c")
		if err != nil {
			t.Fatal(err)
		}
		p.Args = args
		r := p.RecordTurns(t, 1)
		rec, err := record.Open(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		turns := rec.Manifest.Turns
		rec.Close()
		if turns == nil || turns.Processor == nil {
			t.Fatalf("the recording does not name the processor: %+v", turns)
		}
		// Without that, replays take the processors in turn.
		recordtest.Identical(t, r.Dir, max(2, runtime.NumCPU()))
	}
}
