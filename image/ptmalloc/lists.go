package ptmalloc

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// binned reports whether chunks of the list are marked as free in the header of the next one.
func binned(l evidence.FreeList) bool {
	return l == evidence.ListUnsorted || l == evidence.ListSmall || l == evidence.ListLarge
}

// Free is the place of a free chunk in a list.
type Free struct {
	List evidence.FreeList
	// Index is the list's number among those of its kind, Thread the index of the thread of
	// a tcache.
	Index  int
	Thread int
	// Position counts the chunks of the list before it.
	Position int
	// Twice: the list leads to the chunk again.
	Twice bool
}

// BadLink is a link of a list that is not as malloc makes it.
type BadLink struct {
	Fault evidence.LinkFault
	Free  Free
	// Holder is the free chunk with the link; 0: it is the list's head.
	Holder evidence.Addr
	// At is the address of the link and Word the memory there. To is the address of the
	// chunk that it leads to: the word itself, or the word combined with its address.
	At   evidence.Addr
	Word uint64
	To   evidence.Addr
	// Size is of the list's chunks, in bytes; 0 for lists of several sizes.
	Size uint64
}

// mostFree bounds the free chunks of all lists that are read, mostListed those of one list.
const (
	mostFree   = 4 << 20
	mostListed = 1 << 20
)

// listReader reads the lists of free chunks.
type listReader struct {
	*Heap
	budget int
}

// add notes a chunk of a list. It reports false where the list cannot be followed further.
func (r *listReader) add(c evidence.Addr, f Free) bool {
	if r.budget--; r.budget < 0 {
		r.Cut = true
		return false
	}
	if old, known := r.free[c]; known {
		if old.List == f.List && old.Index == f.Index && old.Thread == f.Thread {
			old.Twice = true
			r.free[c] = old
		}
		return false
	}
	r.free[c] = f
	return true
}

func (r *listReader) bad(b BadLink) { r.BadLinks = append(r.BadLinks, b) }

// isChunk reports whether an address can be that of a chunk: aligned, and in memory of the program.
func (h *Heap) isChunk(at evidence.Addr) bool {
	if at == 0 || at%16 != 0 || !at.Canonical() {
		return false
	}
	m := h.mappingAt(at)
	return m != nil && m.Writable() && at+leastChunk <= m.End
}

// readBins reads the unsorted, small and large lists of an arena.
func (r *listReader) readBins(a *Arena) {
	for i := 1; i < binCount; i++ {
		head := a.bins + evidence.Addr((i-1)*2*word) - headerSize
		f := Free{List: evidence.ListSmall, Index: i}
		size := uint64(i) * 16
		switch {
		case i == 1:
			f.List, size = evidence.ListUnsorted, 0
		case i >= smallBins:
			f.List, size = evidence.ListLarge, 0
		}
		r.readBin(head, f, size)
	}
}

// readBin follows the links of a list from its head and back to it. If that does not come back, it follows the links
// in the other direction as far as they agree.
func (r *listReader) readBin(head evidence.Addr, f Free, size uint64) {
	if r.forward(head, f, size) {
		return
	}
	holder := head
	for range mostListed {
		back, err := image.Uint64(r.cache, holder+headerSize+word)
		previous := evidence.Addr(back)
		if err != nil || !r.isChunk(previous) || !r.linked(previous, holder) || !r.add(previous, f) {
			return
		}
		f.Position++
		holder = previous
	}
}

// linked reports whether a chunk's or a head's forward link leads to another one.
func (r *listReader) linked(from, to evidence.Addr) bool {
	forward, err := image.Uint64(r.cache, from+headerSize)
	return err == nil && evidence.Addr(forward) == to
}

