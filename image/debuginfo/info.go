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
	// aranges are the entries of .debug_aranges.
	aranges func() []arange
	// coverage is built from all units, for addresses that aranges does not
	// list.
	coverage func() (*coverage, error)
	// rawStatics are places that look like a variable's static address.
	rawStatics func() ([]rawStatic, error)
	// pack is the .dwp file next to the object; nil when there is none.
	pack func() (*dwarfPackage, error)
	// searched counts the bytes that were searched for names.
	searched atomic.Int64

	mu       sync.Mutex
	problems []error
	owned    []*object.File // opened here: alternate and split files
	splits   map[string]*source
	types    map[typeKey]*dieType
	named    map[string]*typeLookup
}

// coverage maps addresses to units; the addresses of unranged units are known
// only from their functions.
type coverage struct {
	ranges   []unitRange // by low
	unranged []*unit
}

// unitRange is an address range of a unit. reach is the highest end among
// this and all lower ranges, which bounds the search among overlapping ones.
type unitRange struct {
	low, high, reach uint64
	unit             *unit
}

// Open reads the DWARF of debug, found by finder, which also resolves dwz
// alternate and split files; nil leaves them unresolved. Errors are
// *object.FormatError, or those of reading the sections. Problems lists the
// unreadable parts of DWARF that is otherwise usable.
func Open(debug *object.File, finder *object.Finder) (*Info, error) {
	i := newInfo(debug, finder)
	if err := i.main.probe(); err != nil {
		return nil, err
	}
	return i, nil
}

func newInfo(debug *object.File, finder *object.Finder) *Info {
	i := &Info{finder: finder, splits: map[string]*source{},
		types: map[typeKey]*dieType{}, named: map[string]*typeLookup{}}
	i.main = newSource(i, debug, false)
	i.rawStatics = sync.OnceValues(i.scanStatics)
	i.pack = sync.OnceValues(i.openPackage)
	i.aranges = sync.OnceValue(i.readAranges)
	i.coverage = sync.OnceValues(i.coverUnits)
	return i
}

// prefetch reads, in parallel, the sections that a search of all units needs:
// most of the cost is decompression. The function returned waits for them, as
// the caller may close the object later.
func (i *Info) prefetch() (wait func()) {
	var group sync.WaitGroup
	for _, id := range []sectionID{secAbbrev, secRanges, secRnglists, secLine, secStr, secLineStr, secLoclists, secLoc} {
		group.Go(func() { i.main.section(id) })
	}
	return group.Wait
}

// Problems returns the parts that were found unreadable so far, such as units
// that are missing from the index.
func (i *Info) Problems() []error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]error(nil), i.problems...)
}

// maxProblems bounds the errors kept for a hostile file.
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

// hasCode reports whether the unit may have functions.
func (u *unit) hasCode() bool {
	return u.broken == nil && u.section == secInfo && (u.kind == utCompile || u.kind == utSkeleton)
}

func (i *Info) coverUnits() (*coverage, error) {
	defer i.prefetch()()
	units, err := i.main.units()
	if err != nil {
		return nil, err
	}
	c := &coverage{}
	for _, u := range units {
		if !u.hasCode() {
			continue
		}
		ranges, err := u.rootRanges()
		if err != nil {
			i.problem(err)
		}
		if len(ranges) == 0 {
			c.unranged = append(c.unranged, u)
		}
		for _, r := range ranges {
			c.ranges = append(c.ranges, unitRange{low: r[0], high: r[1], unit: u})
		}
		if len(c.ranges) > maxCovered {
			i.problem(u.src.unsupported("more address ranges than are indexed"))
			break
		}
	}
	sort.SliceStable(c.ranges, func(a, b int) bool { return c.ranges[a].low < c.ranges[b].low })
	reach := uint64(0)
	for n := range c.ranges {
		reach = max(reach, c.ranges[n].high)
		c.ranges[n].reach = reach
	}
	return c, nil
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
// section. The linker keeps one copy of a template's function, but the debug
// information of the dropped copies may point to it too. gdb takes the first
// unit that claims an address.
func (c *coverage) unitsAt(pc uint64) []*unit {
	var list []*unit
	n := sort.Search(len(c.ranges), func(n int) bool { return c.ranges[n].low > pc })
	for tried := 0; n > 0 && c.ranges[n-1].reach > pc && tried < 4096 && len(list) < maxOverlap; tried++ {
		n--
		if pc < c.ranges[n].high {
			list = append(list, c.ranges[n].unit)
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
	if low, high := i.extent(); pc < low || pc >= high {
		return place{}, nil
	}
	if units := i.listedAt(pc); len(units) > 0 {
		return firstPlace(units, pc)
	}
	c, err := i.coverage()
	if err != nil {
		return place{}, err
	}
	if p, err := firstPlace(c.unitsAt(pc), pc); p.unit != nil || err != nil {
		return p, err
	}
	for _, home := range c.unranged {
		p, err := home.placeOf(pc)
		if err == nil && p.found {
			return p, nil
		}
	}
	return place{}, nil
}

// firstPlace returns the first of units with a function at pc, or else the
// first of them.
func firstPlace(units []*unit, pc uint64) (place, error) {
	var firstErr error
	for _, home := range units {
		p, err := home.placeOf(pc)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		if err == nil && p.found {
			return p, nil
		}
	}
	if len(units) == 0 {
		return place{}, nil
	}
	return place{unit: units[0], home: units[0]}, firstErr
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
