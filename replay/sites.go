package replay

import (
	"encoding/binary"
	"io"

	"diagnose/agent"
)

// renumbering says which number an allocation site of the recording has in the
// replay. Sites are numbered as threads come to them, and when two threads come
// to new ones at once the order is no event: nothing but these numbers follows
// from it.
type renumbering struct {
	have []uint32 // by the recording's number
}

// siteBytes is sizeof(struct dg_site).
const siteBytes = 8 + 8*agent.Frames

// renumber compares two tables of sites; nil if they are equal, or have not the
// same sites.
func renumber(want, have []byte) *renumbering {
	if len(want) != len(have) || len(want)%siteBytes != 0 || string(want) == string(have) {
		return nil
	}
	// The link to the next site of a bucket is a number itself.
	content := func(table []byte, i int) string { return string(table[i*siteBytes+4 : (i+1)*siteBytes]) }
	index := map[string]uint32{}
	for i := range len(have) / siteBytes {
		index[content(have, i)] = uint32(i)
	}
	if len(index) != len(have)/siteBytes {
		return nil
	}
	r := &renumbering{}
	seen := map[uint32]bool{}
	for i := range len(want) / siteBytes {
		n, ok := index[content(want, i)]
		if !ok || seen[n] {
			return nil
		}
		seen[n] = true
		r.have = append(r.have, n)
	}
	return r
}

func (r *renumbering) number(want, have uint32) bool {
	return want == have || int(want) < len(r.have) && r.have[want] == have
}

// same reports whether two words differ in a site's number alone, which is
// either a part of a slot's word or has half of a word to itself (layout.h).
func (r *renumbering) same(want, have uint64) bool {
	const slot = agent.SiteMask << agent.WordSite
	if want&^slot == have&^slot && r.number(uint32(want&slot>>agent.WordSite), uint32(have&slot>>agent.WordSite)) {
		return true
	}
	return want>>32 == have>>32 && r.number(uint32(want), uint32(have)) ||
		uint32(want) == uint32(have) && r.number(uint32(want>>32), uint32(have>>32))
}

// sameBytes is same for all words of a run.
func (r *renumbering) sameBytes(want, have []byte) bool {
	for i := 0; i+8 <= len(want); i += 8 {
		if !r.same(binary.LittleEndian.Uint64(want[i:]), binary.LittleEndian.Uint64(have[i:])) {
			return false
		}
	}
	return len(want)%8 == 0
}

// sites reads both tables. Without an agent, or with tables that cannot be
// read, nothing is renumbered, and what differs is told.
func (v *verifier) sites() (*renumbering, span) {
	core := memoryAt{v.c.core}
	recorded, err := readStruct[agent.RawRoot](core, agent.Base)
	if err != nil {
		return nil, span{}
	}
	replayed, err := readStruct[agent.RawRoot](v.c.memory, agent.Base)
	if err != nil || recorded.Sites != replayed.Sites || recorded.Sites.Start != agent.Base+agent.OffSites || recorded.Sites.Used > agent.SiteMask+1 {
		return nil, span{}
	}
	s := span{recorded.Sites.Start, recorded.Sites.Start + recorded.Sites.Used*siteBytes}
	want, have := make([]byte, s.size()), make([]byte, s.size())
	for _, x := range []struct {
		from io.ReaderAt
		to   []byte
	}{{core, want}, {v.c.memory, have}} {
		if _, err := x.from.ReadAt(x.to, int64(s.start)); err != nil {
			return nil, span{}
		}
	}
	return renumber(want, have), s
}

// agentRange is what has the agent's words.
func agentRange(addr uint64) bool { return addr >= agent.Base && addr < agent.Base+agent.OffObjects }
