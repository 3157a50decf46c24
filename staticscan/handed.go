package staticscan

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// handed is memory that a function of the C library works on, by a pointer that it
// is handed.
type handed struct {
	pointer int // the argument, from 0
	access  evidence.AccessKind
	// size and times are the arguments that say how many bytes; negative: none
	// does.
	size, times int
}

const noArgument = -1

func reads(pointer, size int) handed { return handed{pointer, evidence.Read, size, noArgument} }
func fills(pointer, size int) handed { return handed{pointer, evidence.Write, size, noArgument} }

// handedTo are the functions of the C library, and of POSIX, whose arguments tell
// what memory they work on.
var handedTo = map[string][]handed{
	"memcpy": {fills(0, 2), reads(1, 2)}, "memmove": {fills(0, 2), reads(1, 2)}, "mempcpy": {fills(0, 2), reads(1, 2)},
	"memset": {fills(0, 2)}, "bzero": {fills(0, 1)}, "memcmp": {reads(0, 2), reads(1, 2)}, "bcmp": {reads(0, 2), reads(1, 2)},
	"memchr": {reads(0, 2)}, "memrchr": {reads(0, 2)}, "memmem": {reads(0, 1), reads(2, 3)},
	"strlen": {reads(0, noArgument)}, "strnlen": {reads(0, 1)}, "strdup": {reads(0, noArgument)}, "strndup": {reads(0, 1)},
	"strcpy": {fills(0, noArgument), reads(1, noArgument)}, "stpcpy": {fills(0, noArgument), reads(1, noArgument)},
	"strncpy": {fills(0, 2), reads(1, noArgument)}, "stpncpy": {fills(0, 2), reads(1, noArgument)},
	"strcat": {{0, evidence.ReadWrite, noArgument, noArgument}, reads(1, noArgument)}, "strncat": {{0, evidence.ReadWrite, noArgument, noArgument}, reads(1, 2)},
	"strcmp": {reads(0, noArgument), reads(1, noArgument)}, "strncmp": {reads(0, 2), reads(1, 2)},
	"strcasecmp": {reads(0, noArgument), reads(1, noArgument)}, "strncasecmp": {reads(0, 2), reads(1, 2)},
	"strchr": {reads(0, noArgument)}, "strrchr": {reads(0, noArgument)}, "strstr": {reads(0, noArgument), reads(1, noArgument)},
	"strspn": {reads(0, noArgument)}, "strcspn": {reads(0, noArgument)}, "strpbrk": {reads(0, noArgument)},
	"strtol": {reads(0, noArgument)}, "strtoul": {reads(0, noArgument)}, "strtoll": {reads(0, noArgument)}, "strtoull": {reads(0, noArgument)},
	"strtod": {reads(0, noArgument)}, "atoi": {reads(0, noArgument)}, "atol": {reads(0, noArgument)}, "atof": {reads(0, noArgument)},
	"sprintf": {fills(0, noArgument)}, "snprintf": {fills(0, 1)}, "vsprintf": {fills(0, noArgument)}, "vsnprintf": {fills(0, 1)},
	"puts": {reads(0, noArgument)}, "fputs": {reads(0, noArgument)}, "fgets": {fills(0, 1)},
	"fread": {{0, evidence.Write, 1, 2}}, "fwrite": {{0, evidence.Read, 1, 2}},
	"read": {fills(1, 2)}, "pread": {fills(1, 2)}, "pread64": {fills(1, 2)}, "recv": {fills(1, 2)}, "recvfrom": {fills(1, 2)},
	"write": {reads(1, 2)}, "pwrite": {reads(1, 2)}, "pwrite64": {reads(1, 2)}, "send": {reads(1, 2)}, "sendto": {reads(1, 2)},
}

// fortified is a function of the library's by the name without the check that
// _FORTIFY_SOURCE adds; the arguments that matter have the same places.
func fortified(name string) string {
	if inner, ok := strings.CutSuffix(name, "_chk"); ok {
		name = strings.TrimPrefix(inner, "__")
	}
	return name
}