// forward follows the forward links. It reports whether they lead back to the head.
func (r *listReader) forward(head evidence.Addr, f Free, size uint64) bool {
	holder := head
	for range mostListed {
		to, err := image.Uint64(r.cache, holder+headerSize)
		if err != nil {
			return false
		}
		next := evidence.Addr(to)
		link := BadLink{Free: f, At: holder + headerSize, Word: to, To: next, Size: size}
		if holder != head {
			link.Holder = holder
		}
		if !r.isChunk(next) && next != head {
			link.Fault = evidence.LinkNowhere
			r.bad(link)
			return false
		}
		back, err := image.Uint64(r.cache, next+headerSize+word)
		if err != nil {
			return false
		}
		if evidence.Addr(back) != holder {
			r.unpaired(link, next, head, back)
			return false
		}
		if next == head {
			return true
		}
		if c, err := r.chunkAt(next); err == nil && size != 0 && c.Size != size {
			link.Fault = evidence.LinkOtherSize
			r.bad(link)
		}
		if !r.add(next, f) {
			if r.budget >= 0 {
				link.Fault = evidence.LinkCycle
				r.bad(link)
			}
			return false
		}
		f.Position++
		holder = next
	}
	return false
}

// unpaired notes a link that is not linked back: the link itself was overwritten, or the one back. It is the one
// back if the next chunk's forward link is whole.
func (r *listReader) unpaired(link BadLink, next, head evidence.Addr, back uint64) {
	link.Fault = evidence.LinkUnpaired
	if next != head && r.linkedOn(next) {
		r.add(next, link.Free)
		link.Holder, link.At, link.Word, link.To = next, next+headerSize+word, back, evidence.Addr(back)
		if !r.isChunk(link.To) {
			link.Fault = evidence.LinkNowhere
		}
	}
	r.bad(link)
}

// linkedOn reports whether the chunk after this one links back to it.
func (r *listReader) linkedOn(c evidence.Addr) bool {
	to, err := image.Uint64(r.cache, c+headerSize)
	if err != nil {
		return false
	}
	back, err := image.Uint64(r.cache, evidence.Addr(to)+headerSize+word)
	return err == nil && evidence.Addr(back) == c
}

// readFast reads the fast lists of an arena.
func (r *listReader) readFast(a *Arena) {
	for i, first := range a.fast {
		size := uint64(i+2) * 16
		link := BadLink{Free: Free{List: evidence.ListFast, Index: i}, Word: uint64(first), To: first, Size: size}
		r.readSingle(link, headerSize)
	}
}

// readSingle follows a singly linked list. The links lead to the headers of chunks (toUser is
// headerSize), or to the memory after them (toUser is 0).
func (r *listReader) readSingle(link BadLink, toUser evidence.Addr) {
	for range mostListed {
		if link.To == 0 {
			return
		}
		user := link.To + toUser
		c := user - headerSize
		if !r.isChunk(c) {
			link.Fault = evidence.LinkNowhere
			r.bad(link)
			return
		}
		header, err := r.chunkAt(c)
		if err != nil {
			return
		}
		if link.Size != 0 && header.Size != link.Size {
			link.Fault = evidence.LinkOtherSize
			r.bad(link)
			return
		}
		if !r.add(c, link.Free) {
			if r.budget >= 0 {
				link.Fault = evidence.LinkCycle
				r.bad(link)
			}
			return
		}
		raw, err := image.Uint64(r.cache, user)
		if err != nil {
			return
		}
		link.Free.Position++
		link.Holder, link.At, link.Word, link.To = c, user, raw, r.revealed(user, raw)
	}
}

// revealed is the address that a link of a singly linked list leads to.
func (h *Heap) revealed(at evidence.Addr, raw uint64) evidence.Addr {
	if h.safeLinking {
		return evidence.Addr(raw) ^ at>>12
	}
	return evidence.Addr(raw)
}

// tcacheLayout is a version of struct tcache_perthread_struct: the chunk that it is in, the number of lists, and
// the size of a list's count.
type tcacheLayout struct {
	chunk     uint64
	lists     int
	countSize int
	// slots: the counts are of the chunks that the list still has room for.
	slots bool
}

var tcacheLayouts = []tcacheLayout{
	{chunk: 0x250, lists: 64, countSize: 1},              // 2.26 to 2.29
	{chunk: 0x290, lists: 64, countSize: 2},              // 2.30 to 2.41
	{chunk: 0x300, lists: 76, countSize: 2, slots: true}, // 2.42 and 2.43
}

// exactLists are the tcache lists of chunks of one size. The others, of glibc 2.42, have chunks of several sizes.
const exactLists = 64

