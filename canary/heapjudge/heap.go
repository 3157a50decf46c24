package heapjudge

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

// Heap is the heap of a process that ran with the agent. It resolves the heap's
// numbers and addresses in this process.
type Heap struct {
	*agent.Heap
	process *image.Process
	// library is the agent's own object; nil when it was not recognised.
	library *image.Module
	errors  []agent.Error
	// more counts the errors that the agent did not keep.
	more int
}

// rootSymbol holds the address of the agent's root.
const rootSymbol = "diagnose_agent_root"

// Open finds the agent in the process; nil without an error when there is none.
// Without the library and with nothing at the fixed addresses this costs four
// failing reads.
func Open(p *image.Process) (*Heap, error) {
	library := agentLibrary(p)
	root, errRoot := agentRoot(p, library) // if it cannot be read, the fixed addresses are tried
	heap, err := agent.Open(&forgetful{process: p}, root)
	switch {
	case err == nil:
		return &Heap{Heap: heap, process: p, library: library}, nil
	case !errors.Is(err, agent.ErrAbsent):
		return nil, fmt.Errorf("heap: %w", err)
	case errRoot != nil:
		return nil, errRoot
	case root != 0:
		return nil, fmt.Errorf("heap: the agent's library is in the process, but its memory at %v cannot be read", root)
	}
	return nil, nil
}

// forgetful is a process's memory that releases the pages it has read, because
// the judges read a whole heap.
type forgetful struct {
	process *image.Process
	read    atomic.Int64
}

// keptPages is how many bytes are read before their pages are released.
const keptPages = 64 << 20

// ReadMemory implements agent.Memory.
func (m *forgetful) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	n, err := m.process.ReadMemory(addr, p)
	if total := m.read.Add(int64(n)); total/keptPages != (total-int64(n))/keptPages {
		m.process.ForgetPages()
	}
	return n, err
}

func agentLibrary(p *image.Process) *image.Module {
	for _, m := range p.Modules {
		name := filepath.Base(m.Path)
		if strings.HasPrefix(name, agent.LibraryName) || strings.HasPrefix(name, agent.RecordLibraryName) {
			return m
		}
	}
	return nil
}

// agentRoot reads the address of the root; 0 when the library's symbols are
// not known, or when it has not started yet.
func agentRoot(p *image.Process, library *image.Module) (evidence.Addr, error) {
	if library == nil || library.Object == nil {
		return 0, nil
	}
	s, ok := library.Object.SymbolNamed(rootSymbol)
	if !ok {
		return 0, nil
	}
	root, err := image.Uint64(p, library.Addr(s.Value))
	if err != nil {
		return 0, fmt.Errorf("heap: the agent's pointer to its memory: %w", err)
	}
	return evidence.Addr(root), nil
}

// ReadErrors reads the errors that the agent found while the program ran.
func (h *Heap) ReadErrors() (err error) {
	h.errors, h.more, err = h.Errors()
	if err != nil {
		return fmt.Errorf("heap: what the agent found: %w", err)
	}
	return nil
}

// call returns which thread made a call, and from where; nil if nothing is
// known.
func (h *Heap) call(c agent.Call, does image.HeapPurpose) *evidence.HeapCall {
	if !c.Known() {
		return nil
	}
	out := &evidence.HeapCall{Stack: evidence.Stack{Frames: []evidence.Frame{}}, Thread: h.thread(c.Thread)}
	if c.Site != 0 {
		pcs, err := h.Site(c.Site)
		if err != nil {
			out.Stack.Stopped = err.Error()
		}
		h.fillStack(out, pcs, does)
	}
	return out
}

// fillStack names return addresses. The agent's own frames, the innermost
// ones, are left out.
func (h *Heap) fillStack(c *evidence.HeapCall, pcs []evidence.Addr, does image.HeapPurpose) {
	for len(pcs) > 0 && h.library != nil && h.library.Contains(image.ReturnAddress.Address(pcs[0])) {
		pcs = pcs[1:]
	}
	var wrappers []bool // by frame; those outside of the innermost place of the program's own are not looked at
	found := false
	for _, pc := range pcs {
		chain := h.process.Symbolize(pc, image.ReturnAddress)
		wraps := make([]bool, len(chain))
		if !found {
			wraps = image.WrapsHeap(h.process, pc, image.ReturnAddress, chain, does)
		}
		wrappers = append(wrappers, wraps...)
		for i, s := range chain {
			found = found || s.Site.Module != "" && !image.LibraryCode(&s.Site) && !wraps[i]
			f := evidence.Frame{Index: len(c.Stack.Frames), Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: s.Site}
			if s.Inlined {
				f.Kind = evidence.Inlined
			}
			c.Stack.Frames = append(c.Stack.Frames, f)
		}
	}
	if c.Site = programSite(c.Stack.Frames, wrappers); c.Site != nil {
		c.Stack.Frames = withoutStart(c.Stack.Frames)
	}
}

