package declare

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/image/debuginfo"
)

// Scope says what names stand for.
type Scope interface {
	// Variable returns the type of a variable, and whether it is one of the function; Constant the value of an enumerator, Function
	// what a function returns and takes.
	Variable(name string) (t debuginfo.Type, local, ok bool)
	Constant(name string) (int64, bool)
	Function(name string) (debuginfo.Prototype, bool)
	// Type returns a type; a tag has its keyword, as in "struct item".
	Type(name string) (debuginfo.Type, bool)
}

// Names are those that code has.
type Names struct {
	// Objects are identifiers that variables, constants and functions are declared for, Types those that types and members are.
	Objects, Types []string
	// Tags are identifiers that follow a keyword, with it: "struct item".
	Tags []string
	// Taken are names that headers declare outside of functions. Only variables and constants of a function's scope replace them.
	// Macros are names of macros, which nothing replaces.
	Taken, Macros map[string]bool
	// Aliases are further names for members and tags, by their own.
	Aliases map[string][]string
}

// Slot is a symbol that stands for a variable or a function of the program: the address that the symbol has is the program's.
type Slot struct {
	Name, Symbol string
	// Text is the declaration, without the symbol.
	Text string
}

// SymbolOf is the symbol that a name has in declarations.
func SymbolOf(name string) string { return own + "s_" + name }

// Bounds of declarations.
const (
	mostTypes = 4096
	mostSlots = 1024
	mostText  = 4 << 20
	mostDepth = 32
	// mostWork bounds the parts of types that are looked at: types that refer to each other make many of few.
	mostWork = 1 << 15
)

// LimitError says that a bound was reached.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return "declare: " + e.What }

// Declarations are those of a scope of C: that of a file, or that of a function.
type Declarations struct {
	Slots []Slot
	// outer is the scope of the file; nil for that itself.
	outer *Declarations
	scope Scope
	names map[string]bool
	// macros are not declared.
	macros  map[string]bool
	aliases map[string][]string
	prefix  string
	// tags are the types that have definitions or declarations here.
	tags map[debuginfo.Type]*record
	// made are the declared names, each with its tag's keyword if it has one.
	made map[string]debuginfo.Type
	// pending are the types that pointers lead to.
	pending  []debuginfo.Type
	paddings int
	work     int
	text     strings.Builder
	err      error
}

// record is a structure or union.
type record struct {
	tag string
	// defining and defined say how far its definition is.
	defining, defined bool
}

// New declares for code what its names stand for in a scope. The prefix distinguishes the symbols of several scopes. outer is the
// scope of the file if this one is a function's: its declarations are not repeated.
func New(scope Scope, names Names, prefix string, outer *Declarations) (*Declarations, error) {
	d := &Declarations{outer: outer, scope: scope, names: map[string]bool{}, macros: names.Macros, aliases: names.Aliases, prefix: prefix,
		tags: map[debuginfo.Type]*record{}, made: map[string]debuginfo.Type{}}
	for _, name := range slices.Concat(names.Objects, names.Types) {
		if isName(name) && !names.Macros[name] {
			d.names[name] = true
		}
	}
	for _, tagged := range names.Tags {
		d.tag(tagged, names.Taken)
	}
	for _, name := range names.Objects {
		if _, done := d.made[name]; d.names[name] && !done && (outer != nil || !names.Taken[name]) {
			d.object(name, names.Taken[name])
		}
	}
	for _, name := range names.Types {
		if _, done := d.made[name]; d.names[name] && !done && !names.Taken[name] {
			d.typeName(name)
		}
	}
	d.finish()
	return d, d.err
}

// Text is the C.
func (d *Declarations) Text() string { return d.text.String() }

func (d *Declarations) fail(what string) {
	if d.err == nil {
		d.err = &LimitError{what}
	}
}

// tired counts a part of a type, and reports whether there were too many.
func (d *Declarations) tired() bool {
	if d.work++; d.work > mostWork {
		d.fail("the types of the program are too large, or refer to each other too often")
	}
	return d.err != nil
}

func (d *Declarations) write(format string, args ...any) {
	if d.text.Len() > mostText {
		d.fail(fmt.Sprintf("the declarations are longer than %d bytes", mostText))
		return
	}
	fmt.Fprintf(&d.text, format, args...)
}

