package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
)

// Overwritten is memory as it was.
type Overwritten struct {
	Addr evidence.Addr
	Data []byte
}

func (o *Overwritten) end() evidence.Addr { return o.Addr + evidence.Addr(len(o.Data)) }

// overlay is a process's memory with what was overwritten put back.
type overlay struct {
	image.Memory
	was Overwritten
}

func (o *overlay) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	n, err := o.Memory.ReadMemory(addr, p)
	for i := range n {
		if at := addr + evidence.Addr(i) - o.was.Addr; at < evidence.Addr(len(o.was.Data)) {
			p[i] = o.was.Data[at]
		}
	}
	return n, err
}
