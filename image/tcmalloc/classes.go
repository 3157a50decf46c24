package tcmalloc

import (
	"bytes"
	"encoding/binary"

	"diagnose/image"
	"diagnose/image/allocator"
)

// Constants of common.h.
const (
	pageShift  = 13
	pageSize   = 1 << pageShift
	classCount = 128       // kClassSizesMax
	largest    = 256 << 10 // kMaxSize
	leastBatch = 2         // of num_objects_to_move_
	mostBatch  = 1 << 16   // TCMALLOC_TRANSFER_NUM_OBJ's bound
	mostPages  = 256       // of a span of small objects
	leastCount = 20        // size classes of any build
	sizesBytes = 4 * classCount
	pagesBytes = 8 * classCount
	// mapLength is the length of num_objects_to_move_, class_to_size_, class_to_pages_ and num_size_classes
	// after the padding before the third.
	mapLength   = 2*sizesBytes + pagesBytes + 8
	mostProgram = 16 << 20 // of constants that are searched, in bytes
)

// class is a size class of small objects.
type class struct {
	// size is that of its objects in bytes, pages that of its spans, and batch how many objects the caches
	// hand over at a time.
	size  uint64
	pages uint64
	batch int
}

// capacity is how many objects a span of the class has (CentralFreeList::Populate).
func (c *class) capacity() uint64 { return c.pages * pageSize / c.size }

// findClasses finds the size classes in the data of a module (SizeMap). Class 0 is none.
func findClasses(regions []allocator.Region) ([]class, bool) {
	for i := range regions {
		r := &regions[i]
		for off := 0; off+mapLength <= len(r.Data); off += allocator.Word {
			// The tables of 32-bit numbers may begin in the middle of a word.
			for _, padding := range []int{0, 4} {
				if off < padding {
					continue
				}
				if list, ok := classesAt(r.Data[off-padding:], r.Data[off+2*sizesBytes:]); ok {
					return list, true
				}
			}
		}
	}
	return nil, false
}

// classesAt reads the tables num_objects_to_move_ and class_to_size_, which follow each other, and
// class_to_pages_ with the number of classes after it.
func classesAt(numbers, pages []byte) ([]class, bool) {
	le := binary.LittleEndian
	sizes := numbers[sizesBytes:]
	if first := le.Uint32(sizes[4:]); le.Uint32(sizes) != 0 || first != 8 && first != 16 {
		return nil, false
	}
	count := le.Uint64(pages[pagesBytes:])
	if count < leastCount || count > classCount {
		return nil, false
	}
	list := make([]class, count)
	for i := range list {
		c := class{size: uint64(le.Uint32(sizes[4*i:])), pages: le.Uint64(pages[8*i:]), batch: int(le.Uint32(numbers[4*i:]))}
		if i > 0 && (c.size <= list[i-1].size || c.size%8 != 0 || !c.possible()) {
			return nil, false
		}
		list[i] = c
	}
	return list, list[count-1].size == largest
}

// possible reports whether the numbers of a class can be those that SizeMap::Init computes.
func (c *class) possible() bool {
	return c.pages > 0 && c.pages <= mostPages && c.pages*pageSize >= c.size && c.batch >= leastBatch && c.batch <= mostBatch
}

// debugging reports whether a module has the allocator that puts headers before the objects
// (debugallocation.cc, MallocBlock): then an object does not begin where malloc's does.
func debugging(m *image.Module) bool {
	if m.Object == nil {
		return true // it cannot be told
	}
	s := m.Object.Section(".rodata")
	if s == nil {
		return true
	}
	data, err := s.Prefix(mostProgram)
	return err != nil || bytes.Contains(data, []byte("memory stomping bug"))
}
