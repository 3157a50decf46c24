package agent

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
)

// ErrAbsent says that the memory has no agent.
var ErrAbsent = errors.New("agent: the process did not run with the agent")

// Heap is the agent's heap in a memory image. It is safe for concurrent use if
// the memory is, and keeps nothing of what it reads but the root.
type Heap struct {
	source source
	root   *heapRoot
	spans  *spanTable
}

// Open finds the agent in a memory image. root is the value of the program's
// symbol diagnose_agent_root; 0 tries the fixed addresses. The error is
// ErrAbsent when there is no agent, and another one when there is one that
// cannot be read.
func Open(m Memory, root evidence.Addr) (*Heap, error) {
	if root != 0 {
		return openAt(m, uint64(root))
	}
	for k := range uint64(Tries) {
		h, err := openAt(m, Base+k*Step)
		if !errors.Is(err, ErrAbsent) {
			return h, err
		}
	}
	return nil, ErrAbsent
}

func openAt(m Memory, at uint64) (*Heap, error) {
	var magic [8]byte
	if n, err := m.ReadMemory(evidence.Addr(at), magic[:]); err != nil || n < len(magic) {
		return nil, ErrAbsent
	}
	if binary.LittleEndian.Uint64(magic[:]) != Magic {
		return nil, ErrAbsent
	}
	from := source{m}
	raw, err := readRaw[RawRoot](from, "the root", at)
	if err != nil {
		return nil, err
	}
	root := &heapRoot{raw}
	if err := root.check(at); err != nil {
		return nil, fmt.Errorf("agent: the root at %#x: %w", at, err)
	}
	return &Heap{source: from, root: root, spans: &spanTable{source: from, root: root}}, nil
}

// Root is the root as it was when the heap was opened.
func (h *Heap) Root() *RawRoot { return &h.root.RawRoot }

// InObjects reports whether addr is in the window of the program's objects.
func (h *Heap) InObjects(addr evidence.Addr) bool { return h.root.inObjects(addr) }
