package flow

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
	"diagnose/replay"
)

// TestPreempted: a thread whose turn ends before an instruction has called nothing, though it has an event when it continues. Its registers
// are from before, the one in which functions return their results, too.
func TestPreempted(t *testing.T) {
	const load, use, pointer = 0x401000, 0x401003, 0x7000
	decode := func(code []byte, pc uint64) *x86.Inst {
		in, err := x86.Decode(code, pc)
		if err != nil {
			t.Fatal(err)
		}
		return &in
	}
	loads, uses := decode([]byte{0x48, 0x8b, 0x01}, load), decode([]byte{0x48, 0x8b, 0x10}, use) // mov rax, [rcx]; mov rdx, [rax]
	registers := func(rax uint64) (general [16]uint64) {
		general[x86.RAX], general[x86.RCX] = rax, pointer
		return general
	}
	for _, event := range []uint64{5, 6} {
		r := newRecorder(nil)
		for _, x := range []replay.Executed{
			{Thread: 3, Ordinal: 5, PC: load, General: registers(1), Inst: loads},
			{Thread: 3, Ordinal: 5, PC: use, General: registers(8), Inst: uses},
			{Thread: 3, Ordinal: event, PC: use, General: registers(8), Inst: uses, Again: true},
		} {
			r.each(&x)
		}
		r.trace.finish()
		d := r.trace.Define(Location{Thread: 3, Space: transfer.General, Num: uint8(x86.RAX), Size: 8}, r.trace.Last(3))
		if d.Kind != Copied || d.At != 0 || len(d.From) != 1 || d.From[0] != Memory(evidence.Addr(pointer), 8) {
			t.Errorf("continued after event %d: rax is %+v, want the bytes loaded from %#x", event, d, pointer)
		}
	}
}
