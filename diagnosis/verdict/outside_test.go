package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/staticscan"
)

// An access outside of an array is told by the element that it would be, or else by how
// far it is from the array.
func TestOutsideText(t *testing.T) {
	site := evidence.Site{Function: "total", File: "/src/a.c", Line: 11}
	for _, test := range []struct {
		o    staticscan.Outside
		want string
	}{
		{staticscan.Outside{Addr: 0x1020, Element: 8}, "total (a.c:11) reads cells[4], and cells has 4 elements"},
		{staticscan.Outside{Addr: 0x1024, Element: 8, Writes: true}, "total (a.c:11) writes cells[4], and cells has 4 elements"},
		{staticscan.Outside{Addr: 0xffc, Element: 8}, "total (a.c:11) reads cells[-1], and cells has 4 elements"},
		{staticscan.Outside{Addr: 0xff0, Element: 8}, "total (a.c:11) reads cells[-2], and cells has 4 elements"},
		{staticscan.Outside{Addr: 0x1028}, "total (a.c:11) reads memory 8 bytes past the end of cells, which has 32 bytes"},
		{staticscan.Outside{Addr: 0xff8}, "total (a.c:11) reads memory 7 bytes before the start of cells, which has 32 bytes"},
	} {
		test.o.Array, test.o.From, test.o.Size, test.o.Site = "cells", 0x1000, 32, site
		if got := outsideText(&test.o); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
