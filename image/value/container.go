package value

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Bounds of the memory that is read of one container.
const (
	// maxNodes bounds the nodes that are walked.
	maxNodes = 1 << 16
	// maxElements is more than any container has.
	maxElements = 1 << 40
)

// Container is a container of the C++ standard library whose layout was checked in memory. The layouts are those of
// libstdc++ of gcc 5 to 14 and of libc++ from 14 on, recognised by the names of their members.
type Container struct {
	Kind evidence.ContainerKind
	Addr evidence.Addr
	// Size counts the elements.
	Size uint64
	// Elem is the type of the elements; nil: it is not known, of a container of nodes.
	Elem debuginfo.Type
	// Begin, End and Storage are the elements' start, their end and the end of the memory for more, of a vector or
	// string. Head is the address of the member that has Begin. Of a deque there is only End, which is in a block of its
	// own memory; 0: it has no address.
	Begin, End, Storage, Head evidence.Addr
	// Sentinel is the node that stands for end(), of a list or tree. End() of a hash table is a null pointer.
	Sentinel evidence.Addr

	memory image.Memory
	// blocks has the elements of a deque, in order.
	blocks []span
	// nodes are those of a list, tree or hash table; nil: they are too many to be walked.
	nodes map[evidence.Addr]bool
}

// span is a part of a deque's elements.
type span struct{ begin, end evidence.Addr }

// ContainerAt reads the object of type t at an address; nil without an error: the type is no container's. An error
// says that memory cannot be read or does not have what the layout requires.
func ContainerAt(m image.Memory, addr evidence.Addr, t debuginfo.Type) (*Container, error) {
	if t == nil || t.Kind() != debuginfo.KindStruct || t.Size() < 8 || t.Size() > 256 {
		return nil, nil
	}
	members := t.Members()
	if len(members) == 0 || len(members) > 8 {
		return nil, nil
	}
	read := containerLayout(t, members)
	if read == nil {
		return nil, nil
	}
	r := &containerReader{Container: &Container{Addr: addr, memory: m}, o: object{source: memorySource{m, addr}}, t: t}
	ok, err := read(r)
	if err != nil {
		return nil, fmt.Errorf("%s at %v: %w", t.Name(), addr, err)
	}
	if !ok {
		return nil, nil
	}
	return r.Container, nil
}

// containerReader reads one container.
type containerReader struct {
	*Container
	o object
	t debuginfo.Type
}

// containerLayout chooses the reader of a layout, whose result is false for another layout; nil: t is no container.
func containerLayout(t debuginfo.Type, members []debuginfo.Member) func(*containerReader) (bool, error) {
	switch {
	case hasMember(members, "_M_dataplus", "") && hasMember(members, "_M_string_length", ""):
		return (*containerReader).gnuString
	case hasBase(members, "_Vector_base<"):
		return func(r *containerReader) (bool, error) { return r.vector("_M_start", "_M_finish", "_M_end_of_storage") }
	case hasBase(members, "_Deque_base<"):
		return (*containerReader).gnuDeque
	case hasBase(members, "_List_base<"):
		return func(r *containerReader) (bool, error) { return r.list("_M_node", "_M_next", "_M_prev", "_M_size") }
	case hasMember(members, "_M_t", ""):
		return (*containerReader).gnuTree
	case hasMember(members, "_M_h", ""):
		return (*containerReader).gnuHash
	case hasMember(members, "__r_", ""), hasMember(members, "__rep_", ""):
		return (*containerReader).llvmString
	case hasBase(members, "__deque_base<"), hasMember(members, "__map_", "") && hasMember(members, "__start_", ""):
		return (*containerReader).llvmDeque
	case hasBase(members, "__vector_base<"), hasMember(members, "__begin_", "") && hasMember(members, "__end_", ""):
		return func(r *containerReader) (bool, error) { return r.vector("__begin_", "__end_", "__end_cap_", "__cap_") }
	case hasBase(members, "__list_imp<"):
		return func(r *containerReader) (bool, error) {
			return r.list("__end_", "__next_", "__prev_", "__size_alloc_", "__size_")
		}
	case hasMember(members, "__tree_", ""):
		return (*containerReader).llvmTree
	case hasMember(members, "__table_", ""):
		return (*containerReader).llvmHash
	}
	return nil
}

// member finds the first of some names; libc++ renames members between versions.
func (r *containerReader) member(names ...string) (part, bool) {
	for _, name := range names {
		if p, ok := find(r.t, name, nil); ok {
			return p, true
		}
	}
	return part{}, false
}

// number reads a member that is a word, or a pair of a word and an empty object (libc++'s __compressed_pair, whose
// first element is __value_).
func (r *containerReader) number(names ...string) (v uint64, p part, ok bool, err error) {
	p, ok = r.member(names...)
	if !ok {
		return 0, p, false, nil
	}
	if aggregate(p.typ) {
		inner, found := find(p.typ, "__value_", isWord)
		if !found {
			return 0, p, false, nil
		}
		p = part{p.offset + inner.offset, inner.typ}
	}
	if !isWord(p.typ) {
		return 0, p, false, nil
	}
	v, err = r.o.word(p)
	return v, p, true, err
}

// at is the address of a part.
func (r *containerReader) at(p part) evidence.Addr { return r.Addr + evidence.Addr(p.offset) }

// notValid is the error for memory that does not have what a layout requires.
func notValid(format string, args ...any) error {
	return unavailable(fmt.Sprintf("is no valid container: "+format, args...))
}
