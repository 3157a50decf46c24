package inline

import (
	"encoding/binary"
	"fmt"

	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// Assembler writes the code of an arena.
type Assembler struct {
	patch.Assembler
	in    *Inlined
	arena *arena
	// Common are the addresses of code that sites share, by name.
	Common map[string]uint64
	Labels map[string]int
	Wanted []wantedLabel
}

type wantedLabel struct {
	at   int // of the displacement
	name string
}

// window appends a window's code, and makes its jumps.
func (a *Assembler) window(w *Window) (err error) {
	before, placed := a.Len(), len(a.arena.placed)
	defer func() {
		if err != nil {
			a.Truncate(before)
			a.arena.placed = a.arena.placed[:placed]
		}
	}()
	start := a.Here()
	w.Copies = w.Copies[:0]
	for i := range w.Moved {
		inst := &w.Moved[i]
		w.Copies = append(w.Copies, a.Here())
		a.Write([]byte{0x0f, 0x1f, 0x44, 0, 0}) // nop: room for a jump to the probe of a place
		if err := a.one(w, inst); err != nil {
			return err
		}
	}
	if err := a.Jump(w.End); err != nil {
		return err
	}
	from := w.Start
	if w.Hop != 0 {
		from = w.Hop
		w.jumps = append(w.jumps, tracee.Words{Addr: w.Start, Data: []byte{0xeb, byte(w.Hop - w.Start - patch.ShortJumpSize)}})
	}
	d := int64(start - from - patch.JumpSize)
	if d != int64(int32(d)) {
		w.jumps = nil
		return patch.ErrImpossible
	}
	w.jumps = append(w.jumps, tracee.Words{Addr: from, Data: binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(d))})
	return nil
}

func (a *Assembler) one(w *Window, inst *x86.Inst) error {
	for _, s := range w.sites {
		if s.Inst.PC == inst.PC {
			a.Labels, a.Wanted = map[string]int{}, nil
			if err := a.in.code.Inline(a, s); err != nil {
				return err
			}
			return a.Resolve()
		}
	}
	return a.Program(inst)
}

// Program appends a copy of an instruction of the program.
func (a *Assembler) Program(inst *x86.Inst) error {
	start := a.Here()
	if err := a.Move(inst); err != nil {
		return err
	}
	a.arena.placed = append(a.arena.placed, placedCode{tracee.Span{Start: start, End: a.Here()}, inst})
	return nil
}

// Jump appends a jump to an address.
func (a *Assembler) Jump(to uint64) error {
	a.WriteByte(0xe9)
	return a.Relative(to, 4)
}

// Trap appends an int3 that stops for a site.
func (a *Assembler) Trap(s *Site) {
	a.WriteByte(tracee.Int3)
	a.in.Traps[a.Here()] = s
}

func (a *Assembler) Label(name string) { a.Labels[name] = a.Len() }

// ToLabel appends an instruction that ends with the displacement of a label.
func (a *Assembler) ToLabel(label string, code ...byte) {
	a.Write(code)
	a.Wanted = append(a.Wanted, wantedLabel{a.Len(), label})
	a.Word(0)
}

func (a *Assembler) Resolve() error {
	code := a.Bytes()
	for _, w := range a.Wanted {
		at, found := a.Labels[w.name]
		if !found {
			return fmt.Errorf("replay: no label %s", w.name)
		}
		binary.LittleEndian.PutUint32(code[w.at:], uint32(at-w.at-4))
	}
	return nil
}

// The registers that our code uses, by hardware number.
const (
	HardAX = 0
	HardCX = 1
	HardDX = 2
	HardBX = 3
	HardSP = 4
	HardSI = 6
	HardDI = 7
)

// OwnMemory appends an instruction with a register and a word of the thread's own memory, to which
// %gs points.
func (a *Assembler) OwnMemory(opcode, reg byte, offset int) {
	a.Write([]byte{0x65, 0x48, opcode, reg<<3 | 4, 0x25})
	a.Word(uint64(offset))
}

const (
	OpStore = 0x89 // mov register, memory
	OpLoad  = 0x8b
	OpAdd   = 0x03
	OpCmp   = 0x3b
)

// AtBase appends an instruction with a register and a word at an offset from a base register.
func (a *Assembler) AtBase(opcode, reg, base byte, offset int) {
	a.Write([]byte{0x48, opcode, 0x80 | reg<<3 | base})
	a.Word(uint64(offset))
}

// Constant appends mov $value, register.
func (a *Assembler) Constant(reg byte, value uint64) {
	a.Write(binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8 + reg}, value))
}

// Address appends lea operand, %rcx, without the segment's base. The program's registers must be
// unchanged.
func (a *Assembler) Address(m *x86.Memory) error {
	var c patch.Code
	if err := c.Address(m); err != nil {
		return err
	}
	code, err := c.Resolve(a.Here())
	if err != nil {
		return err
	}
	a.Write(code)
	return nil
}
