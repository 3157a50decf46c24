package stackjudge

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
	"diagnose/image/x86/heights"
)

// mostWriters bounds the places that are listed.
const mostWriters = 8

// writers are the places in the function that may have written to the arrays: calls that were passed an address in
// one, by a function that is not known to read only, and stores of the function itself at an address that is
// made of one and an index.
func (j *judge) writers(a *activation, arrays []array) (list []evidence.FrameWriter) {
	for i := range a.Insts {
		inst := &a.Insts[i]
		if a.at[i] == nil || len(list) >= mostWriters {
			continue
		}
		within := func(p heights.Position, by int64) bool {
			p = heights.Moved(p, by)
			return p.Origin == heights.FromCFA && arrayAt(arrays, a.cfa+evidence.Addr(p.Offset))
		}
		if inst.Flow == x86.FlowCall {
			callee := j.calleeOf(inst)
			for n, r := range x86.ArgumentRegisters {
				if within(a.at[i][r], 0) && mayWrite(callee, n) && !j.takesConstant(inst, n) {
					list = append(list, j.writerAt(inst, callee, n))
					break
				}
			}
			continue
		}
		if storesIndexed(inst, a.at[i], within) {
			w := j.writerAt(inst, "", 0)
			same := func(x evidence.FrameWriter) bool {
				return x.Callee == "" && x.Site.Line != 0 && x.Site.Line == w.Site.Line && x.Site.File == w.Site.File
			}
			if !slices.ContainsFunc(list, same) {
				list = append(list, w)
			}
		}
	}
	return list
}

func (j *judge) writerAt(inst *x86.Inst, callee string, argument int) evidence.FrameWriter {
	call := inst.Flow == x86.FlowCall
	return evidence.FrameWriter{Call: call, Callee: callee, Argument: argument, Writes: !call || writes(callee, argument),
		Site: j.siteOf(evidence.Addr(inst.PC))}
}

// siteOf is the place of an instruction in the program's own code: that of the call, where a library's function is inlined.
func (j *judge) siteOf(pc evidence.Addr) evidence.Site {
	calls := j.Process.Symbolize(pc, image.AtInstruction)
	for i := range calls {
		if !image.LibraryCode(&calls[i].Site) {
			return calls[i].Site
		}
	}
	return calls[0].Site
}

// storesIndexed reports whether an instruction writes at the address of an array plus an index, or again and again from
// such an address on.
func storesIndexed(inst *x86.Inst, at *heights.Positions, within func(heights.Position, int64) bool) bool {
	for i := range inst.Operands {
		o := &inst.Operands[i]
		m := &o.Memory
		switch {
		case !o.IsMemory || !o.Access.Writes() || !m.Base.General():
		case o.Repeated:
			if within(at[m.Base], m.Disp) {
				return true
			}
		case m.Index.General() && (within(at[m.Base], m.Disp) || m.Scale == 1 && within(at[m.Index], m.Disp)):
			return true
		}
	}
	return false
}

// takesConstant reports whether the function that a call leads to declares an argument as a pointer to what it does not
// change. It is not known where an argument before it may be in no general register.
func (j *judge) takesConstant(inst *x86.Inst, n int) bool {
	to := evidence.Addr(inst.Target)
	m := j.Process.ModuleAt(to)
	if !inst.HasTarget || m == nil {
		return false
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return false
	}
	calls, err := info.CallsAt(m.LinkAddr(to))
	if err != nil || len(calls) == 0 {
		return false
	}
	list, err := info.VariablesAt(calls[len(calls)-1], m.LinkAddr(to))
	if err != nil || n >= len(list) {
		return false
	}
	for i := range list[:n+1] {
		if t := list[i].Type; !list[i].Parameter || !debuginfo.InGeneralRegister(t) {
			return false
		}
	}
	t := list[n].Type
	return t.Kind() == debuginfo.KindPointer && strings.HasPrefix(t.Name(), "const ")
}

// calleeOf is the name of the function that a call leads to; empty: it is not known.
func (j *judge) calleeOf(inst *x86.Inst) string {
	to := evidence.Addr(inst.Target)
	if !inst.HasTarget {
		if to = j.indirect(inst); to == 0 {
			return ""
		}
	}
	s, ok := j.Process.SymbolAt(to)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(s.Name, "@")
	return name
}

// indirect is the function whose address a call reads at a fixed place; 0: there is none.
func (j *judge) indirect(inst *x86.Inst) evidence.Addr {
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if o.Implicit || !o.IsMemory || !(o.Memory.Base == x86.RIP || o.Memory.Absolute) {
			continue
		}
		if v, err := image.Uint64(j.Process, evidence.Addr(o.Memory.Target)); err == nil {
			return evidence.Addr(v)
		}
	}
	return 0
}

// destinations are the arguments at whose addresses functions of the C library write; a function that is in neither
// list may write at any.
var destinations = map[string]int{
	"strcpy": 0, "stpcpy": 0, "strncpy": 0, "stpncpy": 0, "strcat": 0, "strncat": 0, "memcpy": 0, "memmove": 0, "mempcpy": 0, "memset": 0,
	"memccpy": 0, "bcopy": 1, "sprintf": 0, "vsprintf": 0, "snprintf": 0, "vsnprintf": 0, "gets": 0, "fgets": 0, "fread": 0, "read": 1, "pread": 1,
	"pread64": 1, "recv": 1, "recvfrom": 1, "getcwd": 0, "realpath": 1, "readlink": 1, "strftime": 0, "wcscpy": 0, "wmemcpy": 0, "wcsncpy": 0,
	"strxfrm": 0, "gethostname": 0, "swab": 1, "strlcpy": 0, "strlcat": 0,
}

// readers are functions of the C library that only read at the addresses of their arguments.
var readers = []string{"puts", "fputs", "fwrite", "write", "pwrite", "send", "sendto", "strlen", "strnlen", "strcmp", "strncmp", "strcasecmp",
	"strncasecmp", "memcmp", "bcmp", "strchr", "strrchr", "strstr", "memchr", "strspn", "strcspn", "strpbrk", "atoi", "atol", "atoll", "atof",
	"strdup", "strndup", "getenv", "setenv", "putenv", "fopen", "fopen64", "open", "open64", "unlink", "remove", "rename", "stat", "access",
	"perror", "syslog", "printf", "fprintf", "vprintf", "vfprintf", "dprintf", "system", "chdir", "mkdir", "rmdir", "execl", "execlp", "execv", "execvp"}

// mayWrite reports whether a function may write at the address that it is passed as an argument.
func mayWrite(callee string, argument int) bool {
	name := unchecked(callee)
	if to, ok := destinations[name]; ok {
		return argument == to
	}
	return !slices.Contains(readers, name)
}

// writes reports whether a function is known to write at the address that it is passed as an argument.
func writes(callee string, argument int) bool {
	to, ok := destinations[unchecked(callee)]
	return ok && to == argument
}

// unchecked is the name of the function for which another one checks sizes ("__strcpy_chk").
func unchecked(callee string) string {
	if plain, ok := strings.CutPrefix(callee, "__"); ok {
		if plain, ok = strings.CutSuffix(plain, "_chk"); ok {
			return plain
		}
	}
	return callee
}
