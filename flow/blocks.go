package flow

import "diagnose/image/x86/transfer"

// writes is a set of what steps write, apart from memory: a bit for each general register, and one for each other space.
type writes uint32

const (
	writesFlag writes = 1 << (16 + iota)
	writesVector
	writesMask
	writesFloat
	// writesAll also stands for steps in the library, and for instructions that are not known.
	writesAll writes = 1<<32 - 1
)

// writesOf is the bit of a place; 0: it is memory.
func writesOf(p transfer.Space, num uint8) writes {
	switch p {
	case transfer.General:
		return 1 << num
	case transfer.Flag:
		return writesFlag
	case transfer.Vector:
		return writesVector
	case transfer.Mask:
		return writesMask
	case transfer.Float:
		return writesFloat
	}
	return 0
}

// noteBlock adds what a step writes to the set of its block.
func (t *Trace) noteBlock(n int, s *step) {
	if b := n / blockSteps; b == len(t.blockWrites) {
		t.blockWrites = append(t.blockWrites, 0)
	}
	set := writesAll
	if i := t.instructions[s.pc]; !s.library && i != nil && i.inst != nil {
		set = i.writes
	}
	t.blockWrites[n/blockSteps] |= set
}

// passBlocks returns the last step of a thread, up to one of its steps, that is in a block in which something is written
// that is wanted; -1: there is none.
func (t *Trace) passBlocks(thread uint32, at int32, wanted writes) int32 {
	for at >= 0 {
		b := int(at) / blockSteps
		if t.blockWrites[b]&wanted != 0 {
			if t.steps.at(int(at)).thread == thread {
				break
			}
			at--
			continue
		}
		at = int32(b*blockSteps - 1)
	}
	return at
}
