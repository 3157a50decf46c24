package gotable

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
)

// Call is one level of the inlined calls at an address.
type Call struct {
	Function string
	// File and Line are where the call is in this function; "" and 0 when the
	// table does not have them.
	File    string
	Line    int
	Inlined bool
}

// maxInlined bounds the depth of inlined calls.
const maxInlined = 256

// CallsAt returns the calls at pc, innermost first, f itself last
// (runtime.inlineUnwinder). Of programs before Go 1.18 it returns f without a
// line, because the line may be that of an inlined call.
func (t *Table) CallsAt(f *Function, pc evidence.Addr) ([]Call, error) {
	if !t.HasFrames() {
		return []Call{{Function: f.Name}}, nil
	}
	var calls []Call
	for len(calls) < maxInlined {
		call := Call{Function: f.Name}
		inner, err := t.inlinedAt(f, pc)
		if err != nil {
			return nil, fmt.Errorf("inlined calls of %s at %v: %w", f.Name, pc, err)
		}
		if inner != nil {
			call.Function, call.Inlined = inner.name, true
		}
		if err := t.position(f, pc, &call); err != nil {
			return nil, fmt.Errorf("the line of %s at %v: %w", f.Name, pc, err)
		}
		calls = append(calls, call)
		if inner == nil {
			return calls, nil
		}
		pc = f.Begin + evidence.Addr(inner.parent)
	}
	return nil, fmt.Errorf("more than %d inlined calls of %s", maxInlined, f.Name)
}

// inlined is an entry of an inline tree. parent is an instruction of the caller,
// as an offset in the function.
type inlined struct {
	name   string
	parent uint32
}

// inlinedAt returns the innermost inlined call at pc; nil for none.
func (t *Table) inlinedAt(f *Function, pc evidence.Addr) (*inlined, error) {
	if f.record.inlineTree == noTree || f.record.inlines == 0 {
		return nil, nil
	}
	index, err := t.valueAt(f.record.inlines, f.Begin, pc)
	if errors.Is(err, errNoValue) || err == nil && index < 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// runtime.inlinedCall: Go 1.20 dropped the indexes of the caller and the
	// file, and put the name first.
	size, name, parent := 16, 4, 8
	if t.layout < layout120 {
		size, name, parent = 20, 12, 16
	}
	b := make([]byte, size)
	tree := t.Module.FunctionData + evidence.Addr(f.record.inlineTree)
	if _, err := t.memory.ReadMemory(tree+evidence.Addr(size)*evidence.Addr(index), b); err != nil {
		return nil, err
	}
	call := &inlined{parent: binary.LittleEndian.Uint32(b[parent:])}
	if call.parent >= uint32(f.End-f.Begin) {
		return nil, fmt.Errorf("call %d is at offset %#x", index, call.parent)
	}
	call.name, err = t.memory.text(t.names + evidence.Addr(binary.LittleEndian.Uint32(b[name:])))
	return call, err
}

// position adds the file and the line of pc.
func (t *Table) position(f *Function, pc evidence.Addr, call *Call) error {
	line, err := t.valueAt(f.record.lines, f.Begin, pc)
	if errors.Is(err, errNoValue) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := t.valueAt(f.record.files, f.Begin, pc)
	if errors.Is(err, errNoValue) || err == nil && file < 0 {
		return nil
	}
	if err != nil {
		return err
	}
	offset, err := t.memory.u32(t.units + 4*(evidence.Addr(f.record.unit)+evidence.Addr(file)))
	if err != nil || offset == noTree {
		return err
	}
	call.File, err = t.memory.text(t.files + evidence.Addr(offset))
	call.Line = int(max(line, 0))
	return err
}
