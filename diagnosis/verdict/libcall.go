package verdict

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/staticscan"
)

// calledFunction is a function that a call leads to, with its arguments.
type calledFunction struct {
	name      string
	library   bool
	arguments []string
	names     []nameText
	site      *evidence.Site // of the call
	back, sp  evidence.Addr  // where it returns to; 0: not known
	first     evidence.Addr  // the first argument
}

// signature is what a function of the C library takes and returns: of each argument s a
// text, c a character, d a signed and u an unsigned number, p a pointer; behind the
// colon p, if it returns a pointer, and e, if it tells by errno why it failed.
var signatures = map[string]string{
	"getenv": "s:p", "secure_getenv": "s:p", "fopen": "ss:pe", "fopen64": "ss:pe", "freopen": "ssp:pe", "fdopen": "ds:pe", "popen": "ss:pe", "tmpfile": ":pe",
	"open": "sd:e", "open64": "sd:e", "stat": "sp:e", "lstat": "sp:e", "access": "sd:e", "chdir": "s:e", "mkdir": "su:e", "unlink": "s:e", "rename": "ss:e", "execv": "sp:e", "execvp": "sp:e", "opendir": "s:pe", "readdir": "p:p", "malloc": "u:pe", "calloc": "uu:pe", "realloc": "pu:pe", "reallocarray": "puu:pe",
	"strchr": "sc:p", "strrchr": "sc:p", "strstr": "ss:p", "strcasestr": "ss:p", "strpbrk": "ss:p", "strtok": "ss:p", "strdup": "s:pe", "strndup": "su:pe",
	"memchr": "pcu:p", "memmem": "pupu:p", "fgets": "pdp:p", "gets": "p:p", "getcwd": "pu:pe", "realpath": "sp:pe", "localtime": "p:pe", "gmtime": "p:pe",
	"setlocale": "ds:p", "dlopen": "sd:p", "dlsym": "ps:p", "getpwnam": "s:pe", "getpwuid": "u:pe", "getgrnam": "s:pe", "gethostbyname": "s:p", "ttyname": "d:pe",
	"getlogin": ":pe", "mmap": "puuddu:pe", "bsearch": "ppuup:p", "atoi": "s:", "atol": "s:", "strtol": "spd:", "strtoul": "spd:", "strtok_r": "ssp:p", "strsep": "ps:p",
	"read": "dpu:e", "recv": "dpu:e", "write": "dpu:e", "fread": "puup:", "fgetc": "p:", "getc": "p:", "getchar": ":", "getline": "ppp:e", "strspn": "ss:", "strcspn": "ss:",
	"strlen": "s:", "strcmp": "ss:", "inet_ntop": "dppu:pe", "shmat": "dpd:pe", "dynamic_cast": ":p",
}

// meaning says why a function of the C library returns no result.
var meaning = map[string]string{
	"getenv": "the variable is not set in the recording's environment", "secure_getenv": "the variable is not set in the recording's environment",
	"strchr": "the text has no such character", "strrchr": "the text has no such character", "memchr": "the memory has no such byte",
	"strstr": "the text does not contain the other one", "strcasestr": "the text does not contain the other one", "strpbrk": "the text has none of these characters",
	"strtok": "there is no further part", "strtok_r": "there is no further part", "strsep": "there is no further part",
	"fgets": "the input was at its end, or could not be read", "bsearch": "no element is equal", "readdir": "the directory has no further entry, or could not be read",
	"dlsym": "there is no such symbol", "getpwnam": "there is no such user", "getpwuid": "there is no such user", "getgrnam": "there is no such group", "dynamic_cast": "the object is of another class",
}

// outside are functions whose results come from outside of the program.
var outside = map[string]bool{"fopen": true, "fopen64": true, "freopen": true, "open": true, "open64": true, "opendir": true, "readdir": true, "popen": true,
	"stat": true, "lstat": true, "access": true, "chdir": true, "mkdir": true, "unlink": true, "rename": true, "execv": true, "execvp": true,
	"secure_getenv": true, "dlopen": true, "getpwnam": true, "getpwuid": true, "getgrnam": true, "gethostbyname": true, "getlogin": true, "realpath": true, "ttyname": true, "gets": true}

// opaque are functions whose results only other functions of the library can use.
var opaque = map[string]bool{"fopen": true, "fopen64": true, "freopen": true, "fdopen": true, "popen": true, "tmpfile": true, "opendir": true, "dlopen": true}

// calledFunctionOf describes the function that a call leads to, with the registers at
// the call.
func calledFunctionOf(p *image.Process, m image.Memory, site *staticscan.CallSite, regs *image.Registers) calledFunction {
	f := calledFunction{library: site.Library != "", name: libraryName(site.Library)}
	if !f.library {
		if s, ok := p.SymbolAt(site.To); ok {
			f.name = evidence.ShortName(s.Name)
		}
		if f.name == "" {
			f.name = fmt.Sprintf("the function at %v", site.To)
		}
		return f
	}
	kinds, _, _ := strings.Cut(signatures[f.name], ":")
	if outside[f.name] {
		f.names = nameTexts(m, kinds, regs)
	}
	if v, known := regs.Get(arguments[0]); known {
		f.first = evidence.Addr(v)
	}
	for i, kind := range []byte(kinds) {
		v, known := regs.Get(arguments[i])
		if !known {
			f.arguments = append(f.arguments, "?")
			continue
		}
		f.arguments = append(f.arguments, argumentText(m, kind, v))
	}
	return f
}

