package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"diagnose/evidence"
)

// threadLocals finds the thread-local storage of modules.
type threadLocals struct {
	memory  Memory
	exe     *Module
	modules []*Module                 // in load order
	nodes   map[*Module]evidence.Addr // struct link_map of each module that the dynamic linker lists

	once   sync.Once
	layout linkerLayout
}

const (
	tcbDTV = 8 // offset of dtv in tcbhead_t (glibc, sysdeps/x86_64/nptl/tls.h)
	// dtvEntry is sizeof(dtv_t); an entry holds the block's address, or
	// dtvUnallocated until the thread first touches it.
	dtvEntry       = 16
	dtvUnallocated = ^uint64(0)
)

// block returns the address of a thread's copy of a module's block: see Process.ThreadLocal.
func (l *threadLocals) block(t *Thread, m *Module) (evidence.Addr, error) {
	addr, err := l.findBlock(t, m)
	if err != nil {
		return 0, fmt.Errorf("thread-local storage of %s in thread %d: %w", m.name(), t.Ref.Number, err)
	}
	return addr, nil
}

func (l *threadLocals) findBlock(t *Thread, m *Module) (evidence.Addr, error) {
	if m.image == nil || m.image.tls == nil {
		return 0, fmt.Errorf("the object has none")
	}
	tcb := t.Registers.FSBase
	if tcb == 0 {
		return 0, fmt.Errorf("the thread has no thread pointer")
	}
	if self, err := Uint64(l.memory, tcb); err != nil || self != uint64(tcb) {
		return 0, fmt.Errorf("no thread control block at %v", tcb) // psABI 3.4.6: %fs:0 holds its own address
	}
	if m == l.exe {
		return l.staticBlock(tcb, m), nil // in musl too (ldso/dynlink.c, __dls3)
	}
	if l.usesMusl() {
		return 0, fmt.Errorf("of libraries only glibc's layout is known, not musl's")
	}
	l.once.Do(func() { l.layout = l.publishedLayout() })
	node := l.nodes[m]
	if offset, err := l.staticOffset(node); err != nil {
		return 0, err
	} else if offset != 0 {
		return tcb - evidence.Addr(offset), nil
	}
	index, err := l.tlsIndex(m, node)
	if err != nil {
		return 0, err
	}
	return l.dynamicBlock(tcb, index, node)
}

// staticBlock is variant II: the executable's block ends at the thread
// pointer, rounded to its alignment (Drepper, section 3.4.6).
func (l *threadLocals) staticBlock(tcb evidence.Addr, m *Module) evidence.Addr {
	tls := m.image.tls
	align := max(tls.alignm, 1)
	size := tls.memsz
	// The block starts congruent to p_vaddr modulo the alignment.
	offset := size + (-size-tls.vaddr)&(align-1)
	return tcb - evidence.Addr(offset)
}

// staticOffset returns how far before each thread pointer a library's block is; 0: the threads' blocks are allocated one by one, or that is not
// known.
func (l *threadLocals) staticOffset(node evidence.Addr) (uint64, error) {
	if l.layout.offset == 0 || node == 0 {
		return 0, nil
	}
	offset, err := Uint64(l.memory, node+evidence.Addr(l.layout.offset))
	if err != nil {
		return 0, fmt.Errorf("link_map at %v: %w", node, err)
	}
	const forcedDynamic = ^uint64(0) // FORCED_DYNAMIC_TLS_OFFSET (glibc, include/link.h)
	if offset == forcedDynamic {
		return 0, nil
	}
	return offset, nil
}

func (l *threadLocals) dynamicBlock(tcb evidence.Addr, index uint64, node evidence.Addr) (evidence.Addr, error) {
	dtv, err := Uint64(l.memory, tcb+tcbDTV)
	if err != nil {
		return 0, fmt.Errorf("dtv: %w", err)
	}
	count, err := Uint64(l.memory, evidence.Addr(dtv-dtvEntry))
	if err != nil {
		return 0, fmt.Errorf("dtv length: %w", err)
	}
	if index == 0 || index > count {
		return 0, fmt.Errorf("index %d is outside the thread's %d entries: this thread has not used it yet", index, count)
	}
	if err := l.checkGeneration(dtv, index, node); err != nil {
		return 0, err
	}
	block, err := Uint64(l.memory, evidence.Addr(dtv+index*dtvEntry))
	if err != nil {
		return 0, fmt.Errorf("dtv entry %d: %w", index, err)
	}
	if block == dtvUnallocated || block == 0 {
		return 0, errUntouched
	}
	return evidence.Addr(block), nil
}

// errUntouched says that a thread has no block of an object.
var errUntouched = errors.New("not allocated: this thread has not touched it yet")

