package watchtrace

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
)

var heapForm = regexp.MustCompile(`^([\w:\[\] ]+)@([^@#]+):([0-9]+)(?:#([0-9]+))?(?:\+(0x[0-9a-fA-F]+|[0-9]+))?(?::([0-9]+))?$`)

// resolveHeap finds the n-th object, by address, of those that were allocated
// at a line and are in memory at the end, including freed ones.
func resolveHeap(p *image.Process, expr string, m []string) ([]Target, error) {
	fail := func(problem string, nearest ...string) ([]Target, error) {
		return nil, &NameError{Expr: expr, Problem: problem, Nearest: nearest}
	}
	line, _ := strconv.Atoi(m[3])
	number, err := 0, error(nil)
	if m[4] != "" {
		if number, err = strconv.Atoi(m[4]); err != nil || number < 1 {
			return fail("objects are counted from 1")
		}
	}
	heap, err := OpenHeap(p)
	if err != nil {
		return fail(err.Error())
	}
	objects, lines, err := allocatedAt(p, heap, m[2], line)
	if err != nil {
		return fail(err.Error())
	}
	at := fmt.Sprintf("%s:%d", m[2], line)
	switch {
	case len(objects) == 0:
		return fail("nothing that is in memory at the end was allocated at "+at, Nearest(at, lines)...)
	case number == 0 && len(objects) > 1:
		return fail(fmt.Sprintf("%d objects that were allocated there are in memory at the end; %s@%s#1 is the first, by address", len(objects), m[1], at))
	case number > len(objects):
		return fail(fmt.Sprintf("%d objects that were allocated at %s are in memory at the end", len(objects), at))
	}
	number = max(number, 1)
	o := objects[number-1]
	t := Target{Name: fmt.Sprintf("%s@%s#%d", m[1], at, number), Addr: o.Addr, Size: int(min(o.Size, 1<<30)),
		Identity: evidence.Identity{Kind: evidence.IdentityHeap, Name: m[1], Site: &evidence.Site{File: m[2], Line: line}, Addr: o.Addr}}
	t.Group = t.Name
	if m[5] != "" {
		offset, err := strconv.ParseUint(m[5], 0, 30)
		if err != nil || offset >= o.Size {
			return fail(fmt.Sprintf("the object has %d bytes", o.Size))
		}
		t.Name += fmt.Sprintf("+%#x", offset)
		t.Identity.Path = []evidence.PathStep{{Offset: &offset}}
		t.Addr += evidence.Addr(offset)
		t.Size -= int(offset)
	}
	if m[6] != "" {
		if t.Size, err = strconv.Atoi(m[6]); err != nil || t.Size < 1 {
			return fail("the length is no number of bytes")
		}
		t.Name += ":" + m[6]
	}
	return []Target{t}, nil
}

// rootSymbol holds the address of the agent's root.
const rootSymbol = "diagnose_agent_root"

// OpenHeap finds the agent's heap in a recorded process. The error says why it is not known.
func OpenHeap(p *image.Process) (*agent.Heap, error) {
	root := evidence.Addr(0)
	if s, found := p.SymbolNamed(rootSymbol); found {
		value, err := image.Uint64(p, s.Addr)
		if err != nil {
			return nil, fmt.Errorf("the heap cannot be found: %w", err)
		}
		root = evidence.Addr(value)
	}
	h, err := agent.Open(p, root)
	if errors.Is(err, agent.ErrAbsent) {
		return nil, errors.New("nothing is known of the heap: the program ran without the agent")
	}
	return h, err
}

// allocatedAt returns the objects of a line in the order of their addresses;
// lines are the lines that allocated other objects.
func allocatedAt(p *image.Process, h *agent.Heap, file string, line int) (objects []agent.Object, lines []string, err error) {
	wanted := fmt.Sprintf("%s:%d", file, line)
	return allocatedBy(p, h, func(at string) bool { return at == wanted || strings.HasSuffix(at, "/"+wanted) })
}

// allocatedBy returns the objects of the wanted lines, in the order of their addresses;
// lines are all lines that allocated objects.
func allocatedBy(p *image.Process, h *agent.Heap, wanted func(line string) bool) (objects []agent.Object, lines []string, err error) {
	var mu sync.Mutex
	sites := map[uint32]string{}
	siteOf := func(n uint32) string {
		mu.Lock()
		defer mu.Unlock()
		text, known := sites[n]
		if !known {
			text = allocationLine(p, h, n)
			sites[n] = text
		}
		return text
	}
	gaps := h.Scan(0, func(_ int, b *agent.Batch) error {
		for i := range b.Len() {
			call := b.Call(i)
			if !call.Known() {
				continue
			}
			if wanted(siteOf(call.Site)) {
				o := b.Object(i)
				mu.Lock()
				objects = append(objects, o)
				mu.Unlock()
			}
		}
		return nil
	})
	if gaps.Count > 0 {
		return nil, nil, fmt.Errorf("%d places of the heap cannot be read", gaps.Count)
	}
	for _, at := range sites {
		if at != "" {
			lines = append(lines, filepath.Base(at))
		}
	}
	slices.SortFunc(objects, func(a, b agent.Object) int { return cmp.Compare(a.Addr, b.Addr) })
	return objects, lines, nil
}

// allocationLine returns the innermost line of the program's own code of an
// allocation; empty if there is none, or if a runtime of OpenMP allocated the object for itself.
func allocationLine(p *image.Process, h *agent.Heap, site uint32) string {
	pcs, err := h.Site(site)
	if err != nil {
		return ""
	}
	for _, pc := range pcs {
		for _, call := range p.Symbolize(pc, image.ReturnAddress) {
			if image.OpenMPModule(call.Site.Module) {
				return ""
			}
			if !image.LibraryCode(&call.Site) && call.Site.Line != 0 {
				return fmt.Sprintf("%s:%d", call.Site.File, call.Site.Line)
			}
		}
	}
	return ""
}
