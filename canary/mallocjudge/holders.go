package mallocjudge

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/ptmalloc"
	"diagnose/image/value"
)

// Bounds of the search for pointers.
const (
	mostSearched = 256 << 20 // bytes
	mostHolders  = 6         // of one object that are listed
	mostCounted  = 1000      // of one object that are looked at
	searchStep   = 1 << 20
	stateSize    = 0x900 // of struct malloc_state
)

// findHolders finds the pointers to the objects of the findings: variables of frames, and words of memory.
func (j *judge) findHolders() {
	if len(j.chunks) == 0 {
		return
	}
	for _, c := range j.chunks {
		if c.State != evidence.ChunkRest {
			j.variablesOf(c)
		}
	}
	left := mostSearched
	for i := range j.Process.Mappings {
		m := &j.Process.Mappings[i]
		if !m.Writable() || !m.Readable() {
			continue
		}
		if left -= int(min(uint64(m.End-m.Start), mostSearched)); left < 0 {
			for _, c := range j.chunks {
				c.HoldersCut = true
			}
			break
		}
		j.search(m)
	}
	for _, c := range j.chunks {
		rank(c)
	}
}

// rank orders the holders and cuts the list: variables and globals tell most.
func rank(c *evidence.Chunk) {
	order := []evidence.HolderKind{evidence.HolderVariable, evidence.HolderGlobal, evidence.HolderObject, evidence.HolderStack}
	slices.SortStableFunc(c.Holders, func(a, b evidence.Holder) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(a.Offset, b.Offset))
	})
	if n := len(c.Holders) - mostHolders; n > 0 {
		c.Holders, c.FurtherHolders = c.Holders[:mostHolders], c.FurtherHolders+n
	}
}

// target returns the object that a value points into. The end of an object counts for it.
func (j *judge) target(v evidence.Addr) (*evidence.Chunk, uint64) {
	for _, c := range j.chunks {
		if v >= c.Addr && v < c.Addr+evidence.Addr(max(c.Size, 1)) && c.State != evidence.ChunkRest {
			return c, uint64(v - c.Addr)
		}
	}
	return nil, 0
}

// variablesOf adds the variables of frames that point into an object.
func (j *judge) variablesOf(c *evidence.Chunk) {
	for i := range j.Stacks {
		for k := range j.Stacks[i].Stack.Frames {
			f := &j.Stacks[i].Stack.Frames[k]
			if f.Site.Module != "" && image.LibraryCode(&f.Site) {
				continue
			}
			for _, list := range [][]evidence.Variable{f.Args, f.Locals} {
				j.variablesIn(c, f.Site.Function, "", list, 0)
			}
		}
	}
}

func (j *judge) variablesIn(c *evidence.Chunk, function, prefix string, list []evidence.Variable, depth int) {
	const deepest = 3
	for i := range list {
		v := &list[i]
		name := prefix + v.Name
		if a := v.Value.Address; a != nil {
			if *a >= c.Addr && *a < c.Addr+evidence.Addr(max(c.Size, 1)) {
				c.Holders = append(c.Holders, evidence.Holder{Kind: evidence.HolderVariable, Function: evidence.ShortName(function), Name: name, Type: v.Type, Offset: uint64(*a - c.Addr)})
			}
			continue // what it points to is in memory, which is searched
		}
		if depth < deepest {
			j.variablesIn(c, function, name+".", v.Value.Fields, depth+1)
		}
	}
}

// pointer is a word of memory that is the address of an object.
type pointer struct {
	at     evidence.Addr
	to     *evidence.Chunk
	offset uint64
}

// search looks for pointers in a mapping.
func (j *judge) search(m *image.Mapping) {
	var list []pointer
	counts := map[*evidence.Chunk]int{}
	buffer := make([]byte, min(searchStep, uint64(m.End-m.Start)))
	for at := m.Start; at < m.End; at += searchStep {
		n, _ := j.Process.ReadMemory(at, buffer[:min(searchStep, uint64(m.End-at))])
		for off := 0; off+8 <= n; off += 8 {
			v := evidence.Addr(binary.LittleEndian.Uint64(buffer[off:]))
			if v < 4096 {
				continue
			}
			if c, offset := j.target(v); c != nil && counts[c] < mostCounted {
				counts[c]++
				list = append(list, pointer{at + evidence.Addr(off), c, offset})
			}
		}
	}
	if len(list) > 0 {
		j.describePointers(list)
	}
}

// describePointers says where the pointers are. Words that malloc keeps itself are left out.
func (j *judge) describePointers(list []pointer) {
	var addrs []evidence.Addr
	for _, p := range list {
		addrs = append(addrs, p.at)
	}
	var chunks map[evidence.Addr]ptmalloc.Chunk
	if j.heap != nil {
		chunks = j.heap.AtAll(addrs)
	}
	for _, p := range list {
		h := evidence.Holder{Address: p.at, Offset: p.offset}
		c, found := chunks[p.at]
		ok := false
		other, mine := j.otherHolder(&h, &p)
		switch place := j.Process.Place(p.at); {
		case mine:
		case other:
			ok = true
		case found && !c.Top && !j.heap.IsTable(&c) && p.at >= c.User() && c.Free.List == "":
			h.Kind, h.Object, h.ObjectSize, h.ObjectOffset = evidence.HolderObject, c.User(), c.UserSize(), uint64(p.at-c.User())
			ok = h.Object != p.to.Addr
		case found, j.inArena(p.at):
		case place.Class == evidence.PlaceGlobal:
			h.Kind, ok = evidence.HolderGlobal, true
			j.nameGlobal(&h, &place)
		case place.Class == evidence.PlaceStack:
			h, ok = j.onStack(h, p.to)
		}
		if ok {
			p.to.Holders = append(p.to.Holders, h)
		}
	}
}

// inArena reports whether an address is in the state of an arena.
func (j *judge) inArena(at evidence.Addr) bool {
	if j.heap == nil {
		return false
	}
	for _, a := range j.heap.Arenas {
		if at >= a.Addr && at < a.Addr+stateSize {
			return true
		}
	}
	return false
}

// onStack describes a word of a stack that has a variable's name. Other words may be of calls that have returned.
func (j *judge) onStack(h evidence.Holder, to *evidence.Chunk) (evidence.Holder, bool) {
	if j.StackName == nil {
		return h, false
	}
	h.Kind, h.Name = evidence.HolderVariable, j.StackName(h.Address)
	for _, x := range to.Holders {
		if x.Function+"'s "+x.Name == h.Name {
			return h, false
		}
	}
	return h, h.Name != ""
}

// nameGlobal names a word of an object's data by its variable and its member, where debug information allows it.
func (j *judge) nameGlobal(h *evidence.Holder, place *evidence.Place) {
	h.Name = place.Symbol
	if h.Name == "" {
		return
	}
	m := j.Process.ModuleAt(h.Address)
	if m == nil {
		return
	}
	if info, err := m.Debug(); err == nil && info != nil {
		v, ok, err := info.GlobalAt(m.LinkAddr(h.Address-evidence.Addr(place.Offset)), 0)
		if err == nil && ok && v.Type != nil {
			h.Name = v.Name
			if path, leaf, ok := value.Path(v.Type, int64(place.Offset), 8); ok {
				h.Name += path
				if leaf != nil {
					h.Type = leaf.Name()
				}
				return
			}
		}
	}
	if place.Offset != 0 {
		h.Name += fmt.Sprintf("+%#x", place.Offset)
	}
}
