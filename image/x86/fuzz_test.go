package x86

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDecode checks what must hold for any bytes: no panic, a length within the
// bytes and within the processor's limit, an error with a position to continue
// at, consistent accesses, and that the bytes after the instruction do not
// matter.
func FuzzDecode(f *testing.F) {
	n := 0
	encodings(func(code []byte) bool {
		if n++; n%997 == 0 {
			f.Add(code)
		}
		return n < 400_000
	})
	f.Add([]byte{0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90})
	f.Add([]byte{0xf3, 0x0f, 0x1e, 0xfa})
	f.Add([]byte{0xc5, 0xf8, 0x77})
	f.Add([]byte{0x62})
	f.Fuzz(func(t *testing.T, code []byte) {
		i, err := Decode(code, 0x7f0000001000)
		if err != nil {
			var e *DecodeError
			if !errors.As(err, &e) || e.Len < 1 || len(code) > 0 && e.Len > len(code) {
				t.Fatalf("% x: %v", code, err)
			}
			return
		}
		if i.Len < 1 || i.Len > maxLen || i.Len > len(code) || !bytes.Equal(i.Bytes, code[:i.Len]) {
			t.Fatalf("% x: length %d", code, i.Len)
		}
		if i.Op == "" || i.Text() == "" || len(i.Operands) > maxOperands {
			t.Fatalf("% x: %q has %d operands", code, i.Text(), len(i.Operands))
		}
		for n := range i.Operands {
			checkOperand(t, &i, n)
		}
		i.Read()
		i.Written()
		again, err := Decode(append(bytes.Clone(i.Bytes), 0xff, 0xff), i.PC)
		if err != nil || again.Len != i.Len || again.Text() != i.Text() {
			t.Fatalf("% x: %s, and with other bytes after it: %s (%v)", i.Bytes, i.Text(), again.Text(), err)
		}
		insts, bad := Function(code, i.PC)
		sum := bad
		for n := range insts {
			sum += insts[n].Len
		}
		if sum != len(code) {
			t.Fatalf("% x: Function accounts for %d of %d bytes", code, sum, len(code))
		}
	})
}

func checkOperand(t *testing.T, i *Inst, n int) {
	o := &i.Operands[n]
	if o.IsMemory && o.IsImm || (o.IsMemory || o.IsImm) && o.Reg != RegNone {
		t.Fatalf("%s: operand %d is more than one thing", i.Text(), n)
	}
	if o.Access != "" && !o.Access.Valid() || o.IsImm && o.Access != "" {
		t.Fatalf("%s: operand %d has access %q", i.Text(), n, o.Access)
	}
	if !o.IsMemory && !o.IsImm && o.RegName == "" {
		t.Fatalf("%s: operand %d is a register without a name", i.Text(), n)
	}
	if o.IsMemory && (o.Memory.Base == RegVector || o.Memory.Index == RIP || o.Size < 0) {
		t.Fatalf("%s: operand %d: %+v", i.Text(), n, o.Memory)
	}
	if o.Memory.Absolute && (o.Memory.Base != RegNone || o.Memory.Index != RegNone) {
		t.Fatalf("%s: operand %d is absolute and has registers", i.Text(), n)
	}
}
