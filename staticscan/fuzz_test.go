package staticscan

import (
	"encoding/hex"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

func seed(f *testing.F, more ...any) {
	for _, test := range flowTests {
		code, err := hex.DecodeString(test.code)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]any{code}, more...)...)
	}
}

// maxFuzzCode keeps one input far below a second.
const maxFuzzCode = 4096

func FuzzFlow(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, code []byte) {
		insts, _ := x86.Function(code[:min(len(code), maxFuzzCode)], 0x1000)
		a := analyseCode(insts, 0x1000, fakeSurroundings())
		for _, x := range a.accesses {
			if x.at.kind == loaded && (x.at.cell == nil || x.at.cell.hops > maxHops) {
				t.Fatalf("a loaded value without a cell, or %d pointers deep", x.at.cell.hops)
			}
			if x.at.kind != loaded && x.at.cell != nil {
				t.Fatalf("%v carries a cell", x.at)
			}
		}
	})
}

// fakeTrail is a process of code and a few words, stopped at an instruction.
func fakeTrail(code []byte, at uint64, regs image.Registers) (*originSearch, *backwardSlice, *evidence.Signal) {
	insts, _ := x86.Function(code[:min(len(code), maxFuzzCode)], 0x1000)
	if len(insts) == 0 {
		return nil, nil, nil
	}
	in := &Input{Process: &image.Process{Failing: -1, Mappings: []image.Mapping{
		{Start: 0x1000, End: 0x3000, Perms: "r-x"}, {Start: 0x4000, End: 0x5000, Perms: "rw-"}, {Start: fakeHeap, End: 0xa000, Perms: "rw-"},
	}}}
	around := fakeSurroundings()
	w := newWorld(in)
	w.memory = around.memory
	w.writable = []dataRange{{fakeData, fakeDataEnd, &image.Module{}}}
	a := analyseCode(insts, 0x1000, around)
	a.function = &function{name: "f", entry: 0x1000, ranges: [][2]evidence.Addr{{0x1000, 0x3000}}}
	pc := insts[at%uint64(len(insts))].PC
	regs.Set(image.RIP, pc)
	frame := unwind.Frame{Kind: evidence.Physical, Trust: evidence.TrustContext, Registers: regs, CFA: 0x8000}
	in.Frames = []unwind.Frame{frame}
	t := &originSearch{in: in, processView: w, hops: defaultHops}
	return t, w.openSlice(in, 0, &in.Frames[0], a, regs), &evidence.Signal{Number: sigSEGV, Code: 1}
}

func FuzzSlice(f *testing.F) {
	seed(f, uint64(3), uint64(fakeHeap), uint64(fakeData), byte(sigSEGV))
	f.Fuzz(func(t *testing.T, code []byte, at, low, step uint64, signal byte) {
		var regs image.Registers
		for r := image.RAX; r <= image.R15; r++ {
			if low>>r&1 == 0 {
				regs.Set(r, low+uint64(r)*step)
			}
		}
		tr, s, sig := fakeTrail(code, at, regs)
		if s == nil {
			return
		}
		sig.Number = int(signal)
		search := checkSearch{s}
		if branches, always := search.branchesTo(max(s.now, 0)); !always {
			search.checked(branches)
		}
		c, ok := s.findCulprit(sig)
		if !ok {
			return
		}
		tr.describeFailure(s, c)
		tr.follow(s, c)
		if len(tr.blame.Steps) > maxSteps+1 || s.nodes > maxNodes+1 {
			t.Fatalf("%d steps, %d nodes", len(tr.blame.Steps), s.nodes)
		}
		for _, step := range tr.blame.Steps {
			if step.Text == "" || !step.Proof.Valid() {
				t.Fatalf("step %+v", step)
			}
		}
	})
}
