package gotable

import (
	"encoding/binary"
	"fmt"
	"sort"

	"diagnose/evidence"
)

// Function is a function that has code of its own.
type Function struct {
	Name string
	// Begin is its first address, End that of the next function.
	Begin, End evidence.Addr
	// TopFrame says that it is at the outer end of its stack, ChangesStack
	// that it sets the stack pointer to another stack, Assembly that it was
	// not made by the compiler (abi.FuncFlag).
	TopFrame, ChangesStack, Assembly bool

	record funcRecord
}

// HasFrames reports whether FrameSize and CallsAt know the functions of the
// table: not those of programs before Go 1.18.
func (t *Table) HasFrames() bool { return t.layout >= layout118 }

// Injected reports whether the runtime makes the processor continue in this
// function: its return address is the interrupted instruction, not one after a
// call (runtime.sigctxt.pushCall).
func (f *Function) Injected() bool {
	return f.Name == "runtime.sigpanic" || f.Name == "runtime.asyncPreempt" || f.Name == "runtime.debugCallV2"
}

// funcRecord is runtime._func.
type funcRecord struct {
	name                          uint32
	frames, files, lines, inlines uint32 // offsets of pc-value tables
	unit                          uint32
	inlineTree                    uint32 // offset in go:func.*; noTree for none
	flags                         byte
}

const (
	noTree = ^uint32(0)
	// pcdataInline and funcdataInline are abi.PCDATA_InlTreeIndex and
	// FUNCDATA_InlTree.
	pcdataInline, funcdataInline = 2, 3
	// flagTop, flagSPWrite and flagAssembly are abi.FuncFlag.
	flagTop, flagSPWrite, flagAssembly = 1, 2, 4
)

// FunctionAt returns the function whose code pc is in; ok is false when pc is
// not in the program's Go code.
func (t *Table) FunctionAt(pc evidence.Addr) (f Function, ok bool, err error) {
	if !t.Module.Code.Contains(pc) {
		return f, false, nil
	}
	at := sort.Search(int(t.count), func(i int) bool {
		begin, _, readErr := t.entry(uint64(i))
		if readErr != nil {
			err = readErr
		}
		return begin > pc
	})
	if err != nil || at == 0 {
		return f, false, err
	}
	begin, record, err := t.entry(uint64(at - 1))
	if err != nil {
		return f, false, err
	}
	end, _, err := t.entry(uint64(at))
	if err != nil || pc >= end {
		return f, false, err
	}
	f.Begin, f.End = begin, end
	if f.record, err = t.readRecord(record); err != nil {
		return f, false, fmt.Errorf("the record of the function at %v: %w", begin, err)
	}
	f.TopFrame, f.ChangesStack, f.Assembly = f.record.flags&flagTop != 0, f.record.flags&flagSPWrite != 0, f.record.flags&flagAssembly != 0
	if f.Name, err = t.memory.text(t.names + evidence.Addr(f.record.name)); err != nil {
		return f, false, fmt.Errorf("the name of the function at %v: %w", begin, err)
	}
	return f, true, nil
}

func (t *Table) readRecord(addr evidence.Addr) (funcRecord, error) {
	r := funcRecord{inlineTree: noTree}
	size := 4 // of the entry
	if t.layout < layout118 {
		size = 8
	}
	words := 8 // nameOff to cuOffset
	if t.layout >= layout120 {
		words++ // startLine
	}
	b := make([]byte, size+4*words+4)
	if _, err := t.memory.ReadMemory(addr, b); err != nil {
		return r, err
	}
	le := binary.LittleEndian
	word := func(i int) uint32 { return le.Uint32(b[size+4*i:]) }
	r.name, r.frames, r.files, r.lines, r.unit = word(0), word(3), word(4), word(5), word(7)
	if !t.HasFrames() {
		return r, nil
	}
	tail := b[size+4*words:]
	pcdata, funcdata := word(6), uint32(tail[3])
	r.flags = tail[1]
	after := addr + evidence.Addr(len(b))
	if pcdata <= pcdataInline || funcdata <= funcdataInline {
		return r, nil
	}
	var err error
	if r.inlines, err = t.memory.u32(after + 4*pcdataInline); err != nil {
		return r, err
	}
	r.inlineTree, err = t.memory.u32(after + 4*evidence.Addr(pcdata) + 4*funcdataInline)
	return r, err
}

// FrameSize is the distance from the stack pointer at pc to the function's
// return address, in bytes.
func (t *Table) FrameSize(f *Function, pc evidence.Addr) (int64, error) {
	if !t.HasFrames() {
		return 0, fmt.Errorf("frame sizes of programs before Go 1.18 are not read")
	}
	size, err := t.valueAt(f.record.frames, f.Begin, pc)
	if err == nil && (size < 0 || size%8 != 0) {
		err = fmt.Errorf("a frame of %d bytes", size)
	}
	if err != nil {
		return 0, fmt.Errorf("the frame size of %s at %v: %w", f.Name, pc, err)
	}
	return int64(size), nil
}
