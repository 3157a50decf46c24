package value

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

const (
	// maxMembers bounds the members shown of one structure.
	maxMembers = 64
	// minRepeat is how many equal elements in a row are folded into one.
	minRepeat = 4
	// maxElement bounds the size of an element, which keeps offsets small.
	maxElement = 1 << 40
	// maxArrayBytes bounds the bytes that are searched for equal elements.
	maxArrayBytes = 1 << 16
)

// array formats count elements of type elem at o.
func (w *formatter) array(o object, elem debuginfo.Type, count int64, depth int) evidence.Value {
	if elem == nil || elem.Size() <= 0 || count < 0 {
		return evidence.NoValue("an array of unknown length")
	}
	if elem.Size() > maxElement {
		return evidence.NoValue(fmt.Sprintf("an array of elements of %d bytes", elem.Size()))
	}
	if elem.Kind() == debuginfo.KindChar && elem.Size() == 1 {
		if text, ok := w.charArray(o, elem, count); ok {
			return text
		}
	}
	if count == 0 {
		return evidence.Value{Text: "{}"}
	}
	if depth >= w.opts.Depth {
		if _, err := o.read(min(elem.Size(), maxObject)); err != nil {
			return missing(err)
		}
		return evidence.Value{Text: "{...}", Elided: int(count)}
	}
	return w.elements(o, elem, count, depth)
}

// elements formats an array's first elements, equal ones in a row as one.
func (w *formatter) elements(o object, elem debuginfo.Type, count int64, depth int) evidence.Value {
	size := elem.Size()
	data, err := o.read(size * min(count, max(1, maxArrayBytes/size)))
	if err != nil {
		data = nil // then each element gives its own reason
	}
	var v evidence.Value
	var parts []string
	i := int64(0)
	for i < count && len(parts) < w.opts.Elements && w.left > 0 {
		item := w.value(o.atOffset(i*size), elem, depth+1)
		run := repeats(data, size, i)
		name, part := fmt.Sprintf("[%d]", i), short(item)
		if run < minRepeat {
			run = 1
		} else {
			name = fmt.Sprintf("[%d..%d]", i, i+run-1)
			part += fmt.Sprintf(" <repeats %d times>", run)
		}
		v.Fields = append(v.Fields, evidence.Variable{Name: name, Type: elem.Name(), Value: item})
		parts = append(parts, part)
		i += run
	}
	if allLost(v.Fields) {
		return withoutParts(v.Fields[0].Value)
	}
	v.Elided = int(count - i)
	v.Text = w.summary(parts, v.Elided > 0)
	return v
}

// allLost reports whether an aggregate has parts, and none is available.
func allLost(fields []evidence.Variable) bool {
	for i := range fields {
		if fields[i].Value.Unavailable == "" {
			return false
		}
	}
	return len(fields) > 0
}

// withoutParts is an aggregate that is not known for the reason of its first part.
func withoutParts(first evidence.Value) evidence.Value {
	return evidence.Value{Unavailable: first.Unavailable, Details: first.Details}
}

// repeats counts the elements from the i-th on that equal it.
func repeats(data []byte, size, i int64) int64 {
	if (i+1)*size > int64(len(data)) { // i is less than maxArrayBytes
		return 1
	}
	first := data[i*size : (i+1)*size]
	n := int64(1)
	for (i+n+1)*size <= int64(len(data)) && bytes.Equal(first, data[(i+n)*size:(i+n+1)*size]) {
		n++
	}
	return n
}

// charArray formats an array of characters as a string up to its NUL. ok is
// false for bytes that are not text: unsigned ones that are nonzero after the
// NUL or unprintable before it.
func (w *formatter) charArray(o object, elem debuginfo.Type, count int64) (v evidence.Value, ok bool) {
	if count == 0 {
		return evidence.Value{Text: `""`}, true
	}
	shown := min(count, int64(w.opts.StringBytes))
	data, err := o.read(shown)
	if err != nil {
		return missing(err), true
	}
	text, rest, terminated := bytes.Cut(data, []byte{0})
	dirty := len(bytes.Trim(rest, "\x00")) > 0
	if !isSigned(elem) && (dirty || bytes.ContainsFunc(text, notText)) {
		return v, false
	}
	v.Text = quote(text)
	switch {
	case terminated && dirty:
		v.Text += " (and more after the NUL)"
	case !terminated && shown < count:
		v.Text += fmt.Sprintf("... (%d bytes)", count)
	case !terminated:
		v.Text += " (no NUL)"
	}
	return v, true
}

// notText reports characters that do not occur in text of any encoding that
// extends ASCII.
func notText(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r == 0x7f || r == 0xfffd
}

