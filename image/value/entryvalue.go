package value

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// entryValue returns what a register held when the frame's function was
// entered (DWARF 5 section 2.5.1.7), from the caller's description of the
// argument that it passed in the register.
func (e *evaluator) entryValue(block []byte) (uint64, error) {
	number, err := entryRegister(block)
	if err != nil {
		return 0, err
	}
	lost := func(why string) error {
		return optimizedOut(fmt.Sprintf("it was passed in %s, and %s", registerName(number), why))
	}
	var caller *Frame
	if e.frame.Caller != nil {
		caller = e.frame.Caller()
	}
	if caller == nil || caller.Module == nil {
		return 0, lost("the caller is not known")
	}
	if e.nesting >= maxEntryValues {
		return 0, lost("callers that only passed it on were followed no further")
	}
	if err := e.directCall(caller); err != nil {
		return 0, lost(err.Error())
	}
	info, err := caller.Module.Debug()
	if err != nil || info == nil {
		return 0, lost("the caller has no debug information")
	}
	expr, ok, err := info.CallSiteParameter(caller.Module.LinkAddr(caller.Registers.PC()), int(number))
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, lost("the caller does not say what it passed")
	}
	inner := evaluator{frame: caller, nesting: e.nesting + 1}
	list, err := scan(expr)
	if err != nil {
		return 0, err
	}
	v, err := inner.value(list)
	if err != nil {
		return 0, lost("the caller has not kept it")
	}
	return v, nil
}

// entryRegister returns the register whose entry value is needed. Entry values
// of memory cannot be recovered from a dead process.
func entryRegister(block []byte) (uint64, error) {
	list, err := scan(block)
	if err != nil {
		return 0, err
	}
	if len(list) == 1 {
		if number, ok := registerOperand(list[0]); ok {
			return number, nil
		}
		if code := list[0].code; code == opRegvalType || code == opGNURegvalType {
			return list[0].args[0], nil
		}
	}
	return 0, optimizedOut("described by what memory held at the function's entry")
}

// directCall reports why the frame's function may not be the one that the
// caller called: after an indirect call, or a call of another function that
// made a tail call, the caller's arguments may not be this frame's.
func (e *evaluator) directCall(caller *Frame) error {
	f := e.frame
	memory := f.readable()
	if memory == nil || f.Module == nil {
		return fmt.Errorf("the function is not known")
	}
	info, err := f.Module.Debug()
	if err != nil || info == nil {
		return fmt.Errorf("the function has no debug information")
	}
	function, err := info.FunctionAt(f.lookupPC())
	if err != nil || function == nil {
		return fmt.Errorf("the function is not known")
	}
	back := caller.Registers.PC()
	target, ok := callTarget(memory, back)
	if !ok {
		return fmt.Errorf("the call was an indirect one, perhaps to another function")
	}
	entry := f.Module.Addr(function.Entry)
	if target == entry {
		return nil
	}
	if bound, ok := stubTarget(memory, target); ok && bound == entry {
		return nil
	}
	return fmt.Errorf("the caller called another function, which must have jumped to this one")
}

// callTarget decodes the direct near call (E8 rel32) that ends at back.
func callTarget(m image.Memory, back evidence.Addr) (evidence.Addr, bool) {
	var b [5]byte
	if _, err := m.ReadMemory(back-5, b[:]); err != nil || b[0] != 0xe8 {
		return 0, false
	}
	return back + evidence.Addr(int64(int32(binary.LittleEndian.Uint32(b[1:])))), true
}

// stubTarget follows a PLT stub, "jmp *disp32(%rip)" after an optional endbr64
// and bnd prefix, to the function that its slot was bound to.
func stubTarget(m image.Memory, stub evidence.Addr) (evidence.Addr, bool) {
	code := make([]byte, 11)
	n, _ := m.ReadMemory(stub, code)
	at, code := stub, code[:n]
	for _, prefix := range []string{"\xf3\x0f\x1e\xfa", "\xf2"} {
		if rest, ok := bytes.CutPrefix(code, []byte(prefix)); ok {
			at, code = at+evidence.Addr(len(prefix)), rest
		}
	}
	if len(code) < 6 || code[0] != 0xff || code[1] != 0x25 {
		return 0, false
	}
	slot := at + 6 + evidence.Addr(int64(int32(binary.LittleEndian.Uint32(code[2:]))))
	target, err := image.Uint64(m, slot)
	return evidence.Addr(target), err == nil
}