// tcacheAt reads the table of a thread's lists from the memory of its chunk.
func (h *Heap) tcacheAt(user evidence.Addr) (tcacheLayout, []byte, bool) {
	if user%16 != 0 || !h.isChunk(user-headerSize) {
		return tcacheLayout{}, nil, false
	}
	c, err := h.chunkAt(user - headerSize)
	if err != nil {
		return tcacheLayout{}, nil, false
	}
	for _, l := range tcacheLayouts {
		if c.Size != l.chunk || !h.versionHas(l) {
			continue
		}
		table := make([]byte, l.lists*(l.countSize+word))
		if _, err := h.cache.ReadMemory(user, table); err != nil {
			break
		}
		if l.plausible(table) {
			return l, table, true
		}
	}
	return tcacheLayout{}, nil, false
}

// versionHas reports whether the version of the C library has this layout.
func (h *Heap) versionHas(l tcacheLayout) bool {
	switch v := h.Version; {
	case v == 0:
		return true
	case v < 26:
		return false
	case v < 30:
		return l.chunk == 0x250
	case v < 42:
		return l.chunk == 0x290
	}
	return l.chunk == 0x300
}

// plausible reports whether the table's counts and heads agree, in all lists but two, which may have been
// overwritten: a list without chunks has no head.
func (l tcacheLayout) plausible(table []byte) bool {
	const forgiven = 2
	wrong := 0
	for i := range l.lists {
		count, head := l.entry(table, i)
		if !l.slots && (count == 0) != (head == 0) || head%16 != 0 {
			wrong++
		}
	}
	return wrong <= forgiven
}

func (l tcacheLayout) entry(table []byte, i int) (count int, head evidence.Addr) {
	count = int(table[i*l.countSize])
	if l.countSize == 2 {
		count = int(binary.LittleEndian.Uint16(table[2*i:]))
	}
	return count, evidence.Addr(binary.LittleEndian.Uint64(table[l.lists*l.countSize+word*i:]))
}

// readTcache reads the lists of a thread.
func (r *listReader) readTcache(thread int, user evidence.Addr) {
	l, table, ok := r.tcacheAt(user)
	if !ok {
		return
	}
	for i := range l.lists {
		_, head := l.entry(table, i)
		link := BadLink{Free: Free{List: evidence.ListTcache, Index: i, Thread: thread}, Word: uint64(head), To: head,
			At: user + evidence.Addr(l.lists*l.countSize+word*i)}
		if i < exactLists {
			link.Size = uint64(i+2) * 16
		}
		r.readSingle(link, 0)
	}
	r.tcaches = append(r.tcaches, user-headerSize)
}

// findTcaches finds each thread's table of lists: the C library's thread-local memory has its address.
func (r *listReader) findTcaches(m *image.Module) {
	for i := range r.process.Threads {
		t := &r.process.Threads[i]
		start, size, err := r.threadLocals(t, m)
		if err != nil {
			r.unlisted()
			continue
		}
		data := make([]byte, size)
		n, err := r.mem.ReadMemory(start, data)
		if err != nil {
			r.unlisted()
		}
		for off := 0; off+word <= n; off += word {
			user := evidence.Addr(binary.LittleEndian.Uint64(data[off:]))
			if _, _, ok := r.tcacheAt(user); ok {
				r.readTcache(i, user)
				break
			}
		}
	}
}

// unlisted notes a thread whose lists cannot be read, if the version has such lists.
func (r *listReader) unlisted() {
	const first Version = 26
	if r.Version == 0 || r.Version >= first {
		r.Unlisted++
	}
}

// mostThreadLocals bounds the thread-local memory that is searched, in bytes.
const mostThreadLocals = 64 << 10

// threadLocals is the memory of a module's thread-local variables of a thread.
func (h *Heap) threadLocals(t *image.Thread, m *image.Module) (evidence.Addr, uint64, error) {
	if m.Object == nil {
		return 0, 0, fmt.Errorf("the object of %s is missing", m.Path)
	}
	tls, ok := m.Object.TLS()
	if !ok || tls.Memsz > mostThreadLocals {
		return 0, 0, fmt.Errorf("%s has no thread-local storage", m.Path)
	}
	start, err := h.process.ThreadLocal(t, m)
	return start, tls.Memsz, err
}
