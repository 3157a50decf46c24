package watchtrace

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// Resolve finds what a watch expression names in a process, which may be a
// recording's core: a global (`stats`), a member or an element of one
// (`cfg.workers[3].state`), memory through its pointers (`head->next->value`,
// `*p`), a heap object by its allocation site and its number there
// (`malloc@pool.c:31#3`, with `+8` its memory from that offset, with `:4` that
// many bytes), or ADDRESS:LENGTH. Pointers have the values, and heap objects
// the order of addresses, that they have in the process. The error is a
// *NameError.
func Resolve(p *image.Process, expr string) ([]Target, error) {
	expr = strings.TrimSpace(expr)
	if m := addressForm.FindStringSubmatch(expr); m != nil {
		return resolveAddress(expr, m)
	}
	if m := heapForm.FindStringSubmatch(expr); m != nil {
		return resolveHeap(p, expr, m)
	}
	r := &resolver{process: p, text: expr, rest: expr}
	if err := r.notOne(); err != nil {
		return nil, err
	}
	x, err := r.unary()
	if err == nil {
		r.space()
		if r.rest != "" {
			err = r.problem(fmt.Sprintf("%q is not understood", r.rest))
		}
	}
	if err != nil {
		return nil, err
	}
	if x.size <= 0 {
		return nil, r.problem(fmt.Sprintf("%s has no known size; give ADDRESS:LENGTH, it is at %v", x.text, x.addr))
	}
	t := Target{Name: x.text, Addr: x.addr, Size: int(x.size), Group: x.root}
	if x.typ != nil {
		t.Type = x.typ.Name()
	}
	return []Target{t}, nil
}

// NamesMemory reports whether an expression is one of Resolve for memory without a name: a heap object by its allocation site, or
// ADDRESS:LENGTH.
func NamesMemory(expr string) bool {
	expr = strings.TrimSpace(expr)
	return addressForm.MatchString(expr) || heapForm.MatchString(expr)
}

var (
	addressForm = regexp.MustCompile(`^(0x[0-9a-fA-F]+|[0-9]+):(0x[0-9a-fA-F]+|[0-9]+)$`)
	addressOnly = regexp.MustCompile(`^(0x[0-9a-fA-F]+|[0-9]+)$`)
	nameForm    = regexp.MustCompile(`^[A-Za-z_$][\w$.]*(::~?[A-Za-z_$][\w$]*)*`)
)

func resolveAddress(expr string, m []string) ([]Target, error) {
	addr, err := strconv.ParseUint(m[1], 0, 47)
	length, errLength := strconv.ParseUint(m[2], 0, 32)
	if errors.Join(err, errLength) != nil || length == 0 {
		return nil, &NameError{Expr: expr, Problem: "is no address and length of memory"}
	}
	return []Target{{Name: fmt.Sprintf("%#x:%d", addr, length), Addr: evidence.Addr(addr), Size: int(length)}}, nil
}

// notOne says what an incomplete expression lacks.
func (r *resolver) notOne() error {
	switch {
	case r.text == "":
		return r.problem("an expression is missing: a variable, or an address and a length as in 0x5555555580a0:8")
	case addressOnly.MatchString(r.text):
		return r.problem(fmt.Sprintf("an address takes a length, as in %s:8", r.text))
	}
	return nil
}

// place is the object that a part of an expression names.
type place struct {
	text, root string
	addr       evidence.Addr
	size       int64
	typ        debuginfo.Type // nil without debug information
}

// resolver parses an expression: a few of C's operators, with C's precedence.
type resolver struct {
	process *image.Process
	text    string
	rest    string
}

func (r *resolver) problem(text string, nearest ...string) error {
	return &NameError{Expr: r.text, Problem: text, Nearest: nearest}
}

func (r *resolver) space() { r.rest = strings.TrimLeft(r.rest, " \t") }

func (r *resolver) take(token string) bool {
	r.space()
	rest, found := strings.CutPrefix(r.rest, token)
	if found {
		r.rest = rest
	}
	return found
}

func (r *resolver) unary() (place, error) {
	if !r.take("*") {
		return r.postfix()
	}
	x, err := r.unary()
	if err != nil {
		return x, err
	}
	return r.pointee(x, 0, "*"+x.text)
}

func (r *resolver) postfix() (place, error) {
	x, err := r.primary()
	for err == nil {
		switch {
		case r.take("->"):
			text := x.text
			if x, err = r.pointee(x, 0, "*"+x.text); err == nil {
				x, err = r.member(x, text+"->")
			}
		case r.take("."):
			x, err = r.member(x, x.text+".")
		case r.take("["):
			x, err = r.element(x)
		default:
			return x, nil
		}
	}
	return x, err
}

