package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/leb128"
)

const (
	// maxInitial bounds the call frame instructions of a CIE, which all its
	// FDEs repeat; compilers write some ten bytes. maxProgram bounds those of
	// an FDE, maxRemembered the states they may remember at a time.
	maxInitial    = 1 << 10
	maxProgram    = 1 << 16
	maxRemembered = 64
)

// The opcodes that delve does not name.
const (
	cfaGNUArgsSize         = 0x2e
	cfaGNUNegativeExtended = 0x2f
)

// program rewrites the call frame instructions of a CIE and an FDE into
// instructions that delve's interpreter handles correctly. The interpreter
//   - turns DW_CFA_restore into "undefined", as it never notes the CIE's rules;
//   - lets FDE instructions overwrite the expressions of the CIE;
//   - forgets the data alignment of DW_CFA_val_offset;
//   - reads DW_CFA_set_loc as a plain address;
//   - fails at DW_CFA_GNU_args_size, which g++ emits;
//   - panics on a restore without a remember, and on cut operands.
//
// So the rewritten program restores by repeating the CIE's rule, has the
// CIE's instructions at its front, and steps by bytes.
type program struct {
	cie *cie
	loc uint64
	out []byte
	// initial holds the CIE's rewritten instruction for each register.
	initial    [columns][]byte
	inCIE      bool
	remembered int
}

// rewrite returns the program of an FDE.
func rewrite(f *fde, bodyAddr uint64) ([]byte, error) {
	p := &program{cie: f.cie, loc: f.begin, inCIE: true}
	if len(f.cie.initial) > maxInitial || len(f.cie.initial)+len(f.instructions) > maxProgram {
		return nil, fmt.Errorf("%d and %d bytes of call frame instructions", len(f.cie.initial), len(f.instructions))
	}
	if err := p.execute(f.cie.initial, 0); err != nil {
		return nil, fmt.Errorf("CIE: %w", err)
	}
	p.inCIE, p.remembered = false, 0
	if err := p.execute(f.instructions, bodyAddr); err != nil {
		return nil, err
	}
	return p.out, nil
}

func (p *program) execute(code []byte, addr uint64) error {
	r := reader{data: code}
	for r.left() > 0 {
		at := r.pos
		if err := p.instruction(&r, addr); err != nil {
			return fmt.Errorf("call frame instruction at %#x: %w", at, err)
		}
		if r.err != nil {
			return fmt.Errorf("call frame instruction at %#x: %w", at, r.err)
		}
		if len(p.out) > 4*maxProgram {
			return fmt.Errorf("call frame instructions grow beyond %d bytes", 4*maxProgram)
		}
	}
	return nil
}

func (p *program) instruction(r *reader, addr uint64) error {
	opcode := r.u8()
	low := uint64(opcode & 0x3f)
	switch opcode & 0xc0 {
	case frame.DW_CFA_advance_loc:
		return p.advance(low)
	case frame.DW_CFA_offset:
		p.offset(low, int64(r.uleb()))
		return nil
	case frame.DW_CFA_restore:
		p.restore(low)
		return nil
	}
	switch opcode {
	case frame.DW_CFA_nop:
		return nil
	case frame.DW_CFA_set_loc, frame.DW_CFA_advance_loc1, frame.DW_CFA_advance_loc2, frame.DW_CFA_advance_loc4:
		return p.location(r, opcode, addr)
	case frame.DW_CFA_remember_state, frame.DW_CFA_restore_state:
		return p.state(opcode)
	case frame.DW_CFA_def_cfa, frame.DW_CFA_def_cfa_register, frame.DW_CFA_def_cfa_offset,
		frame.DW_CFA_def_cfa_sf, frame.DW_CFA_def_cfa_offset_sf, frame.DW_CFA_def_cfa_expression:
		return p.frameAddress(r, opcode)
	case cfaGNUArgsSize:
		r.uleb()
		return nil
	}
	return p.register(r, opcode)
}

// location rewrites the instructions that advance to another pc.
func (p *program) location(r *reader, opcode byte, addr uint64) error {
	switch opcode {
	case frame.DW_CFA_advance_loc1:
		return p.advance(uint64(r.u8()))
	case frame.DW_CFA_advance_loc2:
		return p.advance(uint64(r.u16()))
	case frame.DW_CFA_advance_loc4:
		return p.advance(uint64(r.u32()))
	}
	to, err := r.pointer(p.cie.encoding, addr)
	if err != nil {
		return err
	}
	if to < p.loc {
		return fmt.Errorf("location goes back from %#x to %#x", p.loc, to)
	}
	return p.step(to - p.loc)
}

func (p *program) advance(n uint64) error { return p.step(n * p.cie.codeAlign) }

func (p *program) step(delta uint64) error {
	if p.inCIE {
		return errors.New("location in a CIE")
	}
	if delta > 0xffffffff {
		return fmt.Errorf("location advances by %#x", delta)
	}
	p.loc += delta
	switch {
	case delta < 0x40:
		p.out = append(p.out, frame.DW_CFA_advance_loc|byte(delta))
	case delta < 0x100:
		p.out = append(p.out, frame.DW_CFA_advance_loc1, byte(delta))
	default:
		p.out = append(p.out, frame.DW_CFA_advance_loc4)
		p.out = binary.LittleEndian.AppendUint32(p.out, uint32(delta))
	}
	return nil
}

func (p *program) state(opcode byte) error {
	if opcode == frame.DW_CFA_remember_state {
		p.remembered++
	} else {
		p.remembered--
	}
	if p.remembered < 0 || p.remembered > maxRemembered {
		return fmt.Errorf("%d remembered states", p.remembered)
	}
	p.out = append(p.out, opcode)
	return nil
}

