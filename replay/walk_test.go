package replay_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// callIn returns the first call of one function in another.
func callIn(t *testing.T, core *image.Process, from, to string) evidence.Addr {
	t.Helper()
	s, found := core.SymbolNamed(from)
	if !found || s.Size == 0 {
		t.Fatalf("there is no function %s", from)
	}
	code := make([]byte, s.Size)
	if _, err := core.ReadMemory(s.Addr, code); err != nil {
		t.Fatal(err)
	}
	target := symbol(t, core, to)
	insts, _ := x86.Function(code, uint64(s.Addr))
	for i := range insts {
		if insts[i].Flow == x86.FlowCall && insts[i].Target == uint64(target) {
			return evidence.Addr(insts[i].PC)
		}
	}
	t.Fatalf("%s does not call %s", from, to)
	return 0
}

// A walk follows a call, and a call that this makes; deeper calls run at full speed.
func TestWalk(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "got_null_deep")
	if out, err := exec.Command("gcc", "-g", "-O0", "-o", exe, "../internal/testdata/cause/got_null_deep.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, []string{"depth", "colour"}, "", "SIGSEGV").Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	core, err := image.OpenCore(filepath.Join(rec.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	schedule, err := rec.Log.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	at := evidence.Moment{Thread: 1, Ordinal: schedule.Events()[1], PC: callIn(t, core, "main", "setting"), Count: 2}
	inner := callIn(t, core, "setting", "default_of")
	walk := func(into []int, most int) (pcs [2][]evidence.Addr, back evidence.Addr, value uint64, err error) {
		w := &replay.Walk{At: at, Into: into, Most: most}
		w.On = func(_ *replay.Stopped, level int, regs *image.Registers) error {
			pcs[level] = append(pcs[level], regs.PC())
			return nil
		}
		w.Done = func(_ *replay.Stopped, regs *image.Registers) error {
			back = regs.PC()
			value, _ = regs.Get(image.RAX)
			return nil
		}
		_, err = replay.Run(t.Context(), rec, replay.WalkRequest{Walk: *w})
		return pcs, back, value, err
	}
	const most = 1000
	pcs, back, value, err := walk(nil, most)
	if err != nil {
		t.Fatal(err)
	}
	call := -1
	for i, pc := range pcs[0] {
		if pc == inner {
			call = i
		}
	}
	function, _ := core.SymbolNamed("setting")
	for _, pc := range pcs[0] {
		if pc < function.Addr || pc >= function.Addr+evidence.Addr(function.Size) {
			t.Errorf("%v is not in setting", pc)
		}
	}
	if call < 0 || value != 0 || back <= at.PC || back > at.PC+15 {
		t.Fatalf("call %d, back at %v with %#x", call, back, value)
	}
	again, back, value, err := walk([]int{call}, most)
	if err != nil || len(again[0]) != call+1 || len(again[1]) == 0 || value != 0 || back <= inner || back > inner+15 {
		t.Errorf("%v; %d and %d instructions, back at %v with %#x", err, len(again[0]), len(again[1]), back, value)
	}
	var short *replay.WalkError
	if _, _, _, err := walk(nil, 3); !errors.As(err, &short) {
		t.Errorf("of more than 3 instructions: %v", err)
	}
}
