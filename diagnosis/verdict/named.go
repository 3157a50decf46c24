package verdict

import (
	"bytes"

	"golang.org/x/sys/unix"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// nameText is a text that a function was handed: its size in bytes is with the zero at its end.
type nameText struct {
	addr evidence.Addr
	size int
}

// nameTexts are the texts among the arguments of a call.
func nameTexts(m image.Memory, kinds string, regs *image.Registers) (list []nameText) {
	for i := range min(len(kinds), len(arguments)) {
		v, known := regs.Get(arguments[i])
		if kinds[i] != 's' || !known {
			continue
		}
		b := make([]byte, unix.PathMax)
		n, _ := m.ReadMemory(evidence.Addr(v), b) // the mapping may end after the text
		if end := bytes.IndexByte(b[:n], 0); end >= 0 {
			list = append(list, nameText{evidence.Addr(v), end + 1})
		}
	}
	return list
}

// misnamed are the errors of a name that leads nowhere.
var misnamed = map[unix.Errno]bool{unix.ENOENT: true, unix.ENOTDIR: true, unix.ENAMETOOLONG: true}

// composed reports whether the program made a name of input by itself, which a call was handed: then the program may have made it wrongly.
// It made none where the name is its own from the start, or one that it was given as it is. Without a trace of the call nothing is
// reported.
func (c *chain) composed(f *calledFunction) bool {
	if err := c.exact.record(c.progress.ctx, c.Image, c.progress.say); err != nil || c.exact.trace == nil {
		return false
	}
	t := c.exact.trace
	call := t.Last(c.exact.failing())
	for ; call >= 0; call = t.Previous(call) {
		s := t.Step(call)
		if s.Inst != nil && s.Inst.Flow == x86.FlowCall && s.PC+evidence.Addr(s.Inst.Len) == f.back && evidence.Addr(t.Register(call, x86.RSP)) == f.sp {
			break
		}
	}
	if call < 0 {
		return false
	}
	for _, name := range f.names {
		if text := provenance.TextAt(t, name.addr, name.size, call, c.exact.beforeOf()); !text.Constant && !text.Whole {
			return true
		}
	}
	return false
}

// beforeOf says of memory which the trace has no store to what gave it its value.
func (x *window) beforeOf() func(evidence.Addr) provenance.Memory {
	started := started(x.process)
	return func(addr evidence.Addr) provenance.Memory {
		m := x.process.MappingAt(addr)
		switch {
		case m == nil:
		case started != 0 && addr >= started && m.Start <= started:
			return provenance.Started
		case x.process.ModuleAt(addr) != nil && (x.whole || len(m.Perms) == len("rwx") && m.Perms[1] != 'w'):
			return provenance.OfFile
		}
		return provenance.Earlier
	}
}

// started is where the kernel put the program's arguments and environment, above the first frame of the first thread; 0: that is not known.
func started(p *image.Process) evidence.Addr {
	const most = 256 // frames
	for i := range p.Threads {
		frames := unwind.New(p).Walk(&p.Threads[i], most).Frames
		if len(frames) == 0 {
			continue
		}
		first := &frames[len(frames)-1]
		if s, ok := p.SymbolAt(first.Registers.PC()); ok && s.Name == "_start" {
			return first.Registers.SP()
		}
	}
	return 0
}
