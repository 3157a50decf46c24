package record

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// The .bss of a dynamic linker may have pages after those of its file.
func TestStartMappings(t *testing.T) {
	const linker = "/lib/ld.so"
	file := &File{Inode: 1}
	s := &Start{Mappings: []Mapping{
		{Start: 0x1000, End: 0x2000, Permissions: "r--p", Path: linker, File: file},
		{Start: 0x2000, End: 0x3000, Permissions: "rw-p"}, // not after a writable one
		{Start: 0x5000, End: 0x6000, Permissions: "rw-p", Path: linker, File: file},
		{Start: 0x6000, End: 0x7000, Permissions: "rw-p"},
		{Start: 0x7000, End: 0x8000, Permissions: "rw-p"}, // another
		{Start: 0x9000, End: 0xa000, Permissions: "rw-p", Path: "/lib/other.so", File: file},
		{Start: 0xa000, End: 0xb000, Permissions: "rw-p"},
	}}
	var starts []evidence.Addr
	for _, m := range s.MappingsOf(linker) {
		starts = append(starts, m.Start)
	}
	if want := []evidence.Addr{0x1000, 0x5000, 0x6000}; !slices.Equal(starts, want) {
		t.Errorf("the mappings begin at %v, want %v", starts, want)
	}
	for addr, want := range map[evidence.Addr]bool{0x6000: true, 0x6010: false, 0x7000: false, 0x2000: false, 0xa000: false} {
		if s.maps(linker, addr) != want {
			t.Errorf("%v is a page of the linker: %v, want %v", addr, !want, want)
		}
	}
}
