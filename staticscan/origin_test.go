package staticscan

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

func onTrail(s *backwardSlice) *originSearch {
	return &originSearch{processView: s.processView, in: s.in, hops: defaultHops}
}

// What a cell holds counts as read from the core only if it is what was loaded
// from it.
func TestJudgeCell(t *testing.T) {
	bad, other := evidence.Addr(5), evidence.Addr(6)
	tests := []struct {
		name  string
		n     node
		value *evidence.Addr
		text  string
		proof evidence.Proof
		holds bool
	}{
		{"cannot be read", node{exact: 5, isExact: true}, &bad, ", which can no longer be read", evidence.Inferred, false},
		{"changed", node{exact: 5, isExact: true, computed: 6, isComputable: true}, &bad, ", which now holds 0x6, so it changed since", evidence.Inferred, true},
		{"unchanged", node{exact: 5, isExact: true, computed: 5, isComputable: true}, &bad, ", which still holds 0x5", evidence.FromCore, true},
		{"holds the bad value", node{computed: 5, isComputable: true}, &bad, ", which holds 0x5 now", evidence.FromCore, true},
		{"holds another value", node{computed: 5, isComputable: true}, &other, ", which holds 0x5 now", evidence.Inferred, true},
		{"bad value not known", node{computed: 5, isComputable: true}, nil, ", which holds 0x5 now", evidence.Inferred, true},
	}
	for _, test := range tests {
		tr := &originSearch{}
		tr.blame.Value = test.value
		step := evidence.OriginStep{Proof: evidence.Inferred}
		tr.judgeCell(&step, &test.n, nil)
		if step.Text != test.text || step.Proof != test.proof || (step.Value != nil) != test.holds {
			t.Errorf("%s: %+v", test.name, step)
		}
	}
}

// The cell to watch is the first that is no word of a stack frame.
func TestKeepCell(t *testing.T) {
	tr := onTrail(sliced(t, "c3"))
	tr.stacks = []*image.Mapping{{Start: fakeEntry - 0x80, End: fakeEntry, Perms: "rw-"}}
	keep := func(addr evidence.Addr, kind kind, proof evidence.Proof) {
		tr.keepCell(nil, &node{size: 8, at: value{kind: kind}}, evidence.OriginStep{Cell: &addr, Proof: proof}, nil)
	}
	for _, next := range []struct {
		addr  evidence.Addr
		kind  kind
		proof evidence.Proof
		want  evidence.Addr
		holds bool
	}{
		{fakeEntry - 8, unknown, evidence.FromCore, fakeEntry - 8, true},
		{fakeEntry - 16, unknown, evidence.FromCore, fakeEntry - 8, true},
		{fakeData, stack, evidence.FromCore, fakeEntry - 8, true},
		{fakeData, absolute, evidence.Inferred, fakeData, false},
		{fakeOther, absolute, evidence.FromCore, fakeData, false},
	} {
		keep(next.addr, next.kind, next.proof)
		if b := tr.blame; *b.Cell != next.want || b.CellHolds != next.holds {
			t.Errorf("after %v: cell %v, holds %v; want %v, %v", next.addr, *b.Cell, b.CellHolds, next.want, next.holds)
		}
	}
}

// A frame or a way that was guessed takes the proof from what follows.
func TestGuessLowersProof(t *testing.T) {
	for _, likely := range []bool{false, true} {
		s := sliced(t, "c3")
		tr := onTrail(s)
		n := constNode(9, 0)
		n.likely = likely
		tr.walkBack(s, n)
		want := evidence.FromCore
		if likely {
			want = evidence.Inferred
		}
		if len(tr.blame.Steps) != 1 || tr.blame.Steps[0].Proof != want {
			t.Errorf("likely %v: %+v, want one step, %s", likely, tr.blame.Steps, want)
		}
	}
}

func TestRegisterStep(t *testing.T) {
	for _, exact := range []bool{false, true} {
		s := sliced(t, "c3")
		tr := onTrail(s)
		n := &node{op: opLost, reg: x86.RAX, exact: 9, isExact: exact, computed: 9, isComputable: true}
		tr.registerStep(s, x86.RAX, n)
		want := evidence.Inferred
		if exact {
			want = evidence.FromCore
		}
		if step := tr.blame.Steps[0]; step.Proof != want || step.Text != "rax was 0x9" || *step.Value != 9 {
			t.Errorf("exact %v: %+v", exact, step)
		}
	}
}

// steps says what was found on the way back from rax.
func steps(t *testing.T, code string) string {
	t.Helper()
	s := sliced(t, code)
	tr := onTrail(s)
	tr.walkBack(s, s.register(s.now, x86.RAX, 0))
	var b strings.Builder
	for _, step := range tr.blame.Steps {
		b.WriteString(string(step.Kind) + ": " + step.Text + "\n")
	}
	return b.String()
}

func TestStepsBack(t *testing.T) {
	tests := []struct {
		name, asm, code, has, lacks string
	}{
		{"lost in the frame", "test edi,edi; je 1f; mov [rsp-8],rdi; 1: mov rax,[rsp-8]; ret", "85ff740548897c24f8488b4424f8c3",
			"what put it there is not known", ""},
		{"found in the frame", "mov [rsp-8],rdi; mov rax,[rsp-8]; ret", "48897c24f8488b4424f8c3",
			"loaded from the stack frame", "what put it there"},
		{"pointer second", "lea rax,[rdx+0x4010]; ret", "488d8210400000c3",
			"the program set it to ", ""},
		{"product", "imul rax,rdx,24; ret", "486bc218c3", "rdx (0x3) * 24", "rax (0x3)"},
		{"sum of two", "mov rcx,rdi; add rcx,rdx; mov rax,rcx; ret", "4889f94801d14889c8c3",
			"rcx (0x5) + rdx (0x3)", "rax"},
	}
	for _, test := range tests {
		got := steps(t, test.code)
		if !strings.Contains(got, test.has) || test.lacks != "" && strings.Contains(got, test.lacks) {
			t.Errorf("%s (%s): got\n%swant %q and not %q", test.name, test.asm, got, test.has, test.lacks)
		}
	}
}

// A value that a loop moves on is told as such, unless it is the first one
// still.
func TestAdvancedStep(t *testing.T) {
	for _, now := range []uint64{9, 17} {
		s := sliced(t, "c3")
		tr := onTrail(s)
		first := constNode(9, 0)
		tr.walkBack(s, &node{op: opCopy, a: first, size: 8, advanced: true, exact: now, isExact: true, reg: x86.RAX, def: 0})
		moved := len(tr.blame.Steps) == 2 && strings.Contains(tr.blame.Steps[0].Text, "a loop moved it on")
		if moved != (now != 9) {
			t.Errorf("first 9, now %d: %+v", now, tr.blame.Steps)
		}
	}
}
