package tracepoint

import (
	"encoding/binary"
	"fmt"

	"diagnose/image"
	"diagnose/image/formula"
	"diagnose/image/x86"
	"diagnose/replay/inline"
	"diagnose/replay/patch"
)

// writer writes the code of a rule. A value is computed in %rax; %rcx and %rdx are free, and operands wait in the thread's own memory.
type writer struct {
	*inline.Assembler
	// loads are the addresses of the instructions that may fault.
	loads  []uint64
	labels int
}

// kept are the registers that the code uses, with the places of the program's values.
var kept = map[byte]int{inline.HardAX: ownAX, inline.HardCX: ownCX, inline.HardDX: ownDX}

func (w *writer) label() string {
	w.labels++
	return fmt.Sprintf("label %d", w.labels)
}

// compute appends code for the value of a node. Temporary words from number temp on are free.
func (w *writer) compute(n *formula.Node, temp int) error {
	switch n.Kind {
	case formula.Constant:
		w.Constant(inline.HardAX, n.Value)
		return nil
	case formula.Register:
		return w.register(n.Value)
	case formula.Vector:
		w.Write([]byte{0x66, 0x48 | byte(n.Value>>3&1)<<2, 0x0f, 0x7e, 0xc0 | byte(n.Value&7)<<3}) // movq %xmm, %rax
		return nil
	case formula.Load:
		return w.load(n, temp)
	case formula.Both, formula.Either, formula.Choose:
		return w.choose(n, temp)
	}
	if err := w.compute(n.A, temp); err != nil {
		return err
	}
	switch n.Kind {
	case formula.Extend:
		return w.extend(n)
	case formula.Bounded:
		w.Constant(inline.HardCX, n.Value)
		w.Write([]byte{0x48, 0x8d, 0x14, 0x08, 0x48, 0x01, 0xc9, 0x48, 0x39, 0xca}) // lea (%rax,%rcx), %rdx; add %rcx, %rcx; cmp %rcx, %rdx
		w.ToLabel("slow", 0x0f, 0x87)                                               // ja
		return nil
	}
	if n.B.Kind == formula.Constant {
		w.Constant(inline.HardCX, n.B.Value)
		return w.operate(n)
	}
	if temp == mostTemps {
		return patch.ErrImpossible
	}
	w.OwnMemory(inline.OpStore, inline.HardAX, ownTemp+word*temp)
	if err := w.compute(n.B, temp+1); err != nil {
		return err
	}
	w.Write([]byte{0x48, 0x89, 0xc1}) // mov %rax, %rcx
	w.OwnMemory(inline.OpLoad, inline.HardAX, ownTemp+word*temp)
	return w.operate(n)
}

// register appends code for the program's value of a register.
func (w *writer) register(number uint64) error {
	if number > uint64(x86.R15) {
		return patch.ErrImpossible
	}
	r := x86.Reg(number).Encoding()
	if at, saved := kept[r]; saved {
		w.OwnMemory(inline.OpLoad, inline.HardAX, at)
		return nil
	}
	w.Write([]byte{0x48 | r>>3<<2, 0x89, 0xc0 | r&7<<3}) // mov %reg, %rax
	return nil
}

// ownFrame reports whether memory is at a fixed distance of the stack pointer.
func ownFrame(n *formula.Node) bool {
	if n.Kind == formula.Add && n.B.Kind == formula.Constant {
		n = n.A
	}
	return n.Kind == formula.Register && n.Value == uint64(image.RSP)
}

// address appends code for an address that is about to be read. The text that the tool has changed must be read by the tool, so an
// address there stops the thread.
func (w *writer) address(n *formula.Node, temp int) error {
	if err := w.compute(n, temp); err != nil || ownFrame(n) {
		return err
	}
	return w.guard()
}

// guard appends the code that stops the thread if the address in %rax is one that the tool must read.
func (w *writer) guard() error {
	back := w.label()
	w.ToLabel(back, 0x48, 0x8d, 0x15) // lea back(%rip), %rdx
	w.OwnMemory(inline.OpStore, inline.HardDX, ownReturn)
	if err := w.Jump(w.Common["text"]); err != nil {
		return err
	}
	w.Label(back)
	return nil
}

