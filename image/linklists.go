package image

import (
	"debug/elf"
	"errors"
	"fmt"

	"diagnose/evidence"
)

// LinkedObject is an object in a list of the dynamic linker: a struct link_map (link.h).
type LinkedObject struct {
	// Node is where the struct link_map is, Bias l_addr and Dynamic l_ld.
	Node, Bias, Dynamic evidence.Addr
	// Name is l_name, empty for the executable.
	Name string
	// List is the struct r_debug of its namespace. That of the executable's is the first.
	List evidence.Addr
}

// LinkedObjects returns the lists of loaded objects as the dynamic linker has them at this moment, those of dlmopen, too. It has none before it
// has begun, and in programs that are statically linked. auxv is the program's auxiliary vector. Lists that cannot be read to their ends are
// errors.
func LinkedObjects(m Memory, auxv []byte) ([]LinkedObject, error) {
	list, err := firstList(m, parseAuxv(auxv))
	if err != nil {
		return nil, fmt.Errorf("list of libraries: %w", err)
	}
	var objects []LinkedObject
	seen := map[evidence.Addr]bool{}
	for list != 0 && !seen[list] && len(objects) < mostLinks {
		seen[list] = true
		var next evidence.Addr
		if objects, next, err = appendList(m, list, objects); err != nil {
			return nil, fmt.Errorf("list of libraries: %w", err)
		}
		list = next
	}
	return objects, nil
}

// firstList returns where the executable's struct r_debug is; 0: there is none.
func firstList(m Memory, auxv map[uint64]uint64) (evidence.Addr, error) {
	table := auxv[auxPHDR]
	if table == 0 {
		return 0, errors.New("the auxiliary vector has no program headers")
	}
	image, err := readProgramHeaders(m, evidence.Addr(table), int(min(auxv[auxPHNUM], mostHeaders)))
	switch {
	case err != nil:
		return 0, err
	case image.dynamic == 0:
		return 0, nil
	case image.headerTable == 0:
		return 0, errors.New("the program headers do not say where they are")
	}
	list, found, err := findDynamic(m, evidence.Addr(table-image.headerTable+image.dynamic), uint64(elf.DT_DEBUG))
	if err != nil || !found {
		return 0, err
	}
	return evidence.Addr(list), nil
}

// appendList appends the objects of one struct r_debug, and returns the next one.
func appendList(m Memory, list evidence.Addr, objects []LinkedObject) ([]LinkedObject, evidence.Addr, error) {
	const (
		rMap     = 8 // offsets in struct r_debug, and in struct r_debug_extended, which version 2 has
		rNext    = 40
		extended = 2
	)
	version, err := Uint64(m, list)
	if err != nil {
		return nil, 0, err
	}
	node, err := Uint64(m, list+rMap)
	if err != nil {
		return nil, 0, err
	}
	seen := map[evidence.Addr]bool{}
	for at := evidence.Addr(node); at != 0; {
		if seen[at] || len(objects) == mostLinks {
			return nil, 0, fmt.Errorf("that at %v has no end", list)
		}
		seen[at] = true
		e, text, next, err := readLink(m, at)
		if err != nil {
			return nil, 0, err
		}
		if text != 0 {
			name, whole, err := CString(m, text, longestPath)
			if err != nil {
				return nil, 0, fmt.Errorf("the name in the link_map at %v: %w", at, err)
			}
			if !whole {
				return nil, 0, fmt.Errorf("the name in the link_map at %v has no end", at)
			}
			e.name = name
		}
		objects = append(objects, LinkedObject{Node: at, Bias: evidence.Addr(e.bias), Dynamic: e.dynamic, Name: e.name, List: list})
		at = next
	}
	if uint32(version) < extended {
		return objects, 0, nil
	}
	next, err := Uint64(m, list+rNext)
	return objects, evidence.Addr(next), err
}
