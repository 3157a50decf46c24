package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// Place knows what names stand for at an instruction of a program. It looks each up once, and may
// be used for any number of stops there. It is not safe for concurrent use.
type Place struct {
	process *image.Process
	module  *image.Module
	info    *debuginfo.Info
	pc      uint64 // link-time
	// prefixes are the namespaces and classes of the function, the innermost first.
	prefixes []string
	calls    []debuginfo.Call
	level    int
	locals   map[string]debuginfo.Variable
	// unplaced are parameters of which it is not known where they are.
	unplaced map[string]bool
	// parameters are those of the function, in their order.
	parameters []string
	others     map[string]*meaning
	types      map[string]debuginfo.Type
}

// meaning is what a name that is no local variable stands for.
type meaning struct {
	// variable has static storage in module; or else constant is the value of an enumerator, or
	// code the address of a function.
	variable debuginfo.Variable
	module   *image.Module
	constant []byte
	typ      debuginfo.Type
	code     evidence.Addr
}

// NewPlace returns the place of an instruction of the process. level is an index into the inline
// chain there, 0 being the innermost function. It is an error if the code has no debug information.
func NewPlace(p *image.Process, pc evidence.Addr, level int) (*Place, error) {
	return NewPlaceIn(p, pc, pc, level)
}

// NewPlaceIn is NewPlace for an instruction at which an inlined function is entered, although the
// inline chain there may lack it: the chain is that of the address inside.
func NewPlaceIn(p *image.Process, pc, inside evidence.Addr, level int) (*Place, error) {
	m := p.ModuleAt(pc)
	if m == nil {
		return nil, fmt.Errorf("expression: the code at %v is in no object", pc)
	}
	info, err := m.Debug()
	if err != nil {
		return nil, fmt.Errorf("expression: %s: %w", m.Path, err)
	}
	if info == nil {
		return nil, fmt.Errorf("expression: %s has no debug information", m.Path)
	}
	x := &Place{process: p, module: m, info: info, pc: m.LinkAddr(pc), locals: map[string]debuginfo.Variable{},
		others: map[string]*meaning{}, types: map[string]debuginfo.Type{}}
	calls, err := info.CallsAt(m.LinkAddr(inside))
	if err != nil {
		return nil, fmt.Errorf("expression: %s: %w", m.Path, err)
	}
	if level >= len(calls) {
		return x, nil
	}
	x.calls, x.level = calls, level
	x.prefixes = prefixesOf(calls[level].Function.Name)
	list, err := info.VariablesAt(calls[level], x.pc)
	if err != nil {
		return nil, fmt.Errorf("expression: %s: %w", m.Path, err)
	}
	for _, v := range list {
		if v.Parameter {
			x.parameters = append(x.parameters, v.Name)
		}
		if old, known := x.locals[v.Name]; !known || v.Depth >= old.Depth {
			x.locals[v.Name] = v
		}
	}
	return x, nil
}

// AtEntry makes it the place right at the entry of its function, which is no inlined one: there are
// the parameters, and no local variables yet.
func (p *Place) AtEntry() error {
	p.locals, p.unplaced, p.parameters = map[string]debuginfo.Variable{}, map[string]bool{}, nil
	if p.level >= len(p.calls) {
		return nil
	}
	list, unplaced, err := p.info.ParametersAtEntry(p.calls[p.level], p.pc)
	if err != nil {
		return fmt.Errorf("expression: %s: %w", p.module.Path, err)
	}
	for _, v := range list {
		p.locals[v.Name] = v
		p.parameters = append(p.parameters, v.Name)
	}
	for _, name := range unplaced {
		p.unplaced[name] = true
		p.parameters = append(p.parameters, name)
	}
	return nil
}

// Names returns the names of the variables that are visible in the function, in any order.
func (p *Place) Names() []string { return slices.Collect(maps.Keys(p.locals)) }

// Local returns the variable of the function that a name stands for.
func (p *Place) Local(name string) (v debuginfo.Variable, ok bool) {
	v, ok = p.locals[name]
	return v, ok
}

// Parameters returns the names of the function's parameters in their order.
func (p *Place) Parameters() []string { return p.parameters }

// Outside makes it a place in no function: there are no local variables.
func (p *Place) Outside() { p.locals, p.parameters = map[string]debuginfo.Variable{}, nil }

// Result returns the type of what the function returns; nil is void, or not known.
func (p *Place) Result() (debuginfo.Type, error) {
	if p.level >= len(p.calls) {
		return nil, nil
	}
	t, _, err := p.calls[p.level].Function.Signature()
	return t, err
}

// prefixesOf returns the scopes that a qualified name is in, the innermost first.
func prefixesOf(function string) []string {
	var list []string
	if i := strings.IndexAny(function, "<("); i >= 0 {
		function = function[:i] // the rest may have names of its own
	}
	for {
		i := strings.LastIndex(function, "::")
		if i < 0 {
			return list
		}
		function = function[:i]
		list = append(list, function+"::")
	}
}

// IsType is Parse's isType.
func (p *Place) IsType(name string) bool {
	if _, local := p.locals[name]; local || p.unplaced[name] {
		return false
	}
	if _, known := p.Type(name); !known {
		return false
	}
	x, err := p.find(name)
	return err == nil && x == nil
}