// argumentText is an argument as the program would write it.
func argumentText(m image.Memory, kind byte, v uint64) string {
	switch kind {
	case 's':
		if v == 0 {
			return "NULL"
		}
		const most = 64
		b := make([]byte, most)
		n, _ := m.ReadMemory(evidence.Addr(v), b) // the mapping may end behind the text
		if n == 0 {
			return fmt.Sprintf("%#x", v)
		}
		if end := bytes.IndexByte(b[:n], 0); end >= 0 {
			return fmt.Sprintf("%q", b[:end])
		}
		return fmt.Sprintf("%q...", b[:n])
	case 'c':
		return fmt.Sprintf("%q", rune(byte(v)))
	case 'd':
		return fmt.Sprint(int32(v))
	case 'u':
		return fmt.Sprint(v)
	}
	if v == 0 {
		return "NULL"
	}
	return fmt.Sprintf("%#x", v)
}

// text is the call as the program would write it.
func (f *calledFunction) text() string {
	if _, known := signatures[f.name]; !known || f.name == "dynamic_cast" {
		return f.name
	}
	return f.name + "(" + strings.Join(f.arguments, ", ") + ")"
}

// fromLibrary is for a value that a library's function returned.
func (k *walk) fromLibrary(c *chain, x *pathsByLevel, out *returned) (*returned, error) {
	f := &x.call
	out.function, out.site, out.back, out.sp = f.text(), f.site, f.back, f.sp
	out.library, out.opaque = true, opaque[f.name] || len(allocators[f.name]) > 0
	failed, known := k.libraryReturn(c, x, out)
	if !known && k.want != nil {
		out.value, failed = *k.want, unix.Errno(0)
	} else if !known {
		return nil, nil
	}
	if k.want != nil && uint32(out.value) != uint32(*k.want) {
		return nil, nil
	}
	_, returns, _ := strings.Cut(signatures[f.name], ":")
	text := valueText(out.value)
	if strings.Contains(returns, "p") && out.value == 0 {
		text = "NULL"
	}
	out.how = "returned " + text
	none := out.value == 0 && strings.Contains(returns, "p") || int32(out.value) == -1
	switch {
	case !none:
	case meaning[f.name] != "":
		out.how += ": " + meaning[f.name]
	case strings.Contains(returns, "e") && failed != 0:
		out.how += fmt.Sprintf(": %s (%s)", unix.ErrnoName(failed), failed.Error())
	}
	if outside[f.name] || readers[f.name] {
		out.kind = evidence.CauseBadInput
	}
	if converters[f.name] && !k.status {
		out.cell = textOf(f.name, f.first)
	}
	if k.status && (!outside[f.name] || none && misnamed[failed] && c.composed(f)) {
		out.open = evidence.OpenOrigin // it may have been handed what it should not
	}
	return out, nil
}

// libraryReturn stands behind the call, and reads what it returned and errno.
func (k *walk) libraryReturn(c *chain, x *pathsByLevel, out *returned) (failed unix.Errno, known bool) {
	if x.call.back == 0 {
		return 0, false
	}
	a := k.arrivals
	a.pc = x.call.back
	a.is = func(r *image.Registers) bool { return r.SP() == x.call.sp }
	at, err := c.moments.lastNear(a)
	if err != nil || at.Count == 0 {
		return 0, false
	}
	err = c.moments.standAt(at, func(s *replay.Stopped, p *image.Process, t *image.Thread) error {
		out.value, known = t.Registers.Get(image.RAX)
		failed = errnoOf(p, t)
		return nil
	})
	return failed, known && err == nil
}

// errnoOf is a thread's errno; 0 if it is not known.
func errnoOf(p *image.Process, t *image.Thread) unix.Errno {
	at, ok := errnoAddress(p, t)
	if !ok {
		return 0
	}
	var b [errnoSize]byte
	if n, err := p.ReadMemory(at, b[:]); err != nil || n != len(b) {
		return 0
	}
	return unix.Errno(binary.LittleEndian.Uint32(b[:]))
}

// errnoName is what errno is called, a macro in C, and errnoSize the bytes of it.
const (
	errnoName = "errno"
	errnoSize = 4
)

// errnoAddress is where a thread's errno is: a thread-local variable of the C library.
func errnoAddress(p *image.Process, t *image.Thread) (evidence.Addr, bool) {
	for _, m := range p.Modules {
		if m.Object == nil || !strings.Contains(m.Path, "libc.so") && !strings.Contains(m.Path, "libc-") {
			continue
		}
		s, ok := m.Object.SymbolNamed(errnoName)
		if !ok {
			continue
		}
		block, err := p.ThreadLocal(t, m)
		return block + evidence.Addr(s.Value), err == nil
	}
	return 0, false
}
