package image

import (
	"encoding/binary"
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
	offset uint64 // of l_tls_modid in struct link_map; 0 when not known
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
	index, err := l.tlsIndex(m)
	if err != nil {
		return 0, err
	}
	return l.dynamicBlock(tcb, index)
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

func (l *threadLocals) dynamicBlock(tcb evidence.Addr, index uint64) (evidence.Addr, error) {
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
	block, err := Uint64(l.memory, evidence.Addr(dtv+index*dtvEntry))
	if err != nil {
		return 0, fmt.Errorf("dtv entry %d: %w", index, err)
	}
	if block == dtvUnallocated || block == 0 {
		return 0, fmt.Errorf("not allocated: this thread has not touched it yet")
	}
	return evidence.Addr(block), nil
}

// tlsIndex reads the dynamic linker's record, whose offset glibc publishes for
// debuggers (nptl_db's _thread_db_link_map_l_tls_modid). Without that it takes
// the order of loading.
func (l *threadLocals) tlsIndex(m *Module) (uint64, error) {
	l.once.Do(func() { l.offset = l.tlsIndexOffset() })
	node := l.nodes[m]
	if l.offset == 0 || node == 0 {
		if m.TLSID == 0 {
			return 0, fmt.Errorf("its index is not known: the dynamic linker's list does not name it")
		}
		return uint64(m.TLSID), nil
	}
	index, err := Uint64(l.memory, node+evidence.Addr(l.offset))
	if err != nil {
		return 0, fmt.Errorf("link_map at %v: %w", node, err)
	}
	if index == 0 {
		return 0, fmt.Errorf("the dynamic linker gave it no index")
	}
	return index, nil
}

func (l *threadLocals) tlsIndexOffset() uint64 {
	const furthest = 4096 // struct link_map has about 1200 bytes
	for _, m := range l.modules {
		if m.Object == nil {
			continue
		}
		s, ok := m.Object.SymbolNamed("_thread_db_link_map_l_tls_modid")
		if !ok {
			continue
		}
		// DB_STRUCT_FIELD: size in bits, number of elements, offset.
		var b [12]byte
		if _, err := l.memory.ReadMemory(m.Addr(s.Value), b[:]); err != nil {
			return 0
		}
		le := binary.LittleEndian
		if offset := le.Uint32(b[8:]); le.Uint32(b[:]) == 64 && offset < furthest {
			return uint64(offset)
		}
	}
	return 0
}

func (l *threadLocals) usesMusl() bool { return slices.ContainsFunc(l.modules, isMusl) }