// call is a call with what the flow knows of its arguments.
type call struct {
	inst      int
	to        evidence.Addr // 0: not known
	arguments [6]value
}

// noteCall keeps a call, or a jump that leaves the function, whose arguments lead to
// memory that others may know of.
func (a *analysis) noteCall(i int, st *state) {
	in := &a.flow.insts[i]
	if in.Flow != x86.FlowCall && (in.Flow != x86.FlowJump || a.flow.inside(in)) {
		return
	}
	c := call{inst: i, to: evidence.Addr(in.Target)}
	if op, ok := explicit(in, 0); ok && !in.HasTarget {
		to, _ := a.flow.value(st, op).constant()
		c.to = evidence.Addr(to)
	}
	shared := false
	for n, r := range x86.ArgumentRegisters {
		c.arguments[n] = st.regs[r]
		v := &c.arguments[n]
		shared = shared || v.kind == loaded || v.kind == absolute && a.flow.isData(uint64(v.off))
	}
	if shared {
		a.calls = append(a.calls, c)
	}
}

// inside reports whether a jump stays in the function, as far as is known.
func (g *graph) inside(in *x86.Inst) bool {
	_, found := g.index(in.Target)
	return in.HasTarget && found
}

// collectCalls makes suspects of the memory that functions of the C library are
// handed, and with Options.Handed of what begins where others are.
func (s *scan) collectCalls(place int) {
	f := &s.scope[place]
	for i := range f.calls {
		c := &f.calls[i]
		name := s.libraryName(c.to)
		if name == "" && s.opts.Handed {
			s.collectHanded(place, c)
		}
		for _, h := range handedTo[fortified(name)] {
			at := c.arguments[h.pointer]
			if at.kind == unknown || at.kind == stack || at.kind == loaded && at.varies {
				continue
			}
			size := c.size(h)
			switch {
			case size == 0 && at.kind == absolute:
				at.varies, size = true, 1 // all of what begins there
			case size == 0:
				size = 8
			case at.varies && s.nameValue(at, size, 0).array == nil:
				size = 1 // of an array of smaller elements
			}
			s.suspect(place, access{c.inst, &x86.Operand{IsMemory: true, Access: h.access, Size: size}, at}, at)
		}
	}
}

// collectHanded makes suspects of the first words of the static variables whose
// addresses are a call's arguments. (In C++ the object of a method.)
func (s *scan) collectHanded(place int, c *call) {
	for _, at := range c.arguments {
		if at.kind == absolute && !at.varies && s.isData(uint64(at.off)) {
			s.suspect(place, access{c.inst, &x86.Operand{IsMemory: true, Access: evidence.ReadWrite, Size: 8}, at}, at)
		}
	}
}

// size is how many bytes a call works on, as far as the code tells; 0: it does not.
func (c *call) size(h handed) int {
	const most = 1 << 30
	if h.size < 0 {
		return 0
	}
	n, ok := c.arguments[h.size].constant()
	if !ok || n <= 0 || n > most {
		return 0
	}
	if h.times >= 0 {
		times, ok := c.arguments[h.times].constant()
		if !ok || times <= 0 || times > most/n {
			return 0
		}
		n *= times
	}
	return int(n)
}

// libraryName names a function of a library at an address, behind the stubs of the
// dynamic linker; "" if it is none.
func (w *processView) libraryName(to evidence.Addr) string {
	if s, ok := w.process.SymbolAt(to); ok && s.Addr == to && strings.HasSuffix(s.Name, "@plt") {
		return evidence.ShortName(strings.TrimSuffix(s.Name, "@plt"))
	}
	to = w.callee(to)
	if s, ok := w.process.SymbolAt(to); ok && s.Addr == to && s.Module != w.process.Exe {
		return plainName(s.Name)
	}
	return ""
}
