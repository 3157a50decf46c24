package step

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
	"diagnose/replay/tracee/traceetest"
)

// A stepper reports an access together with the next instruction, and lets a thread that has used
// its share do the rest at full speed.
func TestStepperShares(t *testing.T) {
	p := traceetest.Process(t)
	p.MovedFrom, p.Library = func(uint64) *x86.Inst { return nil }, []tracee.Span{}
	text := traceetest.Pages(t, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE)
	store := []byte{0x48, 0x89, 0x07} // mov %rax, (%rdi)
	if _, err := p.Memory.WriteAt(slices.Concat(store, store, store, store), int64(text)); err != nil {
		t.Fatal(err)
	}
	var told []Stepped
	placed := &fakeBreaks{}
	st := New(&Stepping{Most: 100, Share: 3, On: func(s *Stepped) { told = append(told, *s) }}, p, placed)
	th := &tracee.Thread{Index: 2}
	st.threads[th] = &state{to: 9, ordinal: 5, counts: map[uint64]uint64{}}
	for i := range uint64(3) {
		spent, err := st.Stepped(th, &ptrace.Registers{Rip: text + 3*i, Rdi: 0x5000})
		if spent || err != nil {
			t.Fatal(spent, err)
		}
	}
	if len(told) != 2 || told[0].Addr != 0x5000 || told[0].Size != 8 || told[0].Kind != evidence.Write || told[0].PC != evidence.Addr(text) || told[0].Next != evidence.Addr(text+3) {
		t.Errorf("told of %+v", told)
	}
	if st.threads[th] != nil || !st.Cut {
		t.Errorf("after its share the thread has %+v, cut %v", st.threads[th], st.Cut)
	}
	st.left, st.threads[th] = 1, &state{}
	if spent, err := st.Stepped(th, &ptrace.Registers{}); !spent || err != nil {
		t.Errorf("the last instruction: spent %v, %v", spent, err)
	}
}

// fakeBreaks sets no breakpoints.
type fakeBreaks struct{}

func (fakeBreaks) ResumeAt(*tracee.Thread, ...uint64) error { return nil }
func (fakeBreaks) FreeRegisters(*tracee.Thread) int         { return 0 }
