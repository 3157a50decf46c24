package debuginfo

import (
	"errors"
	"sort"
	"sync"
	"sync/atomic"

	"diagnose/image/object"
)

// Info is the DWARF of one object. It is safe for concurrent use.
type Info struct {
	finder *object.Finder
	main   *source
	// covered maps addresses to units; unranged units tell their addresses
	// only by their functions.
	covered  []unitRange
	unranged []*unit
	// rawStatics are places that look like a variable's static address.
	rawStatics func() ([]rawStatic, error)
	// searched counts the bytes that were searched for names.
	searched atomic.Int64

	mu       sync.Mutex
	problems []error
	owned    []*object.File // opened here: alternate and split files
	splits   map[string]*source
	types    map[typeKey]*dieType
	named    map[string]*typeLookup
}

// unitRange is an address range of a unit. reach is the highest end among
// this and all lower ranges, which bounds the search among overlapping ones.
type unitRange struct {
	low, high, reach uint64
	unit             *unit
}

// Open indexes the DWARF of debug, found by finder, which also resolves dwz
// alternate and split files; nil leaves them unresolved. Errors are
// *object.FormatError, or those of reading the sections. What is unreadable
// in an index that is otherwise usable is told by Problems.
func Open(debug *object.File, finder *object.Finder) (*Info, error) {
	i := &Info{finder: finder, splits: map[string]*source{},
		types: map[typeKey]*dieType{}, named: map[string]*typeLookup{}}
	i.main = newSource(i, debug, false)
	i.rawStatics = sync.OnceValues(i.scanStatics)
	wait := i.prefetch()
	err := i.main.index()
	wait()
	if err != nil {
		return nil, err
	}
	i.coverUnits()
	return i, nil
}

// prefetch reads the sections that every question needs, side by side:
// decompression is most of what opening a large object costs. The function
// returned waits for them, as the caller may close the object later.
func (i *Info) prefetch() (wait func()) {
	var group sync.WaitGroup
	for _, id := range []sectionID{secAbbrev, secRanges, secRnglists, secLine, secStr, secLineStr, secLoclists, secLoc} {
		group.Go(func() { i.main.section(id) })
	}
	return group.Wait
}

// Problems returns what was found unreadable so far: units that are missing
// from the index, for one.
func (i *Info) Problems() []error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]error(nil), i.problems...)
}

// maxProblems bounds what a hostile file can make us remember.
const maxProblems = 100

func (i *Info) problem(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.problems) < maxProblems {
		i.problems = append(i.problems, err)
	}
}

func (i *Info) own(f *object.File) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.owned = append(i.owned, f)
}

// Close releases what Open and the lookups opened besides Open's arguments.
func (i *Info) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	for _, f := range i.owned {
		errs = append(errs, f.Close())
	}
	i.owned = nil
	return errors.Join(errs...)
}

// maxCovered bounds the ranges of all units together.
const maxCovered = 1 << 22

func (i *Info) coverUnits() {
	for _, u := range i.main.units {
		if u.broken != nil || u.section != secInfo || u.kind != utCompile && u.kind != utSkeleton {
			continue
		}
		ranges, err := u.rootRanges()
		if err != nil {
			i.problem(err)
		}
		if len(ranges) == 0 {
			i.unranged = append(i.unranged, u)
		}
		for _, r := range ranges {
			i.covered = append(i.covered, unitRange{low: r[0], high: r[1], unit: u})
		}
		if len(i.covered) > maxCovered {
			i.problem(u.src.unsupported("more address ranges than are indexed"))
			break
		}
	}
	sort.SliceStable(i.covered, func(a, b int) bool { return i.covered[a].low < i.covered[b].low })
	reach := uint64(0)
	for n := range i.covered {
		reach = max(reach, i.covered[n].high)
		i.covered[n].reach = reach
	}
}

func (u *unit) rootRanges() ([][2]uint64, error) {
	if u.root.ranges.form != 0 {
		return rangeList(u.root.ranges)
	}
	if u.root.low.form == 0 || u.root.high.form == 0 {
		return nil, nil
	}
	return lowHigh(u.root.low, u.root.high)
}

// maxOverlap bounds the units that are tried for one address.
const maxOverlap = 64

// unitsAt returns the units that say they cover pc, in the order of the
// section. The linker keeps one copy of a template's function, but may let
// the debug information of the copies it dropped point to that one; gdb
// takes the first unit that claims an address.
func (i *Info) unitsAt(pc uint64) []*unit {
	var list []*unit
	n := sort.Search(len(i.covered), func(n int) bool { return i.covered[n].low > pc })
	for tried := 0; n > 0 && i.covered[n-1].reach > pc && tried < 4096 && len(list) < maxOverlap; tried++ {
		n--
		if pc < i.covered[n].high {
			list = append(list, i.covered[n].unit)
		}
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].offset < list[b].offset })
	return list
}

// place is where an address is: the unit and, if one covers it, the function.
type place struct {
	unit     *unit // the split one, where there is one
	home     *unit
	function uint64
	found    bool
}

// placeAt finds the unit of pc and the function within it. A unit that
// covers pc without a function, such as an assembler's, is a place as well.
func (i *Info) placeAt(pc uint64) (place, error) {
	var best place
	var firstErr error
	for _, home := range i.unitsAt(pc) {
		p, err := home.placeOf(pc)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		if err == nil && p.found {
			return p, nil
		}
		if best.unit == nil {
			best = place{unit: home, home: home}
		}
	}
	if best.unit != nil {
		return best, firstErr
	}
	for _, home := range i.unranged {
		p, err := home.placeOf(pc)
		if err == nil && p.found {
			return p, nil
		}
	}
	return place{}, firstErr
}

func (u *unit) placeOf(pc uint64) (place, error) {
	full, splitErr := u.splitUnit()
	if splitErr != nil || full == nil {
		full = u
	}
	table, err := full.table()
	if err != nil {
		return place{}, err
	}
	die, ok := table.functionAt(pc)
	if !ok && splitErr != nil {
		return place{}, splitErr
	}
	return place{unit: full, home: u, function: die, found: ok}, nil
}
