package staticscan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// scanOf is a scan of one function that failed at its instruction at.
func scanOf(t *testing.T, code string, at int) *scan {
	t.Helper()
	s := sliced(t, code)
	return &scan{processView: s.processView, in: *s.in, suspects: map[suspectKey]*suspect{},
		scope: []scanned{{analysis: s.a, at: at, registers: &s.registers}}}
}

// Going back from the failing instruction, an operand's address is known as
// long as its registers were not written since and there is one way back.
func TestLiveOperands(t *testing.T) {
	tests := []struct {
		name, asm, code string
		at              int
		// want are the addresses of the memory operands by instruction.
		want map[int]uint64
	}{
		{"register moved on", "mov eax,[rdi]; add rdi,8; mov ecx,[rdi]; ret", "8b074883c7088b0fc3", 2, map[int]uint64{2: 5}},
		{"loaded over itself", "mov eax,[rdx]; mov rdi,[rdi]; ret", "8b02488b3fc3", 1, map[int]uint64{0: 3, 1: 5}},
		{"two ways", "test edi,edi; je 1f; mov eax,[rbx]; 1: mov ecx,[rdi]; ret", "85ff74028b038b0fc3", 3, map[int]uint64{3: 5}},
	}
	for _, test := range tests {
		s := scanOf(t, test.code, test.at)
		f := &s.scope[0]
		exact := f.liveOperands(s.memory)
		got := map[int]uint64{}
		for i := range f.flow.insts {
			for n := range f.flow.insts[i].Operands {
				op := &f.flow.insts[i].Operands[n]
				if addr, ok := exact[op]; ok && !op.Implicit {
					got[i] = addr
				}
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (%s) (-want +got):\n%s", test.name, test.asm, diff)
		}
	}
}

// An address that the registers do not place in the variable that the code
// names is not taken for it.
func TestRefine(t *testing.T) {
	s := scanOf(t, "c3", 0)
	s.stacks = []*image.Mapping{{Start: fakeEntry - 0x80, End: fakeEntry, Perms: "rw-"}}
	cell := &cell{at: number(fakeData), content: fakeHeap}
	tests := []struct {
		name  string
		at    value
		known uint64
		want  value
	}{
		{"unknown is data", value{}, fakeData, number(fakeData)},
		{"unknown is the stack", value{}, fakeEntry - 8, value{kind: stack}},
		{"unknown is neither", value{}, fakeHeap, value{}},
		{"element", value{kind: absolute, off: fakeData, varies: true}, fakeData + 8, number(fakeData + 8)},
		{"beyond the data", value{kind: absolute, off: fakeData, varies: true}, fakeHeap, value{kind: absolute, off: fakeData, varies: true}},
		{"heap element", value{kind: loaded, cell: cell, varies: true}, fakeHeap + 16, value{kind: loaded, cell: cell, off: 16}},
	}
	for _, test := range tests {
		if got := s.refine(test.at, test.known); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, text(got), text(test.want))
		}
	}
}

// Several accesses of the same bytes are one suspect with all that they tell.
func TestRecord(t *testing.T) {
	s := scanOf(t, "909090909090c3", 3)
	n := named{addr: fakeData, name: "a", size: 4}
	for _, a := range []struct {
		inst   int
		access evidence.AccessKind
		proof  evidence.Proof
	}{{2, evidence.Read, evidence.Inferred}, {6, evidence.Write, evidence.FromCore}, {0, evidence.Read, evidence.Inferred}} {
		s.record(evidence.SuspectGlobal, n, a.proof, 0, access{inst: a.inst, operand: &x86.Operand{IsMemory: true, Access: a.access}})
	}
	if len(s.suspects) != 1 {
		t.Fatalf("%d suspects", len(s.suspects))
	}
	sus := s.suspects[suspectKey{addr: fakeData, size: 4}]
	if sus.Proof != evidence.FromCore || sus.Access != evidence.ReadWrite || sus.distance != 1 || len(sus.Lines) != 3 {
		t.Errorf("%+v, distance %d", sus.Suspect, sus.distance)
	}
}

func TestSuspectProof(t *testing.T) {
	for _, varies := range []bool{false, true} {
		s := scanOf(t, "90c3", 1)
		s.suspect(0, access{operand: &x86.Operand{IsMemory: true, Size: 4, Access: evidence.Read}}, value{kind: absolute, off: fakeData, varies: varies})
		want := evidence.FromCore
		if varies {
			want = evidence.Inferred
		}
		for _, sus := range s.suspects {
			if sus.Proof != want {
				t.Errorf("index unknown %v: %s, want %s", varies, sus.Proof, want)
			}
		}
	}
}

func TestCellProof(t *testing.T) {
	for holds, want := range map[bool]evidence.Proof{false: evidence.Inferred, true: evidence.FromCore} {
		s := scanOf(t, "c3", 0)
		addr := evidence.Addr(fakeData)
		s.opts.Blame = &Blame{Cell: &addr, CellSize: 8, CellName: "p", CellHolds: holds}
		s.addCell()
		sus := s.suspects[suspectKey{addr: addr, size: 8}]
		if sus == nil || sus.Kind != evidence.SuspectCell || sus.Proof != want {
			t.Errorf("holds %v: %+v, want %s", holds, sus, want)
		}
	}
}

func TestOrderOfSuspects(t *testing.T) {
	suspectOf := func(name string, set func(*suspect)) *suspect {
		s := &suspect{Suspect: evidence.Suspect{Name: name, Kind: evidence.SuspectGlobal, Access: evidence.Read, Address: fakeData}, distance: 5}
		set(s)
		return s
	}
	want := []*suspect{
		suspectOf("cell", func(s *suspect) { s.Kind, s.place = evidence.SuspectCell, 2 }),
		suspectOf("written", func(s *suspect) { s.Access, s.distance = evidence.ReadWrite, 9 }),
		suspectOf("near", func(s *suspect) { s.distance, s.Address = 1, fakeOther }),
		suspectOf("low", func(*suspect) {}),
		suspectOf("high", func(s *suspect) { s.Address = fakeOther }),
		suspectOf("of a caller", func(s *suspect) { s.place, s.Access, s.distance = 1, evidence.ReadWrite, 0 }),
		suspectOf("lock", func(s *suspect) { s.Type, s.distance = "pthread_mutex_t", 0 }),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareSuspects)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("rank %d is %s, want %s", i, got[i].Name, want[i].Name)
		}
	}
}

func TestManySuspects(t *testing.T) {
	s := scanOf(t, "c3", 0)
	for i := range maxSuspects + 1 {
		addr := evidence.Addr(fakeData + i)
		s.suspects[suspectKey{addr: addr, size: 1}] = &suspect{Suspect: evidence.Suspect{Name: fmt.Sprint(i), Address: addr, Size: 1}, whole: true}
	}
	if list := s.ranked(); len(list) != maxSuspects || len(s.limits) != 1 {
		t.Errorf("%d suspects, limits %v", len(list), s.limits)
	}
}