func (r *resolver) primary() (place, error) {
	if r.take("(") {
		x, err := r.unary()
		if err == nil && !r.take(")") {
			err = r.problem("a parenthesis is not closed")
		}
		x.text = "(" + x.text + ")"
		return x, err
	}
	r.space()
	name := nameForm.FindString(r.rest)
	if name == "" {
		return place{}, r.problem(fmt.Sprintf("a name is missing before %q", r.rest))
	}
	// Linker names may contain dots (a static local's number); other names end
	// at the first dot.
	for {
		if x, found := r.global(name); found {
			r.rest = r.rest[len(name):]
			return x, nil
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			break
		}
		name = name[:dot]
	}
	if s, found := r.process.SymbolNamed(name); found && r.isCode(s.Addr) {
		return place{}, r.problem(name + " is a function; only data can be watched: a variable, a heap object by where it was allocated, or ADDRESS:LENGTH")
	}
	return place{}, r.problem("there is no global "+name, Nearest(name, Globals(r.process))...)
}

// global finds a variable with static storage.
func (r *resolver) global(name string) (place, bool) {
	for _, m := range r.process.Modules {
		info, err := m.Debug()
		if err != nil || info == nil || image.RuntimeModule(m.Path) {
			continue
		}
		v, found, err := info.GlobalNamed(name, 0)
		if err != nil || !found {
			continue
		}
		where, err := value.Lives(&value.Frame{Process: r.process, Module: m}, v)
		if err != nil || !where.InMemory {
			continue
		}
		x := place{text: name, root: name, addr: where.Addr, typ: v.Type}
		if v.Type != nil {
			x.size = v.Type.Size()
		}
		if s, found := r.process.SymbolAt(x.addr); found && x.size <= 0 {
			x.size = int64(s.Size)
		}
		return x, true
	}
	if s, found := r.process.SymbolNamed(name); found && s.Module != nil && !r.isCode(s.Addr) {
		return place{text: name, root: name, addr: s.Addr, size: int64(s.Size)}, true
	}
	return place{}, false
}

func (r *resolver) isCode(addr evidence.Addr) bool {
	m := r.process.MappingAt(addr)
	return m != nil && m.Executable()
}

// pointee returns the object at an index of a pointer or an array.
func (r *resolver) pointee(x place, index int64, text string) (place, error) {
	if x.typ == nil {
		return x, r.problem("without debug information nothing is known of what " + x.text + " is")
	}
	elem := x.typ.Elem()
	if elem == nil || elem.Size() <= 0 || x.typ.Kind() != debuginfo.KindPointer && x.typ.Kind() != debuginfo.KindArray {
		return x, r.problem(fmt.Sprintf("%s, of type %s, points to nothing that is known", x.text, x.typ.Name()))
	}
	addr := x.addr
	if x.typ.Kind() == debuginfo.KindPointer {
		target, err := image.Uint64(r.process, x.addr)
		if err != nil {
			return x, r.problem(fmt.Sprintf("the pointer %s cannot be read: %v", x.text, err))
		}
		addr = evidence.Addr(target)
	}
	addr += evidence.Addr(index * elem.Size())
	if r.process.MappingAt(addr) == nil {
		return x, r.problem(fmt.Sprintf("%s leads to %v at the end, where no memory is", x.text, addr))
	}
	return place{text: text, root: x.root, addr: addr, size: elem.Size(), typ: elem}, nil
}

func (r *resolver) element(x place) (place, error) {
	r.space()
	end := strings.IndexByte(r.rest, ']')
	if end < 0 {
		return x, r.problem("an index is not closed")
	}
	index, err := strconv.ParseInt(strings.TrimSpace(r.rest[:end]), 0, 32)
	if err != nil {
		return x, r.problem(fmt.Sprintf("the index %q is no number", r.rest[:end]))
	}
	r.rest = r.rest[end+1:]
	if x.typ != nil && x.typ.Kind() == debuginfo.KindArray && (index < 0 || x.typ.Count() >= 0 && index >= x.typ.Count()) {
		return x, r.problem(fmt.Sprintf("%s has the elements 0 to %d", x.text, x.typ.Count()-1))
	}
	return r.pointee(x, index, fmt.Sprintf("%s[%d]", x.text, index))
}

// member returns a member of a struct or union, or of an anonymous one within
// it.
func (r *resolver) member(x place, prefix string) (place, error) {
	r.space()
	name := memberForm.FindString(r.rest)
	if name == "" {
		return x, r.problem(fmt.Sprintf("a member's name is missing before %q", r.rest))
	}
	r.rest = r.rest[len(name):]
	if x.typ == nil {
		return x, r.problem("without debug information nothing is known of what " + x.text + " is")
	}
	m, names, found := value.FindMember(x.typ, name)
	if !found {
		return x, r.problem(fmt.Sprintf("%s, of type %s, has no member %s", x.text, x.typ.Name(), name), Nearest(name, names)...)
	}
	at := place{text: prefix + name, root: x.root, addr: x.addr + evidence.Addr(m.Offset), size: m.Type.Size(), typ: m.Type}
	if m.BitSize != 0 {
		at.addr += evidence.Addr(m.BitOffset / 8)
		at.size = (m.BitOffset%8 + m.BitSize + 7) / 8
		at.typ = nil
	}
	return at, nil
}

var memberForm = regexp.MustCompile(`^[A-Za-z_$][\w$]*`)