// structure formats a structure, union or class.
func (w *formatter) structure(o object, t debuginfo.Type, depth int) evidence.Value {
	members := t.Members()
	if v, ok := w.library(o, t, members, depth); ok {
		return v
	}
	if v, ok := w.variant(o, t, depth); ok {
		return v
	}
	if depth >= w.opts.Depth && len(members) > 0 {
		if _, err := o.read(min(max(t.Size(), 1), maxObject)); err != nil {
			return missing(err)
		}
		return evidence.Value{Text: "{...}", Elided: len(members)}
	}
	return w.members(o, members, depth)
}

func (w *formatter) members(o object, members []debuginfo.Member, depth int) evidence.Value {
	var v evidence.Value
	var parts []string
	tuple := len(members) > 0 && members[0].Name == "__0" // Rust's
	for i, m := range members {
		if i >= maxMembers || w.left <= 0 {
			v.Elided = len(members) - i
			break
		}
		field := w.member(o, m, depth)
		v.Fields = append(v.Fields, field)
		part := short(field.Value)
		if field.Name != "" && !tuple {
			part = field.Name + " = " + part
		}
		parts = append(parts, part)
	}
	if allLost(v.Fields) {
		return withoutParts(v.Fields[0].Value)
	}
	v.Text = w.summary(parts, v.Elided > 0)
	if tuple {
		v.Text = "(" + v.Text[1:len(v.Text)-1] + ")"
	}
	return v
}

func (w *formatter) member(o object, m debuginfo.Member, depth int) evidence.Variable {
	field := evidence.Variable{Name: m.Name}
	if m.Type == nil {
		field.Value = evidence.NoValue("its type is not known")
		return field
	}
	field.Type = m.Type.Name()
	switch {
	case m.Base:
		field.Name = "<" + m.Type.Name() + ">"
		fallthrough
	case m.BitSize == 0:
		field.Value = w.value(o.atOffset(m.Offset), m.Type, depth+1)
	default:
		field.Value = w.bitField(o, m)
	}
	return field
}

// bitField formats a bit field: its bits, widened to its type.
func (w *formatter) bitField(o object, m debuginfo.Member) evidence.Value {
	data, err := bitBytes(o, m)
	if err != nil {
		return missing(err)
	}
	return w.scalar(data, m.Type)
}

// bitBytes returns the bits of a bit field, widened to its type.
func bitBytes(o object, m debuginfo.Member) ([]byte, error) {
	bits, shift, size := m.BitSize, m.BitOffset, m.Type.Size()
	if bits < 0 || bits > 64 || shift < 0 || shift > 1<<20 || size <= 0 || size > 8 || bits > size*8 {
		return nil, unavailable(fmt.Sprintf("a bit field of %d bits at bit %d", bits, shift))
	}
	first := shift / 8
	shift %= 8
	data, err := o.atOffset(m.Offset + first).read((shift + bits + 7) / 8)
	if err != nil {
		return nil, err
	}
	v := unsignedOf(data) >> shift
	if len(data) > 8 {
		v |= uint64(data[8]) << (64 - shift)
	}
	if bits < 64 {
		v &= 1<<bits - 1
		if isSigned(m.Type) && v>>(bits-1) != 0 {
			v |= ^uint64(0) << bits
		}
	}
	return binary.LittleEndian.AppendUint64(nil, v)[:size], nil
}

// pointer formats a pointer or reference.
func (w *formatter) pointer(o object, t debuginfo.Type, depth int) evidence.Value {
	size := t.Size()
	if size != 8 {
		return evidence.NoValue(fmt.Sprintf("a pointer of %d bytes", size))
	}
	data, err := o.read(size)
	if err != nil {
		return missing(err)
	}
	v := w.scalar(data, t)
	elem := t.Elem()
	if elem == nil || v.Address == nil {
		return v
	}
	if t.Reference() {
		return w.reference(v, elem, depth)
	}
	if elem.Kind() == debuginfo.KindChar && elem.Size() == 1 && *v.Address != 0 {
		return w.charPointer(v, isSigned(elem))
	}
	return v
}

// charPointer adds the string that a character pointer points to. Pointers to
// unsigned characters often point to bytes that are not characters.
func (w *formatter) charPointer(v evidence.Value, text bool) evidence.Value {
	s, err := w.cString(*v.Address)
	switch {
	case err != nil:
		v.Text += " (" + reason(err) + ")"
	case text || !bytes.ContainsRune([]byte(s), '\\'):
		v.Text = v.Address.String() + " " + s
	}
	return v
}

// reference shows the object referred to, because in the source the reference's
// name denotes it.
func (w *formatter) reference(v evidence.Value, elem debuginfo.Type, depth int) evidence.Value {
	if depth > w.opts.Depth {
		return v
	}
	target := w.value(object{source: memorySource{w.memory, *v.Address}}, elem, depth+1)
	if target.Unavailable != "" {
		v.Text = "@" + v.Address.String() + " (" + target.Why() + ")"
		return v
	}
	v.Text = "@" + v.Address.String() + ": " + target.Text
	v.Fields, v.Elided = target.Fields, target.Elided
	return v
}
