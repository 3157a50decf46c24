package failure

import (
	"fmt"

	"diagnose/evidence"
)

func memoryPhrase(f *evidence.Failure, names Names) (head, tail string) {
	if f.Fault == nil {
		return string(f.Kind), message(f)
	}
	if f.Fault.Access == evidence.Execute {
		return executePhrase(f, names)
	}
	if names.Through != "" {
		return throughPhrase(f, names)
	}
	if len(f.LikelyNull) > 0 {
		accessed, tail := likelyNull(f)
		return "null pointer " + accessNoun(f.Fault) + of(accessed), tail
	}
	what, addr := accessNoun(f.Fault)+of(names.Accessed), f.Fault.Addr
	switch f.Kind {
	case evidence.NullPointer:
		return "null pointer " + what, nullTail(names, addr)
	case evidence.WriteToReadOnly:
		what = "write" + of(names.Accessed)
	}
	return what + " " + badMemory(f, names), badTail(f, names)
}

// throughPhrase describes a library function that failed with a pointer of the program: the
// function accesses the memory, not the program.
func throughPhrase(f *evidence.Failure, names Names) (head, tail string) {
	what := accessNoun(f.Fault)
	call := " in " + shortFunction(names.Through) + ", called"
	if !isRegister(f, names.Pointer) && names.Pointer != "" {
		call += " with " + names.Pointer
	} else {
		names.Pointer = ""
	}
	if f.Kind == evidence.NullPointer {
		return "null pointer " + what + call, ""
	}
	return what + " " + badMemory(f, names) + call, badTail(f, names)
}

// isRegister reports whether an expression is only a register's name, because no better one is
// known.
func isRegister(f *evidence.Failure, expr string) bool {
	if f.Instruction == nil {
		return false
	}
	for _, op := range f.Instruction.Operands {
		for _, r := range op.Registers {
			if r.Name == expr {
				return true
			}
		}
	}
	return false
}

// badMemory describes the defect of the memory, after "read of x".
func badMemory(f *evidence.Failure, names Names) string {
	switch f.Kind {
	case evidence.NearNullPointer:
		return "near null"
	case evidence.NonCanonical:
		return "through a non-canonical pointer"
	case evidence.WildPointer:
		if names.Index == "" {
			return "through a wild pointer"
		}
	case evidence.WriteToReadOnly:
		return "to read-only memory"
	case evidence.ProtectedPage:
		return "in protected memory"
	}
	return "at an unmapped address"
}

func badTail(f *evidence.Failure, names Names) string {
	addr := f.Fault.Addr
	switch f.Kind {
	case evidence.NearNullPointer:
		return badPointer(names, addr, "is no address")
	case evidence.NonCanonical:
		return joinText(badPointer(names, addr, "is no address"), spells(f, names))
	case evidence.WildPointer:
		return joinText(badPointer(names, addr, "is not mapped"), spells(f, names))
	case evidence.WriteToReadOnly:
		return placeText(f.Fault)
	case evidence.ProtectedPage:
		return joinText(message(f), placeText(f.Fault))
	}
	return badPointer(names, addr, "is not mapped")
}

func executePhrase(f *evidence.Failure, names Names) (head, tail string) {
	noun, way := "jump", "jump to"
	switch f.Arrival {
	case evidence.ArrivedByCall:
		noun, way = "call", "call of"
	case evidence.ArrivedByReturn:
		way, names.Pointer = "return to", returnAddress
	}
	addr := f.Fault.Addr
	switch f.Kind {
	case evidence.NullPointer:
		if f.Arrival == evidence.ArrivedByReturn {
			return "return to address 0", ""
		}
		return noun + " through a null pointer", isValue(names.Pointer, "null")
	case evidence.ExecuteOfData:
		return way + " data that is not code", placeText(f.Fault)
	case evidence.ProtectedPage:
		return way + " protected memory", placeText(f.Fault)
	case evidence.NonCanonical:
		return way + " a place that is no address", joinText(badPointer(names, addr, "is no address"), spells(f, names))
	}
	return way + " an unmapped address", joinText(badPointer(names, addr, "is not mapped"), spells(f, names))
}

func nullTail(names Names, addr evidence.Addr) string {
	if names.Pointer != "" {
		return names.Pointer + " is null"
	}
	if addr != 0 && names.Accessed == "" {
		return fmt.Sprintf("at offset %d from a null pointer", uint64(addr))
	}
	return ""
}

// returnAddress stands for the stack word that holds the target of a return. It has no offset.
const returnAddress = "the return address"

func badPointer(names Names, addr evidence.Addr, verdict string) string {
	if names.Pointer == returnAddress {
		return fmt.Sprintf("%s is %v", returnAddress, addr)
	}
	if names.Index != "" {
		return fmt.Sprintf("the index %s is %s, which leads to %v", names.Pointer, names.Index, addr)
	}
	if names.Pointer != "" {
		return fmt.Sprintf("%s leads to %v, which %s", names.Pointer, addr, verdict)
	}
	return fmt.Sprintf("%v %s", addr, verdict)
}

// spells shows how the bytes of a bad pointer read as text or as a fill value, which is a hint at
// the code that wrote them.
func spells(f *evidence.Failure, names Names) string {
	if names.Index != "" {
		return ""
	}
	subject, bytes := "its bytes are", f.Fault.Addr
	if names.Value != nil && names.Pointer != "" && *names.Value != bytes {
		subject, bytes = "and holds", *names.Value
	}
	if text := textIn(uint64(bytes)); text != "" {
		return fmt.Sprintf("%s the text %q", subject, text)
	}
	if fill := byte(bytes); fill != 0 && fill != 0xff && uint64(bytes) == uint64(fill)*0x0101010101010101 {
		return fmt.Sprintf("%s eight times %#02x", subject, fill)
	}
	return ""
}

func placeText(fault *evidence.Fault) string {
	if fault.Place.Text == "" {
		return fault.Addr.String()
	}
	return fmt.Sprintf("%v is %s", fault.Addr, fault.Place.Text)
}

func accessNoun(fault *evidence.Fault) string {
	if fault == nil || fault.Access == "" {
		return "access"
	}
	if fault.Access == evidence.Execute {
		return "execution"
	}
	return string(fault.Access)
}