// faults notes that the next instruction may fault.
func (w *writer) faults() { w.loads = append(w.loads, w.Here()) }

func (w *writer) load(n *formula.Node, temp int) error {
	if err := w.address(n.A, temp); err != nil {
		return err
	}
	w.faults()
	code, known := map[extension][]byte{{1, false}: {0x0f, 0xb6, 0x00}, {1, true}: {0x48, 0x0f, 0xbe, 0x00}, {2, false}: {0x0f, 0xb7, 0x00},
		{2, true}: {0x48, 0x0f, 0xbf, 0x00}, {4, false}: {0x8b, 0x00}, {4, true}: {0x48, 0x63, 0x00}, {8, false}: {0x48, 0x8b, 0x00},
		{8, true}: {0x48, 0x8b, 0x00}}[extension{n.Size, n.Signed}]
	if !known {
		return patch.ErrImpossible
	}
	w.Write(code)
	return nil
}

type extension struct {
	size   int
	signed bool
}

func (w *writer) extend(n *formula.Node) error {
	code, known := map[extension][]byte{{1, false}: {0x0f, 0xb6, 0xc0}, {1, true}: {0x48, 0x0f, 0xbe, 0xc0}, {2, false}: {0x0f, 0xb7, 0xc0},
		{2, true}: {0x48, 0x0f, 0xbf, 0xc0}, {4, false}: {0x89, 0xc0}, {4, true}: {0x48, 0x63, 0xc0}}[extension{n.Size, n.Signed}]
	if !known {
		return patch.ErrImpossible
	}
	w.Write(code)
	return nil
}

// simple are the instructions for %rax and %rcx.
var simple = map[formula.Kind][]byte{formula.Add: {0x48, 0x01, 0xc8}, formula.Subtract: {0x48, 0x29, 0xc8}, formula.Multiply: {0x48, 0x0f, 0xaf, 0xc1},
	formula.And: {0x48, 0x21, 0xc8}, formula.Or: {0x48, 0x09, 0xc8}, formula.Xor: {0x48, 0x31, 0xc8}}

// conditions are the opcodes of setcc after a comparison, without a sign and with one.
var conditions = map[formula.Kind][2]byte{formula.Equal: {0x94, 0x94}, formula.NotEqual: {0x95, 0x95}, formula.Less: {0x92, 0x9c},
	formula.LessEqual: {0x96, 0x9e}, formula.Greater: {0x97, 0x9f}, formula.GreaterEqual: {0x93, 0x9d}}

// operate appends the operation of %rax and %rcx.
func (w *writer) operate(n *formula.Node) error {
	if code, known := simple[n.Kind]; known {
		w.Write(code)
		return nil
	}
	if set, known := conditions[n.Kind]; known {
		code := set[0]
		if n.Signed {
			code = set[1]
		}
		w.Write([]byte{0x48, 0x39, 0xc8, 0x0f, code, 0xc0, 0x0f, 0xb6, 0xc0}) // cmp %rcx, %rax; setcc %al; movzbl %al, %eax
		return nil
	}
	switch n.Kind {
	case formula.ShiftLeft, formula.ShiftRight:
		w.Write([]byte{0x48, 0x81, 0xf9}) // cmp $bits, %rcx
		w.Word(uint64(8 * n.Size))
		w.ToLabel("slow", 0x0f, 0x83) // jae
		code := byte(0xe0)            // shl %cl, %rax
		if n.Kind == formula.ShiftRight {
			code = 0xe8
		}
		if n.Kind == formula.ShiftRight && n.Signed {
			code = 0xf8
		}
		w.Write([]byte{0x48, 0xd3, code})
		return nil
	case formula.Divide, formula.Remainder:
		w.divide(n)
		return nil
	}
	return patch.ErrImpossible
}