// Type implements a part of Scope.
func (p *Place) Type(name string) (debuginfo.Type, bool) {
	if t, known := p.types[name]; known {
		return t, t != nil
	}
	p.types[name] = nil
	for _, prefix := range append(p.prefixes, "") {
		full := prefix + name
		if keyword, rest, tagged := strings.Cut(name, " "); tagged && tagWords[keyword] {
			full = keyword + " " + prefix + rest
		}
		if t, found, err := p.info.TypeNamed(full, p.pc); err == nil && found {
			p.types[name] = t
			return t, true
		}
	}
	if t, known := standardTypes[name]; known {
		p.types[name] = t
		return t, true
	}
	return nil, false
}

// find returns what a name that is no local variable stands for; nil if it is unknown.
func (p *Place) find(name string) (*meaning, error) {
	if x, known := p.others[name]; known {
		return x, nil
	}
	x, err := p.search(name)
	if err != nil {
		return nil, err
	}
	p.others[name] = x
	return x, nil
}

func (p *Place) search(name string) (*meaning, error) {
	for _, prefix := range append(p.prefixes, "") {
		v, found, err := p.info.UnitVariable(prefix+name, p.pc)
		if err != nil {
			return nil, err
		}
		if found {
			return &meaning{variable: v, module: p.module}, nil
		}
		t, n, found, err := p.info.Enumerator(prefix+name, p.pc)
		if err != nil {
			return nil, err
		}
		if found {
			return enumerator(t, n), nil
		}
		if x := p.elsewhere(prefix + name); x != nil {
			return x, nil
		}
	}
	if s, found := p.process.SymbolNamed(name); found && p.isCode(s.Addr) {
		return &meaning{code: s.Addr}, nil
	}
	return nil, nil
}

func enumerator(t debuginfo.Type, n int64) *meaning {
	x := &meaning{typ: t, constant: make([]byte, 8)}
	for i := range x.constant {
		x.constant[i] = byte(n >> (8 * i))
	}
	if size := t.Size(); size > 0 && size < 8 {
		x.constant = x.constant[:size]
	}
	return x
}

// elsewhere searches other units and objects for a variable with static storage, this object first.
func (p *Place) elsewhere(name string) *meaning {
	modules := []*image.Module{p.module}
	for _, m := range p.process.Modules {
		if m != p.module && !image.RuntimeModule(m.Path) {
			modules = append(modules, m)
		}
	}
	for _, m := range modules {
		info, err := m.Debug()
		if err != nil || info == nil {
			continue
		}
		v, found, err := info.GlobalNamed(name, 0)
		if err == nil && found && !v.OfFunction { // several functions may have one of the name
			return &meaning{variable: v, module: m}
		}
	}
	return nil
}

func (p *Place) isCode(addr evidence.Addr) bool {
	m := p.process.MappingAt(addr)
	return m != nil && m.Executable()
}

// In returns the scope of a stop at the place. The frame is that of the function at the place.
func (p *Place) In(f *value.Frame) Scope { return &stopped{p, f} }

// Dry returns a scope for Expr.Check, in which nothing is read.
func (p *Place) Dry() Scope { return dryScope{p} }

// stopped is the place with a frame.
type stopped struct {
	*Place
	frame *value.Frame
}

// Memory implements Scope.
func (s *stopped) Memory() image.Memory {
	if s.frame.Memory != nil {
		return s.frame.Memory
	}
	return s.frame.Process
}

// Variable implements Scope.
func (s *stopped) Variable(name string) (value.Object, bool, error) {
	if s.unplaced[name] {
		return value.Object{}, true, &value.UnavailableError{Reason: "not computed", Details: "how the call hands it over"}
	}
	if v, local := s.locals[name]; local {
		o, err := value.ObjectOf(s.frame, v)
		return o, true, err
	}
	x, err := s.find(name)
	if err != nil || x == nil {
		return value.Object{}, false, err
	}
	switch {
	case x.constant != nil:
		return value.ObjectFrom(s.Memory(), x.constant, x.typ), true, nil
	case x.module == nil:
		return value.ObjectAt(s.Memory(), x.code, functionType), true, nil
	}
	f := *s.frame
	f.Module = x.module
	o, err := value.ObjectOf(&f, x.variable)
	return o, true, err
}

// dryScope is the place without a process.
type dryScope struct{ *Place }

func (s dryScope) Memory() image.Memory { return nothing{} }

// nothing is memory in which nothing is mapped.
type nothing struct{}

func (nothing) ReadMemory(evidence.Addr, []byte) (int, error) {
	return 0, errors.New("no process is read")
}

func (s dryScope) Variable(name string) (value.Object, bool, error) {
	if s.unplaced[name] {
		return value.Object{}, true, &value.UnavailableError{Reason: "not computed"}
	}
	if v, local := s.locals[name]; local {
		return value.ObjectAt(nothing{}, 0, v.Type), true, nil
	}
	x, err := s.find(name)
	switch {
	case err != nil || x == nil:
		return value.Object{}, false, err
	case x.constant != nil:
		return value.ObjectFrom(nothing{}, x.constant, x.typ), true, nil
	case x.module == nil:
		return value.ObjectAt(nothing{}, x.code, functionType), true, nil
	}
	return value.ObjectAt(nothing{}, 0, x.variable.Type), true, nil
}
