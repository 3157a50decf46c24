package image

import (
	"sort"

	"diagnose/evidence"
)

type moduleRange struct {
	addrRange
	module *Module
}

// moduleRanges are the ranges of all modules in address order, without overlaps.
type moduleRanges []moduleRange

func indexModules(modules []*Module) moduleRanges {
	var list moduleRanges
	for _, m := range modules {
		for _, r := range m.ranges {
			list = append(list, moduleRange{r, m})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].start < list[j].start })
	kept, last := list[:0], evidence.Addr(0)
	for _, r := range list {
		r.start = max(r.start, last)
		if r.start < r.end {
			kept, last = append(kept, r), r.end
		}
	}
	return kept
}

// moduleAt returns the module with a range that holds addr, nil if none does.
func (l moduleRanges) moduleAt(addr evidence.Addr) *Module {
	i := sort.Search(len(l), func(i int) bool { return l[i].end > addr })
	if i == len(l) || addr < l[i].start {
		return nil
	}
	return l[i].module
}