func (w *writer) divide(n *formula.Node) {
	done := w.label()
	w.Write([]byte{0x48, 0x85, 0xc9}) // test %rcx, %rcx
	w.ToLabel("slow", 0x0f, 0x84)     // jz
	if n.Signed {
		whole := w.label()
		w.Write([]byte{0x48, 0x83, 0xf9, 0xff}) // cmp $-1, %rcx: the least number has no quotient
		w.ToLabel(whole, 0x0f, 0x85)            // jne
		if n.Kind == formula.Divide {
			w.Write([]byte{0x48, 0xf7, 0xd8}) // neg %rax
		} else {
			w.Write([]byte{0x31, 0xc0}) // xor %eax, %eax
		}
		w.ToLabel(done, 0xe9)
		w.Label(whole)
		w.Write([]byte{0x48, 0x99, 0x48, 0xf7, 0xf9}) // cqto; idiv %rcx
	} else {
		w.Write([]byte{0x31, 0xd2, 0x48, 0xf7, 0xf1}) // xor %edx, %edx; div %rcx
	}
	if n.Kind == formula.Remainder {
		w.Write([]byte{0x48, 0x89, 0xd0}) // mov %rdx, %rax
	}
	w.Label(done)
}

// choose appends the operations that compute only some operands.
func (w *writer) choose(n *formula.Node, temp int) error {
	if err := w.compute(n.A, temp); err != nil {
		return err
	}
	other, done := w.label(), w.label()
	w.Write([]byte{0x48, 0x85, 0xc0}) // test %rax, %rax
	if n.Kind == formula.Choose {
		w.ToLabel(other, 0x0f, 0x84) // jz
		if err := w.compute(n.B, temp); err != nil {
			return err
		}
		w.ToLabel(done, 0xe9)
		w.Label(other)
		if err := w.compute(n.C, temp); err != nil {
			return err
		}
		w.Label(done)
		return nil
	}
	decides := byte(0x84) // jz
	if n.Kind == formula.Either {
		decides = 0x85 // jnz
	}
	w.ToLabel(done, 0x0f, decides)
	if err := w.compute(n.B, temp); err != nil {
		return err
	}
	w.Write([]byte{0x48, 0x85, 0xc0})
	w.Label(done)
	w.Write([]byte{0x0f, 0x95, 0xc0, 0x0f, 0xb6, 0xc0}) // setne %al; movzbl %al, %eax
	return nil
}

// copyBytes copies bytes at %rax to an offset in the entry at %rcx.
func (w *writer) copyBytes(size, to int) {
	for at := 0; at < size; {
		n := 8
		for n > size-at {
			n /= 2
		}
		prefix, opcode := []byte{}, byte(0x8b)
		switch n {
		case 8:
			prefix = []byte{0x48}
		case 2:
			prefix = []byte{0x66}
		case 1:
			opcode = 0x8a
		}
		w.faults()
		w.Write(binary.LittleEndian.AppendUint32(append(append([]byte{}, prefix...), opcode, 0x90), uint32(at)))      // mov at(%rax), %rdx
		w.Write(binary.LittleEndian.AppendUint32(append(append([]byte{}, prefix...), opcode-2, 0x91), uint32(to+at))) // mov %rdx, to(%rcx)
		at += n
	}
}

// copyText copies characters at %rax, up to a NUL, to an offset in the thread's entry.
func (w *writer) copyText(to int) {
	next, done := w.label(), w.label()
	w.OwnMemory(inline.OpLoad, inline.HardCX, ownEntry)
	w.Write([]byte{0x48, 0x8d, 0x91}) // lea to+TextBytes(%rcx), %rdx
	w.Word(uint64(to + TextBytes))
	w.OwnMemory(inline.OpStore, inline.HardDX, ownTemp)
	w.Write([]byte{0x48, 0x81, 0xc1}) // add $to, %rcx
	w.Word(uint64(to))
	w.Label(next)
	w.faults()
	w.Write([]byte{0x0f, 0xb6, 0x10})                   // movzbl (%rax), %edx
	w.Write([]byte{0x88, 0x11, 0x84, 0xd2})             // mov %dl, (%rcx); test %dl, %dl
	w.ToLabel(done, 0x0f, 0x84)                         // jz
	w.Write([]byte{0x48, 0xff, 0xc0, 0x48, 0xff, 0xc1}) // inc %rax; inc %rcx
	w.OwnMemory(inline.OpCmp, inline.HardCX, ownTemp)
	w.ToLabel(next, 0x0f, 0x82) // jb
	w.Label(done)
}
