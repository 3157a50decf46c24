package pyframes

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

// The bounds of objects.
const (
	mostName  = 4096    // characters
	mostLines = 1 << 20 // bytes of a table of lines
	mostCodes = 1 << 14 // code objects that are kept
)

// code has the fields of a code object that frames need.
type code struct {
	name, file string
	first      int
	lines      []byte
	// traceable is the first code unit that belongs to the function itself.
	traceable uint32
}

func (r *reader) codeAt(at evidence.Addr) (*code, error) {
	if c := r.codes[at]; c != nil {
		return c, nil
	}
	c, err := r.readCode(at)
	if err != nil {
		return nil, fmt.Errorf("code object at %v: %w", at, err)
	}
	if len(r.codes) < mostCodes {
		r.codes[at] = c
	}
	return c, nil
}

func (r *reader) readCode(at evidence.Addr) (c *code, err error) {
	if err := r.isA(at, r.code, "code"); err != nil {
		return nil, err
	}
	l := r.layout
	c = &code{}
	if c.name, err = r.textOf(at + evidence.Addr(l.qualname)); err != nil {
		return nil, err
	}
	if c.file, err = r.textOf(at + evidence.Addr(l.file)); err != nil {
		return nil, err
	}
	first, err := image.Uint32(r.memory, at+evidence.Addr(l.first))
	if err != nil {
		return nil, err
	}
	c.first = int(int32(first))
	if l.traceable != unused {
		if c.traceable, err = image.Uint32(r.memory, at+evidence.Addr(l.traceable)); err != nil {
			return nil, err
		}
	}
	table, err := r.pointer(at + evidence.Addr(l.linetable))
	if err != nil {
		return nil, err
	}
	c.lines, err = r.readBytes(table)
	return c, err
}

// isA refuses an object of another type.
func (r *reader) isA(at, typ evidence.Addr, name string) error {
	found, err := r.pointer(at + objectType)
	if err != nil {
		return err
	}
	if found != typ {
		return fmt.Errorf("the object at %v is no %s", at, name)
	}
	return nil
}

// readBytes reads a bytes object.
func (r *reader) readBytes(at evidence.Addr) ([]byte, error) {
	if err := r.isA(at, r.bytes, "bytes"); err != nil {
		return nil, err
	}
	n, err := image.Uint64(r.memory, at+variableSize)
	if err != nil {
		return nil, err
	}
	if n > mostLines {
		return nil, fmt.Errorf("the table of lines at %v has %d bytes", at, n)
	}
	b := make([]byte, n)
	_, err = r.memory.ReadMemory(at+bytesText, b)
	return b, err
}

// textOf reads the string that a pointer leads to.
func (r *reader) textOf(pointer evidence.Addr) (string, error) {
	at, err := r.pointer(pointer)
	if err != nil {
		return "", err
	}
	return r.text(at)
}

// text reads a string whose characters follow its header, as those of names do (Include/cpython/unicodeobject.h).
func (r *reader) text(at evidence.Addr) (string, error) {
	if err := r.isA(at, r.unicode, "str"); err != nil {
		return "", err
	}
	n, err := image.Uint64(r.memory, at+unicodeLength)
	if err != nil {
		return "", err
	}
	state, err := image.Uint32(r.memory, at+unicodeState)
	if err != nil {
		return "", err
	}
	kind, compact, ascii := uint64(state>>2&7), state>>5&1 != 0, state>>6&1 != 0
	if !compact || n > mostName || kind != 1 && kind != 2 && kind != 4 || ascii && kind != 1 {
		return "", fmt.Errorf("the string at %v has %d characters of %d bytes", at, n, kind)
	}
	header := r.layout.compact
	if ascii {
		header = r.layout.ascii
	}
	b := make([]byte, n*kind)
	if _, err := r.memory.ReadMemory(at+evidence.Addr(header), b); err != nil {
		return "", err
	}
	return wording.Name(decode(b, int(kind))), nil
}

// decode converts characters of 1, 2 or 4 bytes (PEP 393).
func decode(b []byte, kind int) string {
	var out strings.Builder
	for ; len(b) >= kind; b = b[kind:] {
		var c rune
		switch kind {
		case 1:
			c = rune(b[0])
		case 2:
			c = rune(binary.LittleEndian.Uint16(b))
		default:
			c = rune(binary.LittleEndian.Uint32(b))
		}
		if utf16.IsSurrogate(c) {
			c = 0xfffd // a byte of a file's name that is no UTF-8 (PEP 383)
		}
		out.WriteRune(c)
	}
	return out.String()
}
