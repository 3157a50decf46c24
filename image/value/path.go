package value

import (
	"fmt"

	"diagnose/image/debuginfo"
)

// maxPath bounds how deep types may nest.
const maxPath = 32

// Path names the part of an object of type t that an access of size bytes (0
// counts as 1) at a byte offset touches, as a suffix of the object's name:
// ".workers[3].state". Of a union the first member that holds the access is
// named; base classes add no name. An access that covers several members or
// elements is named by the first of them. leaf is the type of the part. ok is
// false when the access starts in padding or outside the object.
func Path(t debuginfo.Type, offset int64, size int) (path string, leaf debuginfo.Type, ok bool) {
	length := int64(max(size, 1))
	for range maxPath {
		if t == nil || offset < 0 {
			return path, t, false
		}
		switch t.Kind() {
		case debuginfo.KindStruct, debuginfo.KindUnion:
			m, found := memberAt(t, offset, length)
			if !found {
				whole := offset == 0 && (t.Size() <= 0 || length <= t.Size())
				return path, t, whole
			}
			if !m.Base && m.Name != "" {
				path += "." + m.Name
			}
			if m.BitSize != 0 {
				return path, m.Type, true
			}
			t, offset = m.Type, offset-m.Offset
		case debuginfo.KindArray:
			elem := t.Elem()
			if elem == nil || elem.Size() <= 0 || t.Count() >= 0 && offset >= t.Count()*elem.Size() {
				return path, t, false
			}
			path += fmt.Sprintf("[%d]", offset/elem.Size())
			t, offset = elem, offset%elem.Size()
		default:
			return path, t, offset < max(t.Size(), 1)
		}
	}
	return path, t, false
}

// memberAt returns the member that holds length bytes at offset, or else, if
// that is not the start of the structure, the one that starts there.
func memberAt(t debuginfo.Type, offset, length int64) (debuginfo.Member, bool) {
	var starts *debuginfo.Member
	for _, m := range t.Members() {
		if m.Type == nil || m.Offset > offset {
			continue
		}
		if m.BitSize != 0 {
			if first := m.Offset*8 + m.BitOffset; offset*8 < first+m.BitSize && first < (offset+length)*8 {
				return m, true
			}
			continue
		}
		if offset+length <= m.Offset+debuginfo.SizeIn(t, m) {
			return m, true
		}
		if m.Offset == offset && offset != 0 && m.Type.Size() > 0 && starts == nil {
			starts = &m
		}
	}
	if starts != nil {
		return *starts, true
	}
	return debuginfo.Member{}, false
}
