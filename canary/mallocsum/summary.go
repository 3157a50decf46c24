package mallocsum

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/ptmalloc"
)

// Summary sums up one heap. Its methods are called in this order: Count, Mark, Type, Leaks, List.
type Summary struct {
	// Most bounds the sizes, types, objects and leaks listed; 0 lists all sizes, types and leaks.
	Most int
	// Variables are those of the frames, for the types of objects; nil: there are none.
	Variables func() []Value
	// StackName names an address on a stack by its variable; empty: it is not known. nil: none is.
	StackName func(evidence.Addr) string

	// Out is the summary, and Limits describe what it could not cover.
	Out    evidence.Heap
	Limits []evidence.Limit

	process  *image.Process
	heap     *ptmalloc.Heap
	count    *count
	table    *table
	searcher *searcher
	held     []pointer
	// missing and unwritten are the memory that was not searched, in bytes: see roots.
	missing, unwritten uint64

	typing  *typing
	globals *globals
}

// New begins the summary of a process's heap. It returns an error if the process has no heap of glibc's, or none whose layout is certain.
func New(p *image.Process) (*Summary, error) {
	h, err := ptmalloc.Open(p)
	if err != nil {
		return nil, err
	}
	m := &evidence.MallocHeap{Sizes: []evidence.MallocSize{}, Types: []evidence.MallocType{}, Largest: []evidence.MallocObject{}}
	if m.Library = h.Module().Path; h.Version > 0 {
		m.Version = fmt.Sprintf("2.%d", h.Version)
	}
	return &Summary{process: p, heap: h, Out: evidence.Heap{Malloc: m, Sites: []evidence.HeapSite{}}}, nil
}

// Count counts the objects and the free memory.
func (s *Summary) Count() error {
	s.count = countChunks(s.heap)
	m := s.Out.Malloc
	m.Arenas = s.count.arenas
	m.Mapped = s.count.mapped
	for i := range m.Arenas {
		s.Out.MappedBytes += m.Arenas[i].SystemBytes
	}
	s.Out.MappedBytes += s.count.mappedMemory
	s.table = newTable(s.count.live)
	s.count.live = nil
	for i := range s.table.objects {
		o := &s.table.objects[i]
		s.Out.LiveObjects++
		s.Out.LiveBytes += o.size
		if o.mapped {
			m.MappedBytes += o.size
		}
	}
	s.Out.Damaged = s.count.gaps
	if s.count.gaps > 0 {
		s.limit(evidence.Limit{Code: evidence.LimitHeapDamaged, Count: s.count.gaps, Severe: true})
	}
	if s.count.cut || s.heap.Cut {
		s.limit(evidence.Limit{Code: evidence.LimitHeapObjects, Count: s.Out.LiveObjects, Severe: true})
	}
	s.listSizes()
	return s.count.unread
}

func (s *Summary) limit(l evidence.Limit) { s.Limits = append(s.Limits, l.Worded()) }

// Mark finds the objects that can be reached.
func (s *Summary) Mark() error {
	s.searcher = &searcher{memory: s.process, table: s.table, buffer: make([]byte, searchStep)}
	r := findRoots(s.process, s.count.spans)
	m := &marker{searcher: s.searcher}
	m.mark(s.process, &r)
	s.held, s.missing, s.unwritten = m.held, r.missing+s.searcher.unread, r.unwritten
	return nil
}

// Type gives the objects types.
func (s *Summary) Type() error {
	s.typing = newTyping(s.process, s.table)
	s.globals = newGlobals(s.process)
	s.typing.typeClasses()
	s.typing.typeGlobals(s.globals, s.held)
	s.typing.typeThreadLocals(s.held)
	if s.Variables != nil {
		s.typing.values(s.Variables())
	}
	s.typing.typeTexts()
	s.listTypes()
	return nil
}

// doubt is why it is not known which objects are unreachable; empty: it is.
func (s *Summary) doubt() string {
	switch {
	case s.count.gaps > 0:
		return "headers of the heap are overwritten"
	case s.count.unread != nil:
		return "parts of the heap cannot be read"
	case s.count.cut || s.heap.Cut || s.searcher.cut:
		return "there is too much memory to search"
	case len(s.heap.BadLinks) > 0:
		return "lists of free memory are overwritten"
	case s.heap.Unlisted > 0:
		return "the lists of free memory of some threads are not known"
	case slices.ContainsFunc(s.heap.Arenas, func(a *ptmalloc.Arena) bool { return len(a.Segments) == 0 }):
		return "the memory of an arena was not found"
	case s.truncated():
		return "the core is cut, or lacks threads or objects"
	}
	return ""
}

// truncated reports whether the process's source is a core that may lack anything.
func (s *Summary) truncated() bool {
	return evidence.LimitOf(s.process.AllLimits(), evidence.LimitTruncated, evidence.LimitManyObjects, evidence.LimitThreadRuns) != nil
}

// Leaks finds the objects that no pointer leads to.
func (s *Summary) Leaks() error {
	reason := s.doubt()
	if reason == "" {
		l := findLeaks(s.searcher)
		if s.searcher.cut {
			reason = "there is too much memory to search"
		} else {
			s.Out.Malloc.Leaks = l.summary(s.typing, s.Most)
		}
	}
	if reason != "" {
		s.limit(evidence.Limit{Code: evidence.LimitLeaks, Reason: reason})
		return nil
	}
	out := s.Out.Malloc.Leaks
	for i := range s.table.objects {
		if o := &s.table.objects[i]; o.reach == inner {
			out.Interior++
			out.InteriorBytes += o.size
		}
	}
	out.Missing, out.Unwritten = s.missing, s.unwritten
	if s.missing > 0 && out.Direct > 0 {
		s.limit(evidence.Limit{Code: evidence.LimitMissingMemory, Count: s.missing, Severe: true})
	}
	if s.unwritten > 0 && out.Direct > 0 {
		s.limit(evidence.Limit{Code: evidence.LimitUnwrittenMemory, Count: s.unwritten})
	}
	return nil
}

func (s *Summary) listSizes() {
	counts := map[uint64]uint64{}
	for i := range s.table.objects {
		counts[s.table.objects[i].size]++
	}
	m := s.Out.Malloc
	for size, n := range counts {
		m.Sizes = append(m.Sizes, evidence.MallocSize{Size: size, Objects: n, Bytes: n * size})
	}
	slices.SortFunc(m.Sizes, func(x, y evidence.MallocSize) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Size, y.Size))
	})
	m.Sizes, m.SizesElided = cut(m.Sizes, s.Most)
}

func (s *Summary) listTypes() {
	list := make([]evidence.MallocType, len(s.typing.kinds))
	for i, k := range s.typing.kinds {
		list[i].MallocKind = k
	}
	for i := range s.table.objects {
		o := &s.table.objects[i]
		t := &list[o.kind]
		t.Objects++
		t.Bytes += o.size
		t.Largest = max(t.Largest, o.size)
	}
	list = slices.DeleteFunc(list, func(t evidence.MallocType) bool { return t.Objects == 0 })
	slices.SortStableFunc(list, func(x, y evidence.MallocType) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Name, y.Name))
	})
	m := s.Out.Malloc
	m.Types, m.TypesElided = cut(append(m.Types, list...), s.Most)
}

// cut keeps the first elements of a list, 0: all, and returns how many were left out.
func cut[T any](list []T, most int) ([]T, int) {
	if most == 0 || len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}
