package value

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// vector reads three pointers: to the first element, past the last one, and past the storage, which libc++ calls by
// one of several names.
func (r *containerReader) vector(begin, end string, storage ...string) (bool, error) {
	start, head, ok, err := r.number(begin)
	if !ok || err != nil || !isPointer(head.typ) || head.typ.Elem() == nil || head.typ.Elem().Size() <= 0 {
		return false, err // vector<bool> has iterators or numbers in these members
	}
	finish, _, ok, err := r.number(end)
	if !ok || err != nil {
		return false, err
	}
	limit, _, ok, err := r.number(storage...)
	if !ok || err != nil {
		return false, err
	}
	r.Kind, r.Elem, r.Head = evidence.ContainerVector, head.typ.Elem(), r.at(head)
	r.Begin, r.End, r.Storage = evidence.Addr(start), evidence.Addr(finish), evidence.Addr(limit)
	size := uint64(r.Elem.Size())
	if finish < start || limit < finish || (finish-start)%size != 0 || (limit-start)%size != 0 || (start == 0) != (limit == 0) {
		return false, notValid("begin %#x, end %#x, end of storage %#x", start, finish, limit)
	}
	r.Size = (finish - start) / size
	return true, r.readable()
}

// readable reports whether the first and the last byte of the elements can be read.
func (r *containerReader) readable() error {
	if r.Size == 0 {
		return nil
	}
	var b [1]byte
	if _, err := r.memory.ReadMemory(r.Begin, b[:]); err != nil {
		return err
	}
	_, err := r.memory.ReadMemory(r.End-1, b[:])
	return err
}

// text sets the elements of a string and checks the NUL that follows them.
func (r *containerReader) text(elem debuginfo.Type, data, length, capacity uint64) error {
	size := uint64(elem.Size())
	if length > capacity || capacity > maxElements || size == 0 || size > 8 {
		return notValid("length %d, capacity %d, data at %#x", length, capacity, data)
	}
	r.Kind, r.Elem, r.Size = evidence.ContainerString, elem, length
	r.Begin = evidence.Addr(data)
	r.End, r.Storage = r.Begin+evidence.Addr(length*size), r.Begin+evidence.Addr((capacity+1)*size)
	end := make([]byte, size)
	if _, err := r.memory.ReadMemory(r.End, end); err != nil {
		return err
	}
	if unsignedOf(end) != 0 {
		return notValid("no NUL at offset %d", length)
	}
	return r.readable()
}

// gnuString is libstdc++'s string of the C++11 ABI (bits/basic_string.h). A short one is in _M_local_buf, whose
// memory the capacity of a long one shares.
func (r *containerReader) gnuString() (bool, error) {
	data, head, ok, err := r.number("_M_p")
	if !ok || err != nil || !isPointer(head.typ) || head.typ.Elem() == nil || head.typ.Elem().Size() <= 0 {
		return false, err
	}
	length, _, ok, err := r.number("_M_string_length")
	if !ok || err != nil {
		return false, err
	}
	local, ok := r.member("_M_local_buf")
	if !ok || local.typ.Size() <= 0 {
		return false, nil
	}
	r.Head = r.at(head)
	capacity := uint64(local.typ.Size()/head.typ.Elem().Size()) - 1
	if evidence.Addr(data) != r.at(local) {
		if capacity, _, ok, err = r.number("_M_allocated_capacity"); !ok || err != nil {
			return false, err
		}
	}
	return true, r.text(head.typ.Elem(), data, length, capacity)
}

// llvmString is libc++'s string: the lowest bit of the first byte tells a long one, whose three words a short one
// uses for its length and characters. The alternate layout has the bit elsewhere and is not read.
func (r *containerReader) llvmString() (bool, error) {
	long, ok := r.member("__l")
	short, also := r.member("__s")
	if !ok || !also {
		return false, nil
	}
	data, ok := find(long.typ, "__data_", isPointer)
	length, also := find(long.typ, "__size_", isWord)
	room, and := find(long.typ, "__cap_", isWord)
	if !ok || !also || !and || length.offset != 8 || data.offset != 16 || data.typ.Elem() == nil {
		return false, nil
	}
	chars, ok := find(short.typ, "__data_", nil)
	if !ok || chars.typ.Kind() != debuginfo.KindArray || chars.offset != max(1, data.typ.Elem().Size()) || chars.typ.Count() <= 0 {
		return false, nil
	}
	inner := object{source: r.o.source, offset: r.o.offset + long.offset}
	first, err := inner.read(1)
	if err != nil {
		return false, err
	}
	if first[0]&1 == 0 {
		at := r.at(part{offset: short.offset + chars.offset})
		return true, r.text(data.typ.Elem(), uint64(at), uint64(first[0]>>1), uint64(chars.typ.Count())-1)
	}
	r.Head = r.at(part{offset: long.offset + data.offset})
	var words [3]uint64
	for i, p := range []part{data, length, room} {
		if words[i], err = inner.word(p); err != nil {
			return false, err
		}
	}
	if room.typ.Size() == 8 && hasLongBit(long.typ) { // the bit is a member of its own, and the capacity the other 63
		return true, r.text(data.typ.Elem(), words[0], words[1], words[2])
	}
	return true, r.text(data.typ.Elem(), words[0], words[1], words[2]&^1-1)
}

