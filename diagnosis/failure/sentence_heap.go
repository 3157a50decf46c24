package failure

import "diagnose/evidence"

// HeapWords describe a failure by an object of the heap: What happened ("double free of a 40-byte
// object at 0x1000"), and Why ("first freed by thread 2").
type HeapWords struct{ What, Why string }

// heapPhrase names the access, if an access failed and not a call of free.
func heapPhrase(f *evidence.Failure, names Names) (head, tail string) {
	head, tail = names.Heap.What, names.Heap.Why
	if f.Fault == nil {
		return head, tail
	}
	switch f.Fault.Access {
	case evidence.Execute:
		head += " by a call or jump" + through(names.Pointer)
	case "":
		head += " by an access" + of(names.Accessed)
	default:
		head += " by a " + accessNoun(f.Fault)
		if names.Through == "" {
			head += of(names.Accessed)
		}
	}
	if names.Through != "" {
		head += " in " + shortFunction(names.Through) + ", called"
		if names.Pointer != "" && !isRegister(f, names.Pointer) {
			head += " with " + names.Pointer
		}
	}
	return head, tail
}

func through(expr string) string {
	if expr == "" {
		return ""
	}
	return " through " + expr
}
