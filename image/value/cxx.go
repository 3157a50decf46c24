package value

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// cxxFormat chooses the format for a libstdc++ type; nil for all others. The
// layouts are those of bits/basic_string.h, bits/stl_vector.h,
// bits/unique_ptr.h, bits/shared_ptr_base.h, optional, bits/stl_tree.h,
// bits/hashtable.h and bits/stl_list.h of gcc 5 to 14.
func cxxFormat(members []debuginfo.Member) libraryFormat {
	switch {
	case hasMember(members, "_M_dataplus", "") && hasMember(members, "_M_string_length", ""):
		return (*formatter).cxxString
	case hasMember(members, "_M_len", "") && hasMember(members, "_M_str", ""):
		return (*formatter).cxxStringView
	case hasBase(members, "_Vector_base<"):
		return (*formatter).cxxVector
	case hasMember(members, "_M_t", "__uniq_ptr_"):
		return (*formatter).cxxUniquePtr
	case hasBase(members, "__shared_ptr<"), hasBase(members, "__weak_ptr<"):
		return (*formatter).cxxSharedPtr
	case hasBase(members, "_Optional_base<"):
		return (*formatter).cxxOptional
	case hasMember(members, "_M_t", ""):
		return sizeFormat("_M_node_count")
	case hasMember(members, "_M_h", ""):
		return sizeFormat("_M_element_count")
	}
	return nil
}

func narrowPointer(t debuginfo.Type) bool {
	return isPointer(t) && t.Elem() != nil && t.Elem().Kind() == debuginfo.KindChar && t.Elem().Size() == 1
}

func (w *formatter) cxxString(o object, t debuginfo.Type, _ int) (evidence.Value, bool) {
	values, parts, ok, err := w.words(o, t, "_M_p", "_M_string_length")
	if err != nil {
		return failed(err)
	}
	if !ok || !narrowPointer(parts[0].typ) {
		return evidence.Value{}, false
	}
	pointer, length := evidence.Addr(values[0]), values[1]
	// Short strings are stored in the object. For longer ones the capacity
	// shares the memory of the local buffer.
	capacity := uint64(15)
	local, found := find(t, "_M_local_buf", nil)
	at, placed := o.atOffset(local.offset).address()
	if found && (!placed || at != pointer) {
		p, known := find(t, "_M_allocated_capacity", isWord)
		if known {
			if capacity, err = o.word(p); err != nil {
				return failed(err)
			}
		}
	}
	if length > capacity || length > maxLibraryString {
		return invalid("std::string", "length %d, capacity %d, data at %v", length, capacity, pointer)
	}
	return w.counted(pointer, length), true
}

func (w *formatter) cxxStringView(o object, t debuginfo.Type, _ int) (evidence.Value, bool) {
	values, parts, ok, err := w.words(o, t, "_M_str", "_M_len")
	if err != nil {
		return failed(err)
	}
	if !ok || !narrowPointer(parts[0].typ) {
		return evidence.Value{}, false
	}
	if values[1] > maxLibraryString {
		return invalid("std::string_view", "length %d, data at %#x", values[1], values[0])
	}
	return w.counted(evidence.Addr(values[0]), values[1]), true
}

func (w *formatter) cxxVector(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	values, parts, ok, err := w.words(o, t, "_M_start", "_M_finish", "_M_end_of_storage")
	if err != nil {
		return failed(err)
	}
	if !ok || !isPointer(parts[0].typ) || parts[0].typ.Elem() == nil || parts[0].typ.Elem().Size() <= 0 {
		return evidence.Value{}, false // vector<bool> has iterators in these members
	}
	elem := parts[0].typ.Elem()
	start, finish, end := values[0], values[1], values[2]
	if finish < start || end < finish || (finish-start)%uint64(elem.Size()) != 0 || finish-start > maxLibraryString {
		return invalid("std::vector", "begin %#x, end %#x, end of storage %#x", start, finish, end)
	}
	count := (finish - start) / uint64(elem.Size())
	return w.sequence(fmt.Sprintf("std::vector of size %d", count), evidence.Addr(start), elem, count, depth), true
}

// cxxUniquePtr reads the first element of the tuple of pointer and deleter.
func (w *formatter) cxxUniquePtr(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	holder, ok := search(t, func(m debuginfo.Member) bool {
		return m.Base && strings.Contains(m.Type.Name(), "_Head_base<0")
	})
	if !ok {
		return evidence.Value{}, false
	}
	p, ok := find(holder.typ, "_M_head_impl", isPointer)
	if !ok {
		return evidence.Value{}, false
	}
	return w.owner(o.atOffset(holder.offset+p.offset), p.typ, depth, ""), true
}

// owner formats a smart pointer by its pointer; the object is followed at the
// top level only, as for a plain pointer.
func (w *formatter) owner(o object, pointer debuginfo.Type, depth int, note string) evidence.Value {
	var v evidence.Value
	if depth == 0 {
		v = w.top(o, pointer)
	} else {
		v = w.value(o, pointer, depth)
	}
	if v.Unavailable == "" {
		v.Text += note
	}
	return v
}

func (w *formatter) cxxSharedPtr(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	p, ok := find(t, "_M_ptr", isPointer)
	if !ok {
		return evidence.Value{}, false
	}
	return w.owner(o.atOffset(p.offset), p.typ, depth, w.useCounts(o, t)), true
}

// useCounts is " (2 owners, 1 weak)" for a control block that can be read. The
// owners together hold one weak reference, which is not counted.
func (w *formatter) useCounts(o object, t debuginfo.Type) string {
	block, ok := find(t, "_M_pi", isPointer)
	if !ok || block.typ.Elem() == nil {
		return ""
	}
	addr, err := o.word(block)
	if err != nil || addr == 0 {
		return ""
	}
	control := object{source: memorySource{w.memory, evidence.Addr(addr)}}
	values, _, ok, err := w.words(control, block.typ.Elem(), "_M_use_count", "_M_weak_count")
	if err != nil {
		return " (control block: " + reason(err) + ")"
	}
	if !ok {
		return ""
	}
	use, weak := int32(values[0]), int32(values[1])
	if use > 0 {
		weak--
	}
	return fmt.Sprintf(" (%d owners, %d weak)", use, weak)
}

func (w *formatter) cxxOptional(o object, t debuginfo.Type, depth int) (evidence.Value, bool) {
	values, _, ok, err := w.words(o, t, "_M_engaged")
	if err != nil {
		return failed(err)
	}
	p, found := find(t, "_M_value", nil)
	if !ok || !found {
		return evidence.Value{}, false
	}
	switch values[0] {
	case 0:
		return evidence.Value{Text: "std::nullopt"}, true
	case 1:
		return w.value(o.atOffset(p.offset), p.typ, depth), true
	}
	return invalid("std::optional", "its flag is %d", values[0])
}

// sizeFormat formats a container of nodes by the count that it keeps.
func sizeFormat(name string) libraryFormat {
	return func(w *formatter, o object, t debuginfo.Type, _ int) (evidence.Value, bool) {
		values, _, ok, err := w.words(o, t, name)
		if err != nil {
			return failed(err)
		}
		if !ok {
			return evidence.Value{}, false
		}
		text := fmt.Sprintf("{size %d}", values[0])
		return evidence.Value{Text: text, Elided: int(min(values[0], 1<<31))}, true
	}
}
