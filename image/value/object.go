package value

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Object is a typed object of the process, or a part of one: the bytes of a variable wherever the
// compiler keeps them, memory, or computed bytes. Nothing is read before Bytes or Format.
type Object struct {
	Type   debuginfo.Type // nil: it is not known
	object object
	memory image.Memory
	// bits is set for a bit field.
	bits *debuginfo.Member
}

// ObjectOf returns a variable's object in a frame. The error is an *UnavailableError if the
// variable has no value there.
func ObjectOf(f *Frame, v debuginfo.Variable) (Object, error) {
	if v.Type == nil {
		return Object{}, unavailable("its type is not known")
	}
	loc, err := Lives(f, v)
	if err != nil {
		return Object{}, err
	}
	o, err := loc.object(f, v.Type.Size())
	return Object{Type: v.Type, object: o, memory: f.readable()}, err
}

// ObjectAt returns the object of a type at an address. If m also names addresses, as
// *image.Process does, pointers are shown with the symbols that they point to.
func ObjectAt(m image.Memory, addr evidence.Addr, t debuginfo.Type) Object {
	return Object{Type: t, object: object{source: memorySource{m, addr}}, memory: m}
}

// ObjectFrom returns an object that has no address. Pointers in it lead to m.
func ObjectFrom(m image.Memory, data []byte, t debuginfo.Type) Object {
	return Object{Type: t, object: object{source: &bufferSource{data: data}}, memory: m}
}

// Address returns where the object is; false: it is in no memory, or is a bit field.
func (o Object) Address() (evidence.Addr, bool) {
	if o.object.source == nil || o.bits != nil {
		return 0, false
	}
	return o.object.address()
}

// At returns the object of a type at an offset in bytes.
func (o Object) At(offset int64, t debuginfo.Type) Object {
	return Object{Type: t, object: o.object.atOffset(offset), memory: o.memory}
}

// Member returns a member's object.
func (o Object) Member(m debuginfo.Member) Object {
	at := o.At(m.Offset, m.Type)
	if m.BitSize != 0 {
		at.object, at.bits = o.object, &m
	}
	return at
}

// Bits returns the number of bits of a bit field; 0 for other objects.
func (o Object) Bits() int64 {
	if o.bits == nil {
		return 0
	}
	return o.bits.BitSize
}

// Bytes reads the object, lowest address first. A bit field is widened to its type. The errors
// are *UnavailableError or *image.MemoryError, or say why the size is none that is read.
func (o Object) Bytes() ([]byte, error) {
	if o.Type == nil || o.object.source == nil {
		return nil, unavailable("its type is not known")
	}
	if o.bits != nil {
		return bitBytes(o.object, *o.bits)
	}
	size := o.Type.Size()
	if size <= 0 {
		return nil, fmt.Errorf("a %s of unknown size", describe(o.Type))
	}
	return o.object.read(size)
}

// Format formats the object as Read formats a variable.
func (o Object) Format(opts Options) evidence.Value {
	if o.Type == nil || o.object.source == nil {
		return evidence.NoValue("its type is not known")
	}
	w := newFormatter(o.memory, opts)
	if o.bits != nil {
		return w.bitField(o.object, *o.bits)
	}
	return w.top(o.object, o.Type)
}

// Missing is the value that an error of this package leaves.
func Missing(err error) evidence.Value { return missing(err) }

// Signed reports whether an integer, character or enumeration type has negative values.
func Signed(t debuginfo.Type) bool { return isSigned(t) }
