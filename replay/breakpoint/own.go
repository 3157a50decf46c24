package breakpoint

import (
	"bytes"

	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// Programs write code while they run: interpreters and just-in-time compilers. Such code is among the data that
// a place's digests are of, and what leads into it is not known from the text of an object.

// ownText reads memory as it is without the jumps of probes.
type ownText struct{ b *Breakpoints }

func (o ownText) ReadAt(p []byte, at int64) (int, error) {
	n, err := o.b.process.Memory.ReadAt(p, at)
	for _, x := range o.b.threads {
		if x.place == nil || x.place.probe == nil {
			continue
		}
		probe := x.place.probe
		for i, jump := range probe.jumps {
			cover(p[:n], uint64(at), jump, probe.replaced[i].Data)
		}
	}
	return n, err
}

// cover overwrites a jump, in bytes that were read at an address, with the bytes that it replaced. Other bytes there stay.
func cover(p []byte, at uint64, jump tracee.Words, own []byte) {
	low, high := max(at, jump.Addr), min(at+uint64(len(p)), jump.Addr+uint64(len(jump.Data)))
	if low >= high {
		return
	}
	read := p[low-at : high-at]
	if bytes.Equal(read, jump.Data[low-jump.Addr:high-jump.Addr]) {
		copy(read, own[low-jump.Addr:high-jump.Addr])
	}
}

// isGenerated reports whether the code at a pc is in memory that no object file says the contents of.
func (b *Breakpoints) isGenerated(pc uint64) (bool, error) {
	maps, err := b.process.Mappings()
	if err != nil {
		return false, err
	}
	m := maps.Containing(pc)
	return m == nil || m.Path == "" || m.Perms[1] == 'w', nil
}

// generatedWindow returns a window of the instruction at a pc alone: code may lead to any other. nil: it is too short.
func (b *Breakpoints) generatedWindow(t *tracee.Thread, pc uint64) *patch.Window {
	text := make([]byte, patch.MostInstruction)
	n, _ := b.process.Memory.ReadAt(text, int64(pc)) // fewer at the end of a mapping
	w := patch.SingleWindow(text[:n], pc)
	if w == nil || b.obstructed(t, w) {
		return nil
	}
	return w
}