// programSite is the innermost place in the program's own code that is not just
// its wrapper of the allocator. Otherwise it is the innermost place of its own
// code, or else inlined code of a library's header, because compilers lose the
// line of the call.
func programSite(frames []evidence.Frame, wrappers []bool) *evidence.Site {
	first := func(passed func(i int, s *evidence.Site) bool) *evidence.Site {
		for i := range frames {
			if s := frames[i].Site; s.Module != "" && !passed(i, &s) {
				return &s
			}
		}
		return nil
	}
	return cmp.Or(
		first(func(i int, s *evidence.Site) bool { return image.LibraryCode(s) || wrappers[i] }),
		first(func(_ int, s *evidence.Site) bool { return image.LibraryCode(s) }),
		first(func(_ int, s *evidence.Site) bool { return image.Machinery(s) }))
}

// withoutStart removes the frames that started the thread.
func withoutStart(frames []evidence.Frame) []evidence.Frame {
	n := len(frames)
	for n > 1 && image.StartsThread(frames[n-1].Site.Function) {
		n--
	}
	return frames[:n]
}

// thread names a thread by the agent's number; nil when it is not known.
func (h *Heap) thread(n uint32) *evidence.HeapThread {
	if n == 0 {
		return nil
	}
	t, err := h.Thread(n)
	if err != nil || t.TID == 0 {
		return nil
	}
	out := &evidence.HeapThread{Ordinal: int(n), TID: t.TID, Ended: t.Ended, Parent: t.Parent}
	if !t.Ended && !t.Parent { // the kernel may reuse the thread id
		out.Ref = h.threadRef(t.TID)
	}
	return out
}

func (h *Heap) threadRef(tid int) *evidence.ThreadRef {
	for i := range h.process.Threads {
		if ref := h.process.Threads[i].Ref; ref.TID == tid {
			return &ref
		}
	}
	return nil
}

// Object converts an object to that of a report.
func (h *Heap) Object(o *agent.Object) *evidence.HeapObject {
	if o == nil || o.State == agent.Fresh {
		return nil
	}
	out := &evidence.HeapObject{Addr: o.Addr, Size: o.Size, Slot: o.Slot, SlotEnd: o.SlotEnd, State: o.State.Evidence(),
		API: o.API.String(), Allocated: h.call(o.Allocated, image.MakesMemory)}
	if o.State != agent.Live {
		out.Freed = h.call(o.Freed, image.FreesMemory)
	}
	return out
}

// ObjectNear is the object at an address, or the one that is the nearest, with the calls that made and freed it; nil: there is none. An
// error says what of it is not known.
func (h *Heap) ObjectNear(addr evidence.Addr) (*evidence.HeapObject, error) {
	near, found, err := h.Nearest(addr)
	if err != nil || !found {
		return nil, err
	}
	err = h.findFrees(&near.Object)
	return h.Object(&near.Object), err
}

// findFrees completes quarantined objects with the calls that freed them.
func (h *Heap) findFrees(objects ...*agent.Object) error {
	var list []*agent.Object
	for _, o := range objects {
		if o != nil && o.State == agent.Quarantined && !o.Freed.Known() {
			list = append(list, o)
		}
	}
	return gapsError("who freed what", h.Frees(0, list...))
}

// gapsError turns the unreadable parts into one error.
func gapsError(what string, g agent.Gaps) error {
	if g.Count == 0 {
		return nil
	}
	err := errors.New("unknown")
	if len(g.First) > 0 {
		err = g.First[0]
	}
	return fmt.Errorf("heap: %s: %s could not be read, the first: %w", what, wording.Count(uint64(g.Count), "part"), err)
}
