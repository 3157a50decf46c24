package allocator

import (
	"fmt"

	"diagnose/image"
)

// Find returns the one heap of the allocator with this name that look finds in the modules of a process whose data has a region of at
// least so many bytes. look returns nil where there is none. The error says that there is none, or that there are several.
func Find[H any](p *image.Process, name string, least int, look func(*image.Module, []Region) *H) (*H, error) {
	var found *H
	for _, m := range Modules(p) {
		regions := Regions(p, m)
		if !large(regions, least) {
			continue
		}
		h := look(m, regions)
		if h == nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("several heaps of %s", name)
		}
		found = h
	}
	if found == nil {
		return nil, fmt.Errorf("%s's heap was not found", name)
	}
	return found, nil
}

// large reports whether a region has at least so many bytes.
func large(regions []Region, least int) bool {
	for i := range regions {
		if len(regions[i].Data) >= least {
			return true
		}
	}
	return false
}
