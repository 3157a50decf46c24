package debuginfo

import (
	"cmp"
	"slices"
	"sort"
	"sync"
)

// unitIndex holds the known units of a source. The chain of unit headers is
// followed on demand; units that were found by an address are known before the
// chain reaches them.
type unitIndex struct {
	mu         sync.Mutex
	chains     map[sectionID]*unitChain // of .debug_info and .debug_types
	direct     []*unit                  // of .debug_info, by offset
	signatures map[uint64]*unit         // the type units of the chains
	work       *budget                  // for the abbreviations of root DIEs
}

// unitChain is the units of a section up to the offset next.
type unitChain struct {
	units []*unit
	next  uint64
	ended bool
	err   error // why there is no unit at all
}

func (x *unitIndex) init() {
	x.chains = map[sectionID]*unitChain{secInfo: {}, secTypes: {}}
	x.signatures = map[uint64]*unit{}
}

// maxAbbrevWork bounds the part of .debug_abbrev that the budget follows.
const maxAbbrevWork = 16 << 20

// extend follows the chain of a section up to an offset. A unit that cannot be
// read is kept with its error; a broken chain of headers ends at the break. The
// caller holds mu.
func (s *source) extend(id sectionID, limit uint64) *unitChain {
	c := s.index.chains[id]
	for !c.ended && c.next < limit {
		if c.next >= s.sizeOf(id) {
			c.ended = true
			if _, err := s.upTo(id, 0); err != nil {
				c.err = err
			}
			break
		}
		u, next, err := s.readHeader(id, c.next)
		if err != nil {
			c.ended = true
			if len(c.units) == 0 {
				c.err = err
			} else {
				s.info.problem(err)
			}
			break
		}
		if c.next = next; u == nil {
			continue
		}
		if i, ok := s.index.directAt(u.offset); ok && id == secInfo {
			u = s.index.direct[i]
		} else {
			s.readUnit(u)
		}
		c.units = append(c.units, u)
		if u.kind == utType || u.kind == utSplitType {
			s.index.signatures[u.signature] = u
		}
	}
	return c
}

// readUnit reads a unit's root DIE. The caller holds mu.
func (s *source) readUnit(u *unit) {
	if s.index.work == nil {
		s.index.work = &budget{left: maxAbbrevWork + 64*int(min(s.sizeOf(secAbbrev), maxAbbrevWork))}
	}
	if u.broken = u.readRoot(s.index.work); u.broken != nil {
		s.info.problem(u.broken)
	}
}

// probe returns the reason why a source has no units at all.
func (s *source) probe() error {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.extend(secInfo, 1).err
}

const wholeSection = ^uint64(0)

// units returns all units, those of .debug_info first.
func (s *source) units() ([]*unit, error) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	infos, types := s.extend(secInfo, wholeSection), s.extend(secTypes, wholeSection)
	if infos.err != nil {
		return nil, infos.err
	}
	if types.err != nil && len(infos.units) == 0 {
		return nil, types.err
	}
	if len(types.units) == 0 {
		return infos.units, nil
	}
	return append(infos.units[:len(infos.units):len(infos.units)], types.units...), nil
}

// typeUnit returns the type unit with a signature, nil if there is none.
func (s *source) typeUnit(signature uint64) (*unit, error) {
	if _, err := s.units(); err != nil {
		return nil, err
	}
	s.index.mu.Lock()
	u := s.index.signatures[signature]
	s.index.mu.Unlock()
	if u == nil && s.view != nil {
		return s.view.typeUnit(signature)
	}
	return u, nil
}

// unitAt returns the unit of .debug_info that holds an offset past its header;
// nil if none does.
func (s *source) unitAt(offset uint64) (*unit, error) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	i, _ := s.index.directAt(offset)
	if i > 0 && offset >= s.index.direct[i-1].first && offset < s.index.direct[i-1].end {
		return s.index.direct[i-1], nil
	}
	if offset >= s.sizeOf(secInfo) {
		return nil, nil
	}
	c := s.extend(secInfo, offset+1)
	i = sort.Search(len(c.units), func(i int) bool { return c.units[i].end > offset })
	if i == len(c.units) {
		return nil, c.err
	}
	if offset < c.units[i].first {
		return nil, nil
	}
	return c.units[i], nil
}

// unitCovering returns the unit of .debug_info that starts at an offset if its
// own entry says that it covers pc; nil if there is no such unit.
func (s *source) unitCovering(offset, pc uint64) *unit {
	u, known := s.known(offset)
	if u == nil && !known {
		var err error
		if u, _, err = s.readHeader(secInfo, offset); err != nil {
			return nil
		}
	}
	if u == nil {
		return nil
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if !known {
		if i, ok := s.index.directAt(offset); ok {
			u = s.index.direct[i] // another goroutine was faster
		} else if s.readUnit(u); u.covers(pc) {
			s.index.direct = slices.Insert(s.index.direct, i, u)
		}
	}
	if !u.covers(pc) {
		return nil
	}
	return u
}

// covers reports whether a unit's root DIE claims an address.
func (u *unit) covers(pc uint64) bool {
	if !u.hasCode() {
		return false
	}
	ranges, err := u.rootRanges()
	return err == nil && slices.ContainsFunc(ranges, func(r [2]uint64) bool { return pc >= r[0] && pc < r[1] })
}

// known returns the unit that starts at an offset; known is true if the chain
// of headers or an address has already reached it.
func (s *source) known(offset uint64) (u *unit, known bool) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if i, ok := s.index.directAt(offset); ok {
		return s.index.direct[i], true
	}
	c := s.index.chains[secInfo]
	i := sort.Search(len(c.units), func(i int) bool { return c.units[i].offset >= offset })
	if i < len(c.units) && c.units[i].offset == offset {
		return c.units[i], true
	}
	return nil, c.ended || offset < c.next
}

// found returns the units that were found by an address, or their split units.
func (s *source) found() []*unit {
	s.index.mu.Lock()
	list := slices.Clone(s.index.direct)
	s.index.mu.Unlock()
	for i, u := range list {
		if full, err := u.splitUnit(); err == nil && full != nil {
			list[i] = full
		}
	}
	return list
}

// directAt returns the index of an offset among the direct units.
func (x *unitIndex) directAt(offset uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.direct, offset, func(u *unit, offset uint64) int { return cmp.Compare(u.offset, offset) })
}
