package x86

import "testing"

func TestEncoding(t *testing.T) {
	for r := RAX; r.General(); r++ {
		n := r.Encoding()
		inst, err := Decode([]byte{0x40 | n>>3, 0x50 | n&7}, 0) // push
		if err != nil || len(inst.Operands) == 0 || inst.Operands[0].Reg != r {
			t.Errorf("push of register %v is %+v, %v", r, inst, err)
		}
		if encodedReg(n) != r {
			t.Errorf("%d is %v, want %v", n, encodedReg(n), r)
		}
	}
}