// hasLongBit reports whether libc++ declares the bit of a long string as a member, as it does from version 15 on.
func hasLongBit(t debuginfo.Type) bool {
	_, ok := find(t, "__is_long_", nil)
	return ok
}

// gnuDeque is libstdc++'s (bits/stl_deque.h): a map of pointers to blocks of the same size, and two iterators.
func (r *containerReader) gnuDeque() (bool, error) {
	start, ok := r.member("_M_start")
	finish, also := r.member("_M_finish")
	if !ok || !also {
		return false, nil
	}
	first, ok, err := dequeIterator(r.o.atOffset(start.offset), start.typ)
	if !ok || err != nil {
		return false, err
	}
	last, ok, err := dequeIterator(r.o.atOffset(finish.offset), finish.typ)
	if !ok || err != nil {
		return false, err
	}
	r.Kind, r.Elem = evidence.ContainerDeque, first.elem
	size, block := evidence.Addr(r.Elem.Size()), first.last-first.first
	if block == 0 || block%size != 0 || last.last-last.first != block || last.node < first.node || (last.node-first.node)/8 > maxNodes {
		return false, notValid("blocks from %v to %v", first.node, last.node)
	}
	for node := first.node; node <= last.node; node += 8 {
		at, err := image.Uint64(r.memory, node)
		if err != nil {
			return false, err
		}
		r.blocks = append(r.blocks, span{evidence.Addr(at), evidence.Addr(at) + block})
	}
	if !first.in(r.blocks[0]) || !last.in(r.blocks[len(r.blocks)-1]) {
		return false, notValid("its iterators are in other blocks")
	}
	r.blocks[0].begin, r.blocks[len(r.blocks)-1].end, r.End = first.cur, last.cur, last.cur
	for _, b := range r.blocks {
		if b.end < b.begin || (b.end-b.begin)%size != 0 {
			return false, notValid("a block from %v to %v", b.begin, b.end)
		}
		r.Size += uint64((b.end - b.begin) / size)
	}
	return true, nil
}

// gnuDequeIterator is bits/stl_deque.h's _Deque_iterator.
type gnuDequeIterator struct {
	cur, first, last, node evidence.Addr
	elem                   debuginfo.Type
}

func (i *gnuDequeIterator) in(b span) bool {
	return i.first == b.begin && i.last == b.end && i.cur >= i.first && i.cur <= i.last
}

func dequeIterator(o object, t debuginfo.Type) (i gnuDequeIterator, ok bool, err error) {
	var words [4]uint64
	for k, name := range []string{"_M_cur", "_M_first", "_M_last", "_M_node"} {
		p, found := find(t, name, isPointer)
		if !found {
			return i, false, nil
		}
		if words[k], err = o.word(p); err != nil {
			return i, true, err
		}
		if k == 0 {
			i.elem = p.typ.Elem()
		}
	}
	i.cur, i.first, i.last, i.node = evidence.Addr(words[0]), evidence.Addr(words[1]), evidence.Addr(words[2]), evidence.Addr(words[3])
	return i, i.elem != nil && i.elem.Size() > 0, nil
}

// llvmDequeBlock is how many elements a block of libc++'s deque has (__deque_block_size, <deque>).
func llvmDequeBlock(size uint64) uint64 {
	if size < 256 {
		return 4096 / size
	}
	return 16
}

// llvmDeque is libc++'s: a buffer of pointers to blocks, the index of the first element and the size.
func (r *containerReader) llvmDeque() (bool, error) {
	blocks, ok := r.member("__map_")
	if !ok {
		return false, nil
	}
	begin, ok := find(blocks.typ, "__begin_", isPointer)
	end, also := find(blocks.typ, "__end_", isPointer)
	if !ok || !also || begin.typ.Elem() == nil || begin.typ.Elem().Elem() == nil || begin.typ.Elem().Elem().Size() <= 0 {
		return false, nil
	}
	start, _, ok, err := r.number("__start_")
	if !ok || err != nil {
		return false, err
	}
	size, _, ok, err := r.number("__size_")
	if !ok || err != nil {
		return false, err
	}
	r.Kind, r.Elem, r.Size = evidence.ContainerDeque, begin.typ.Elem().Elem(), size
	buffer := r.o.atOffset(blocks.offset)
	low, err := buffer.word(begin)
	if err != nil {
		return false, err
	}
	high, err := buffer.word(end)
	if err != nil {
		return false, err
	}
	elem := uint64(r.Elem.Size())
	count := llvmDequeBlock(elem)
	if high < low || (high-low)%8 != 0 || (high-low)/8 > maxNodes || size > maxElements || start > maxElements || start+size > (high-low)/8*count {
		return false, notValid("%d blocks, start %d, size %d", (high-low)/8, start, size)
	}
	for left, from := size, start; ; {
		if evidence.Addr(low+from/count*8) >= evidence.Addr(high) {
			return true, nil // end() is after the last block, and has no address of its own
		}
		at, err := image.Uint64(r.memory, evidence.Addr(low+from/count*8))
		if err != nil {
			return false, err
		}
		b := evidence.Addr(at + from%count*elem)
		n := min(left, count-from%count)
		if n == 0 {
			r.End = b
			return true, nil
		}
		r.blocks = append(r.blocks, span{b, b + evidence.Addr(n*elem)})
		left, from = left-n, from+n
	}
}