// checkGeneration fails where a thread's vector is older than the use of an index for an object: its entry is then of an object that was
// unloaded before. The vector's first word is its generation.
func (l *threadLocals) checkGeneration(dtv, index uint64, node evidence.Addr) error {
	if l.layout.slots == 0 || node == 0 {
		return nil
	}
	slot, err := l.slot(index)
	if err != nil {
		return fmt.Errorf("the dynamic linker's entry %d: %w", index, err)
	}
	owner, err := Uint64(l.memory, slot+evidence.Addr(l.layout.owner))
	if err != nil {
		return fmt.Errorf("the dynamic linker's entry %d: %w", index, err)
	}
	since, err := Uint64(l.memory, slot+evidence.Addr(l.layout.generation))
	if err != nil {
		return fmt.Errorf("the dynamic linker's entry %d: %w", index, err)
	}
	has, err := Uint64(l.memory, evidence.Addr(dtv))
	if err != nil {
		return fmt.Errorf("dtv: %w", err)
	}
	if owner != uint64(node) || since > has {
		return errUntouched
	}
	return nil
}

// slot returns the address of the dynamic linker's entry for an index. The entries are in a list of arrays.
func (l *threadLocals) slot(index uint64) (evidence.Addr, error) {
	y := &l.layout
	list, err := Uint64(l.memory, y.slots)
	const mostLists = 1 << 12 // each has some 64 entries
	for n := 0; err == nil && list != 0 && n < mostLists; n++ {
		var length uint64
		if length, err = Uint64(l.memory, evidence.Addr(list+y.length)); err != nil {
			break
		}
		if index < length {
			return evidence.Addr(list + y.first + index*y.slotSize), nil
		}
		index -= length
		list, err = Uint64(l.memory, evidence.Addr(list+y.next))
	}
	if err == nil {
		err = errors.New("there is none")
	}
	return 0, err
}

// tlsIndex reads the dynamic linker's record. Where its layout is not known it takes the order of loading.
func (l *threadLocals) tlsIndex(m *Module, node evidence.Addr) (uint64, error) {
	if l.layout.modid == 0 || node == 0 {
		if m.TLSID == 0 {
			return 0, fmt.Errorf("its index is not known: the dynamic linker's list does not name it")
		}
		return uint64(m.TLSID), nil
	}
	index, err := Uint64(l.memory, node+evidence.Addr(l.layout.modid))
	if err != nil {
		return 0, fmt.Errorf("link_map at %v: %w", node, err)
	}
	if index == 0 {
		return 0, fmt.Errorf("the dynamic linker gave it no index")
	}
	return index, nil
}

// linkerLayout are offsets in the dynamic linker's data, which libc publishes for debuggers (glibc, nptl_db/structs.def).
type linkerLayout struct {
	// modid and offset are l_tls_modid and l_tls_offset in struct link_map; 0: not known.
	modid, offset uint64
	// slots is where the list of dtv_slotinfo_list begins, the table of all indices; 0: not known, and so are the others.
	slots evidence.Addr
	// length, next and first are in struct dtv_slotinfo_list; generation and owner in an entry, which has slotSize bytes.
	length, next, first, slotSize, generation, owner uint64
}

func (l *threadLocals) publishedLayout() (y linkerLayout) {
	y.modid, _ = l.publishedField("link_map_l_tls_modid", 64)
	y.offset, _ = l.publishedField("link_map_l_tls_offset", 64)
	global, known := l.symbol("_rtld_global")
	field := func(name string, bits uint32) uint64 {
		offset, is := l.publishedField(name, bits)
		known = known && is
		return offset
	}
	const entryBits = 128
	list := field("rtld_global__dl_tls_dtv_slotinfo_list", 64)
	y.length, y.next = field("dtv_slotinfo_list_len", 64), field("dtv_slotinfo_list_next", 64)
	y.first, y.slotSize = field("dtv_slotinfo_list_slotinfo", entryBits), entryBits/8
	y.generation, y.owner = field("dtv_slotinfo_gen", 64), field("dtv_slotinfo_map", 64)
	if known {
		y.slots = global + evidence.Addr(list)
	}
	return y
}

// publishedField returns the offset of a field that has so many bits.
func (l *threadLocals) publishedField(name string, bits uint32) (offset uint64, known bool) {
	const furthest = 1 << 16 // struct link_map has about 1200 bytes, struct rtld_global 4300
	addr, known := l.symbol("_thread_db_" + name)
	// DB_STRUCT_FIELD: size in bits, number of elements, offset.
	var b [12]byte
	if !known {
		return 0, false
	}
	if _, err := l.memory.ReadMemory(addr, b[:]); err != nil {
		return 0, false
	}
	le := binary.LittleEndian
	offset = uint64(le.Uint32(b[8:]))
	return offset, le.Uint32(b[:]) == bits && offset < furthest
}

func (l *threadLocals) symbol(name string) (evidence.Addr, bool) {
	for _, m := range l.modules {
		if m.Object == nil {
			continue
		}
		if s, ok := m.Object.SymbolNamed(name); ok {
			return m.Addr(s.Value), true
		}
	}
	return 0, false
}

func (l *threadLocals) usesMusl() bool { return slices.ContainsFunc(l.modules, isMusl) }