// known returns what an outer scope or this one has declared under a name.
func (d *Declarations) known(name string) (debuginfo.Type, bool) {
	for ; d != nil; d = d.outer {
		if t, known := d.made[name]; known {
			return t, true
		}
	}
	return nil, false
}

// tag declares a type by its keyword and name.
func (d *Declarations) tag(tagged string, taken map[string]bool) {
	keyword, name, _ := strings.Cut(tagged, " ")
	if !isName(name) || d.macros[name] || taken[tagged] {
		return
	}
	t, found := d.scope.Type(tagged)
	if !found {
		return
	}
	t = debuginfo.Complete(t)
	if old, known := d.known(tagged); known && old == t || t == nil {
		return
	}
	d.made[tagged] = t
	switch {
	case keyword == "enum" && t.Kind() == debuginfo.KindEnum:
		d.enumeration(name, t)
	case keyword == "struct" && t.Kind() == debuginfo.KindStruct, keyword == "union" && t.Kind() == debuginfo.KindUnion:
		if d.recordOf(t) == nil { // else it has another name already, as where two units have the same tag
			d.tags[t] = &record{tag: name}
			d.write("%s %s;\n", keyword, name)
		}
		d.define(t, 0)
	}
}

// enumeration declares an enumeration of the size that the program's has. Its enumerators are constants of their own.
func (d *Declarations) enumeration(name string, t debuginfo.Type) {
	form, known := map[int64]string{
		1: "enum %s { %se%d = -1 } __attribute__((packed));\n",
		2: "enum %s { %se%d = -300 } __attribute__((packed));\n",
		4: "enum %s { %se%d = -1 };\n",
		8: "enum %s { %se%d = -1 - (1L << 40) };\n",
	}[t.Size()]
	if !known {
		return
	}
	for i, tag := range append([]string{name}, d.aliases[name]...) {
		d.write(form+"_Static_assert(sizeof(enum %[1]s) == %[4]d, \"\");\n", tag, own, len(d.made)*256+i, t.Size())
	}
}

// object declares an identifier of a variable, a constant or a function.
func (d *Declarations) object(name string, taken bool) {
	if t, local, found := d.scope.Variable(name); found {
		if local || !d.isOuter(name) {
			d.define(t, 0)
			d.slot(name, d.declare(name, t, 0))
		}
		return
	}
	if n, found := d.scope.Constant(name); found {
		d.made[name] = nil
		d.write("enum { %s = %s };\n", name, constant(n))
		return
	}
	if p, found := d.scope.Function(name); found && !taken && !d.isOuter(name) {
		d.definePrototype(p, 0)
		d.slot(name, d.declarePrototype(name, p, 0))
	}
}

func (d *Declarations) typeName(name string) {
	t, found := d.scope.Type(name)
	if !found || isTagged(t) {
		return
	}
	core := debuginfo.Complete(t)
	if old, known := d.known(name); core == nil || known && old == core {
		return
	}
	d.made[name] = core
	d.define(core, 0)
	d.write("typedef %s;\n", d.declare(name, core, 0))
}

// isTagged reports a type of C that is named by its keyword and tag alone.
func isTagged(t debuginfo.Type) bool {
	for _, keyword := range []string{"struct ", "union ", "enum "} {
		if strings.HasPrefix(t.Name(), keyword) {
			return true
		}
	}
	return false
}

func constant(n int64) string {
	if n == -1<<63 {
		return "-9223372036854775807L - 1"
	}
	if n == int64(int32(n)) {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dL", n)
}

// isOuter reports whether the file's scope has a symbol for a variable or function, which is the same one here.
func (d *Declarations) isOuter(name string) bool {
	return d.outer != nil && slices.ContainsFunc(d.outer.Slots, func(s Slot) bool { return s.Name == name })
}

// slot declares a name with a symbol.
func (d *Declarations) slot(name, declaration string) {
	d.made[name] = nil
	if len(d.Slots) == mostSlots {
		d.fail(fmt.Sprintf("the code names more than %d variables and functions of the program", mostSlots))
		return
	}
	s := Slot{Name: name, Symbol: SymbolOf(name), Text: declaration}
	d.Slots = append(d.Slots, s)
	d.write("extern %s __asm__(\"%s\");\n", declaration, s.Symbol)
}

// HasRecords reports whether structures or unions are declared in this scope: declarations with the same text may then be of other
// types than elsewhere.
func (d *Declarations) HasRecords() bool { return len(d.tags) > 0 }
