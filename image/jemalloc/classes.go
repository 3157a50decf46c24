package jemalloc

import (
	"diagnose/image/allocator"
)

// Constants of the size classes (sc.h).
const (
	pageShift  = 12
	pageSize   = 1 << pageShift
	groupShift = 2 // SC_LG_NGROUP
	tinyShift  = 3 // SC_LG_TINY_MIN
	// largestShift bounds the classes that are computed: those of larger objects than a process can have.
	largestShift = 47
	// smallEnd is the first size that is not in slabs (SC_LARGE_MINCLASS).
	smallEnd = 1 << (pageShift + groupShift)
)

// quanta are the logarithms of the alignments that jemalloc is built for on x86-64: 4, and 3 as redis
// builds its own copy.
var quanta = []int{4, 3}

// classes are the size classes.
type classes struct {
	// sizes are those of the classes, in bytes, by index. The first bins ones are in slabs.
	sizes []uint64
	bins  int
	// none is the index that stands for no class (SC_NSIZES).
	none int
}

// classesOf computes the size classes of a quantum (sc.c, size_classes).
func classesOf(quantum int) classes {
	const group, baseMax = 1 << groupShift, 64 - 2 // SC_NGROUP, SC_LG_BASE_MAX
	c := classes{none: quantum - tinyShift + group + group*(baseMax-quantum-groupShift+1) - 1}
	for shift := tinyShift; shift < quantum; shift++ {
		c.sizes = append(c.sizes, 1<<shift)
	}
	for i := range uint64(group) {
		c.sizes = append(c.sizes, (i+1)<<quantum)
	}
	for base := quantum + groupShift; base < largestShift; base++ {
		for i := range uint64(group) {
			c.sizes = append(c.sizes, 1<<base+(i+1)<<(base-groupShift))
		}
	}
	for c.sizes[c.bins] < smallEnd {
		c.bins++
	}
	return c
}

// tableLength is how many entries of sz_index2size_tab are compared.
const tableLength = 100

// findClasses finds jemalloc's own table of size classes in its data (sz.c, sz_index2size_tab) and so
// which quantum it is built with.
func findClasses(regions []allocator.Region) (classes, bool) {
	for _, q := range quanta {
		c := classesOf(q)
		for i := range regions {
			if c.in(&regions[i]) {
				return c, true
			}
		}
	}
	return classes{}, false
}

// in reports whether a region has the table.
func (c *classes) in(r *allocator.Region) bool {
	for off := 0; off+tableLength*allocator.Word <= len(r.Data); off += allocator.Word {
		n := 0
		for n < tableLength && r.Word(off+n*allocator.Word) == c.sizes[n] {
			n++
		}
		if n == tableLength {
			return true
		}
	}
	return false
}
