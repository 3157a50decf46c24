package value

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Location is where a variable's bytes are.
type Location struct {
	// InMemory says that the location is Addr, and not Register.
	InMemory bool
	Addr     evidence.Addr
	Register image.Register
	// InRegister is true for a whole register.
	InRegister bool

	pieces []piece
}

// String is "rbx", "0x7ffe3c10", "2 pieces", or "" for a value that the
// compiler describes but does not store.
func (l Location) String() string {
	switch {
	case l.InMemory:
		return l.Addr.String()
	case l.InRegister:
		return l.Register.String()
	case len(l.pieces) > 1:
		return fmt.Sprintf("%d pieces", len(l.pieces))
	case len(l.pieces) == 1:
		return l.pieces[0].String()
	}
	return ""
}

type pieceKind uint8

const (
	pieceMemory pieceKind = iota
	pieceRegister
	pieceVector
	pieceBytes   // implicit value
	pieceMissing // err says why
)

// piece is a part of a variable and where it is (DWARF 5 section 2.6.1).
type piece struct {
	kind pieceKind
	// size in bytes; -1 is the whole variable.
	size   int64
	addr   evidence.Addr
	number uint64 // of the register, xmm0 being 0
	bytes  []byte
	err    error
}

func (p *piece) String() string {
	switch p.kind {
	case pieceMemory:
		return p.addr.String()
	case pieceRegister:
		return image.Register(p.number).String()
	case pieceVector:
		return fmt.Sprintf("xmm%d", p.number)
	}
	return ""
}

// Lives returns where a variable lives in the frame. The error is an
// *UnavailableError when the variable has no value there.
func Lives(f *Frame, v debuginfo.Variable) (Location, error) {
	if len(v.Location) == 0 {
		if v.Const != nil {
			return Location{pieces: []piece{{kind: pieceBytes, size: -1, bytes: v.Const}}}, nil
		}
		return Location{}, optimizedOut("")
	}
	e := evaluator{frame: f, frameBase: v.FrameBase, variable: &v}
	pieces, err := e.locate(v.Location)
	if err != nil {
		return Location{}, err
	}
	loc := Location{pieces: pieces}
	if len(pieces) != 1 {
		return loc, nil
	}
	p := pieces[0]
	if p.kind != pieceMissing && p.size >= 0 && (v.Type == nil || p.size != v.Type.Size()) {
		return loc, nil // a part of it
	}
	switch p.kind {
	case pieceMemory:
		loc.InMemory, loc.Addr = true, p.addr
	case pieceRegister:
		loc.InRegister, loc.Register = true, image.Register(p.number)
	case pieceMissing:
		return loc, p.err
	}
	return loc, nil
}

// object returns the variable's bytes as something to format.
func (l Location) object(f *Frame, size int64) (object, error) {
	if l.InMemory {
		return object{source: memorySource{f.readable(), l.Addr}}, nil
	}
	if size <= 0 || size > maxObject {
		return object{}, fmt.Errorf("a variable of %d bytes in registers", size)
	}
	s := &bufferSource{}
	for _, p := range l.pieces {
		want := p.size
		if want < 0 {
			want = size
		}
		if rest := size - int64(len(s.data)); want > rest {
			want = rest
		}
		data, err := p.read(f, want)
		if err != nil {
			start := int64(len(s.data))
			s.holes = append(s.holes, hole{start, start + want, err})
			data = make([]byte, want)
		}
		s.data = append(s.data, data...)
	}
	if known := int64(len(s.data)); known < size {
		s.holes = append(s.holes, hole{known, size, optimizedOut("")})
		s.data = append(s.data, make([]byte, size-known)...)
	}
	return object{source: s}, nil
}

// read returns exactly size bytes, or an error.
func (p *piece) read(f *Frame, size int64) ([]byte, error) {
	switch p.kind {
	case pieceMemory:
		return memorySource{f.readable(), p.addr}.read(0, size)
	case pieceBytes:
		return wholeBytes(p.bytes, size, "the constant in the debug information")
	case pieceRegister:
		v, ok := f.Registers.Get(image.Register(p.number))
		if !ok {
			return nil, registerLost(p.number)
		}
		return wholeBytes(binary.LittleEndian.AppendUint64(nil, v), size, image.Register(p.number).String())
	case pieceVector:
		data, err := vectorBytes(f, p.number)
		if err != nil {
			return nil, err
		}
		return wholeBytes(data, size, fmt.Sprintf("xmm%d", p.number))
	}
	return nil, p.err
}

func wholeBytes(data []byte, size int64, what string) ([]byte, error) {
	if size > int64(len(data)) {
		return nil, unavailable(fmt.Sprintf("%s holds only %d of its %d bytes", what, len(data), size))
	}
	return data[:size], nil
}

func vectorBytes(f *Frame, number uint64) ([]byte, error) {
	if f.Registers.Vector == nil || number >= uint64(len(f.Registers.Vector)) {
		return nil, optimizedOut(fmt.Sprintf("xmm%d is not known in this frame", number))
	}
	return f.Registers.Vector[number][:], nil
}

// registerLost is the reason for a register that a callee may have changed.
func registerLost(number uint64) error {
	if number <= uint64(image.RIP) {
		return optimizedOut(fmt.Sprintf("%v is not kept across the call", image.Register(number)))
	}
	return unavailable("it is in " + registerName(number) + ", which is not read")
}

// registerName names a DWARF register (System V ABI, figure 3.36).
func registerName(number uint64) string {
	switch {
	case number <= uint64(image.RIP):
		return image.Register(number).String()
	case isVector(number):
		return fmt.Sprintf("xmm%d", number-firstVector)
	case number >= 33 && number <= 40:
		return fmt.Sprintf("st(%d)", number-33)
	}
	return fmt.Sprintf("DWARF register %d", number)
}

// xmm0 to xmm15 are DWARF registers 17 to 32.
const firstVector, lastVector = 17, 32

func isVector(number uint64) bool { return number >= firstVector && number <= lastVector }
