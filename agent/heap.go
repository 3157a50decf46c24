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
	memory Memory
	root   RawRoot
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
	h := &Heap{memory: m}
	root, err := readRaw[RawRoot](h, "the root", at)
	if err != nil {
		return nil, err
	}
	h.root = root
	if err := h.check(at); err != nil {
		return nil, fmt.Errorf("agent: the root at %#x: %w", at, err)
	}
	return h, nil
}

// window is what the code relies on of a window.
type window struct {
	name    string
	raw     *RawWindow
	offset  uint64
	limit   uint64 // bytes that it may have
	element uint64 // size of what used counts
}

func (h *Heap) windows() []window {
	r := &h.root
	return []window{
		{"heaps", &r.Heaps, OffHeaps, OffThreads - OffHeaps, uint64(binary.Size(RawHeap{}))},
		{"threads", &r.Threads, OffThreads, OffSites - OffThreads, threadSize},
		{"sites", &r.Sites, OffSites, OffSpans - OffSites, siteSize},
		{"spans", &r.Spans, OffSpans, OffMeta - OffSpans, spanSize},
		{"metadata", &r.Meta, OffMeta, OffObjects - OffMeta, 1},
		{"objects", &r.Objects, OffObjects, ObjectsLimit, 1},
	}
}

// check compares the root with what an agent can have written.
func (h *Heap) check(at uint64) error {
	r := &h.root
	if r.Version != Version {
		return fmt.Errorf("version %d of the agent's memory is not supported, only %d is", r.Version, Version)
	}
	if want := binary.Size(r); r.Size != uint32(want) {
		return fmt.Errorf("it has %d bytes where version %d has %d", r.Size, Version, want)
	}
	if r.Ready == 0 {
		return errors.New("the agent had not finished its start")
	}
	if r.Base != at || at%Unit != 0 || at >= 1<<47-OffObjects-ObjectsLimit {
		return fmt.Errorf("implausible base address %#x", r.Base)
	}
	for _, w := range h.windows() {
		if w.raw.Start != r.Base+w.offset {
			return fmt.Errorf("the window of the %s is at %#x, expected at %#x", w.name, w.raw.Start, r.Base+w.offset)
		}
		if w.raw.Mapped > w.limit || w.raw.Used > w.raw.Mapped/w.element {
			return fmt.Errorf("the window of the %s is implausible: %d used, %#x bytes mapped", w.name, w.raw.Used, w.raw.Mapped)
		}
	}
	if r.Boundary < r.Objects.Start || r.Boundary > r.Objects.Start+ObjectsLimit {
		return fmt.Errorf("implausible boundary %#x of the objects", r.Boundary)
	}
	if r.Options.FillBytes > SmallMax || r.Options.Stacks > Frames {
		return fmt.Errorf("implausible options: %d bytes of fill, %d frames", r.Options.FillBytes, r.Options.Stacks)
	}
	return nil
}

// Root is the root as it was when the heap was opened.
func (h *Heap) Root() *RawRoot { return &h.root }

// InObjects reports whether addr is in the window of the program's objects.
func (h *Heap) InObjects(addr evidence.Addr) bool {
	return uint64(addr) >= h.root.Objects.Start && uint64(addr) < h.root.Objects.Start+ObjectsLimit
}
