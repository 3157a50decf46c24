// Package agenttest makes heaps as the agent leaves them in memory, for tests
// of what reads and judges them.
package agenttest

import (
	"fmt"

	"diagnose/evidence"
)

const pageSize = 4096

// Memory is a made-up address space of pages.
type Memory map[uint64]*[pageSize]byte

// ReadMemory fails at the first byte of a page that was never written.
func (m Memory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for done := 0; done < len(p); {
		at := uint64(addr) + uint64(done)
		page := m[at/pageSize]
		if page == nil {
			return done, fmt.Errorf("memory at %#x is not mapped", at)
		}
		done += copy(p[done:], page[at%pageSize:])
	}
	return len(p), nil
}

// Write stores bytes, and maps their pages.
func (m Memory) Write(addr evidence.Addr, p []byte) {
	for done := 0; done < len(p); {
		at := uint64(addr) + uint64(done)
		page := m[at/pageSize]
		if page == nil {
			page = new([pageSize]byte)
			m[at/pageSize] = page
		}
		done += copy(page[at%pageSize:], p[done:])
	}
}

// Unmap takes the pages away that hold [addr, addr+n).
func (m Memory) Unmap(addr evidence.Addr, n uint64) {
	for page := uint64(addr) / pageSize; page*pageSize < uint64(addr)+n; page++ {
		delete(m, page)
	}
}