// frameAddress rewrites the instructions that define the CFA.
func (p *program) frameAddress(r *reader, opcode byte) error {
	start := len(p.out)
	p.out = append(p.out, opcode)
	switch opcode {
	case frame.DW_CFA_def_cfa:
		p.uleb(p.checked(r))
		p.uleb(r.uleb())
	case frame.DW_CFA_def_cfa_sf:
		p.uleb(p.checked(r))
		p.sleb(r.sleb())
	case frame.DW_CFA_def_cfa_register:
		p.uleb(p.checked(r))
	case frame.DW_CFA_def_cfa_offset:
		p.uleb(r.uleb())
	case frame.DW_CFA_def_cfa_offset_sf:
		p.sleb(r.sleb())
	case frame.DW_CFA_def_cfa_expression:
		p.block(r)
	}
	if r.err != nil {
		p.out = p.out[:start]
	}
	return r.err
}

// checked reads a register from which the CFA is computed.
func (p *program) checked(r *reader) uint64 {
	n := r.uleb()
	if r.err == nil && n >= columns {
		r.err = fmt.Errorf("the frame address depends on register %d", n)
	}
	return n
}

// register rewrites the instructions that give a register a rule.
func (p *program) register(r *reader, opcode byte) error {
	n := r.uleb()
	start := len(p.out)
	switch opcode {
	case frame.DW_CFA_restore_extended:
		p.restore(n)
		return nil
	case frame.DW_CFA_offset_extended:
		p.offset(n, int64(r.uleb()))
		return nil
	case frame.DW_CFA_offset_extended_sf:
		p.offset(n, r.sleb())
		return nil
	case cfaGNUNegativeExtended:
		p.offset(n, -int64(r.uleb()))
		return nil
	case frame.DW_CFA_undefined, frame.DW_CFA_same_value:
		p.head(opcode, n)
	case frame.DW_CFA_register:
		p.head(opcode, n)
		p.uleb(r.uleb())
	case frame.DW_CFA_val_offset:
		p.head(frame.DW_CFA_val_offset_sf, n)
		p.sleb(int64(r.uleb()))
	case frame.DW_CFA_val_offset_sf:
		p.head(opcode, n)
		p.sleb(r.sleb())
	case frame.DW_CFA_expression, frame.DW_CFA_val_expression:
		p.head(opcode, n)
		p.block(r)
	default:
		return fmt.Errorf("unknown opcode %#x", opcode)
	}
	p.keep(n, start)
	return r.err
}

// offset says that register n is saved at CFA + factored * data alignment.
func (p *program) offset(n uint64, factored int64) {
	start := len(p.out)
	p.head(frame.DW_CFA_offset_extended_sf, n)
	p.sleb(factored)
	p.keep(n, start)
}

// keep drops the instruction emitted since start if it concerns a register that
// is not followed, and records it if it is a CIE's.
func (p *program) keep(n uint64, start int) {
	switch {
	case n >= columns:
		p.out = p.out[:start]
	case p.inCIE:
		p.initial[n] = append([]byte(nil), p.out[start:]...)
	}
}

// restore gives register n the CIE's rule, or else the ABI's: stack pointer and
// preserved registers have a value, the others have none.
func (p *program) restore(n uint64) {
	switch {
	case n >= columns:
	case p.initial[n] != nil:
		p.out = append(p.out, p.initial[n]...)
	case n == 7:
		p.head(frame.DW_CFA_val_offset_sf, n)
		p.sleb(0)
	case n == 3 || n == 6 || n >= 12 && n <= 15:
		p.head(frame.DW_CFA_same_value, n)
	default:
		p.head(frame.DW_CFA_undefined, n)
	}
}

func (p *program) head(opcode byte, n uint64) {
	p.out = append(p.out, opcode)
	p.uleb(n)
}

func (p *program) uleb(v uint64) {
	for ; v >= 0x80; v >>= 7 {
		p.out = append(p.out, byte(v)|0x80)
	}
	p.out = append(p.out, byte(v))
}

func (p *program) sleb(v int64) { leb128.EncodeSigned((*byteAppender)(&p.out), v) }

func (p *program) block(r *reader) {
	b := r.take(r.uleb())
	p.uleb(uint64(len(b)))
	p.out = append(p.out, b...)
}

// byteAppender is an io.ByteWriter onto a slice.
type byteAppender []byte

// WriteByte implements io.ByteWriter.
func (b *byteAppender) WriteByte(c byte) error {
	*b = append(*b, c)
	return nil
}

// interpreter returns delve's form of the FDE, parsed from a section that holds
// only its CIE and the FDE with the rewritten program.
func interpreter(f *fde, code []byte) (*frame.FrameDescriptionEntry, error) {
	le := binary.LittleEndian
	var p program
	p.out = append(p.out, 1, 0, 1) // version, no augmentation, code alignment
	p.sleb(f.cie.dataAlign)
	p.uleb(f.cie.ra)
	section := le.AppendUint32(nil, uint32(4+len(p.out)))
	section = le.AppendUint32(section, 0xffffffff)
	section = append(section, p.out...)
	section = le.AppendUint32(section, uint32(4+16+len(code)))
	section = le.AppendUint32(section, 0)
	section = le.AppendUint64(section, f.begin)
	section = le.AppendUint64(section, f.end-f.begin)
	section = append(section, code...)
	var entries frame.FrameDescriptionEntries
	err := recovered("call frame information", func() (err error) {
		entries, err = frame.Parse(section, le, 0, 8, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(entries) != 1 {
		return nil, fmt.Errorf("call frame information: %d entries where one was made", len(entries))
	}
	return entries[0], nil
}
