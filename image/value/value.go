package value

import (
	"errors"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Frame is the frame in which a location expression is evaluated.
type Frame struct {
	Process   *image.Process
	Thread    *image.Thread
	Module    *image.Module
	Registers image.Registers
	CFA       evidence.Addr
	// Lookup says whether the pc is a return address.
	Lookup image.Lookup
	// Caller returns the frame that resolves DW_OP_entry_value; nil, as its result may be, when the caller is not known.
	Caller func() *Frame

	// Memory, if set, is read in place of the process's.
	Memory image.Memory
}

// lookupPC is the link-time address whose function and scope apply.
func (f *Frame) lookupPC() uint64 {
	return f.Module.LinkAddr(f.Lookup.Address(f.Registers.PC()))
}

// readable returns the memory to read from; nil when there is none.
func (f *Frame) readable() image.Memory {
	if f.Memory != nil || f.Process == nil {
		return f.Memory
	}
	return f.Process
}

// CalledBy sets the caller of a frame.
func (f *Frame) CalledBy(caller *Frame) { f.Caller = func() *Frame { return caller } }

// Options bounds the output. A zero field takes its value from Defaults.
type Options struct {
	// Depth is how many levels of members and pointers are followed,
	// Elements how many of an array, StringBytes how much of a string.
	Depth, Elements, StringBytes int
	// Values bounds the values that one variable expands to, and TextBytes the
	// length of the short form of an aggregate.
	Values, TextBytes int
	// Shallow leaves out the targets of pointers, which may need a search of
	// all debug information.
	Shallow bool
}

// Defaults are bounds that keep a variable within about a screen.
var Defaults = Options{Depth: 4, Elements: 16, StringBytes: 200, Values: 300, TextBytes: 160}

func (o Options) withDefaults() Options {
	fill := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	fill(&o.Depth, Defaults.Depth)
	fill(&o.Elements, Defaults.Elements)
	fill(&o.StringBytes, Defaults.StringBytes)
	fill(&o.Values, Defaults.Values)
	fill(&o.TextBytes, Defaults.TextBytes)
	return o
}

// Read evaluates a variable in the frame and formats its value.
//
// The Value's Text is the whole of a scalar or a short form of an aggregate
// ("{id = 7, name = \"x\"}"); Fields are the members and elements, and for a
// pointer to a structure those of the structure it points to, one level.
func Read(f *Frame, v debuginfo.Variable, opts Options) evidence.Variable {
	out := evidence.Variable{Name: v.Name}
	if v.Type == nil {
		out.Value = evidence.NoValue("its type is not known")
		return out
	}
	out.Type = v.Type.Name()
	loc, err := Lives(f, v)
	if err != nil {
		shown, ok := throughImplicit(f, &v, err, opts)
		if !ok {
			shown = missing(err)
		}
		out.Value = shown
		return out
	}
	out.Location = loc.String()
	obj, err := loc.object(f, v.Type.Size())
	if err != nil {
		out.Value = missing(err)
		return out
	}
	w := newFormatter(f.readable(), opts)
	out.Value = w.top(obj, v.Type)
	return out
}

// At formats the object of the given type at an address. When m also names
// addresses, as *image.Process does, pointers show the symbols that they point
// to.
func At(m image.Memory, addr evidence.Addr, t debuginfo.Type, opts Options) evidence.Value {
	if t == nil {
		return evidence.NoValue("its type is not known")
	}
	w := newFormatter(m, opts)
	return w.top(object{source: memorySource{m, addr}}, t)
}

// Scalar formats the bytes of a value of a scalar type (integer, boolean,
// character, enumeration, float, pointer), lowest address first. A pointer is
// not followed, but named when m can name addresses; m may be nil.
func Scalar(m image.Memory, data []byte, t debuginfo.Type) evidence.Value {
	if t == nil {
		return evidence.NoValue("its type is not known")
	}
	w := newFormatter(m, Defaults)
	return w.scalar(data, t)
}

// UnavailableError says why a variable has no value at this point. Details may be empty.
type UnavailableError struct{ Reason, Details string }

func (e *UnavailableError) Error() string {
	if e.Details == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Details
}

func unavailable(why string) error { return &UnavailableError{Reason: why} }

// optimizedOut is the error for a variable that the compiler did not keep.
func optimizedOut(details string) error {
	return &UnavailableError{Reason: "optimized out", Details: details}
}

// missing is the value that err leaves.
func missing(err error) evidence.Value {
	var lost *UnavailableError
	if errors.As(err, &lost) {
		return evidence.NoValueBecause(lost.Reason, lost.Details)
	}
	return evidence.NoValue(err.Error())
}

// reason is err's text within the text of a value.
func reason(err error) string {
	v := missing(err)
	return v.Why()
}
