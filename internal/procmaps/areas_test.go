package procmaps

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

func TestParseAreas(t *testing.T) {
	text := `7f00-8f00 r-xp 00001000 fd:01 4711    /tmp/Rss: a
Size:                  4 kB
Rss:                  12 kB
Anonymous:             8 kB
Swap:                  0 kB
VmFlags: rd ex mr
8f00-9f00 rw-s 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd wr sh dc
9f00-af00 rw-p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  4 kB
`
	want := []Area{
		{Mapping{Start: 0x7f00, End: 0x8f00, Perms: "r-xp", Offset: 0x1000, Device: unix.Mkdev(0xfd, 1), Inode: 4711, Path: "/tmp/Rss: a"},
			true, []string{"rd", "ex", "mr"}, 12 << 10},
		{Mapping{Start: 0x8f00, End: 0x9f00, Perms: "rw-s"}, false, []string{"rd", "wr", "sh", "dc"}, 0},
		{Mapping{Start: 0x9f00, End: 0xaf00, Perms: "rw-p"}, true, nil, 0},
	}
	got, err := parseAreas(strings.NewReader(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	if got[0].Shared() || !got[1].Shared() || !got[1].Has("dc") || got[0].Has("dc") {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{"Size: 4 kB\n", "7f00-8f00 r-xp\n", "\n"} {
		if got, err := parseAreas(strings.NewReader(text)); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestReadAreas(t *testing.T) {
	shared, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(shared)
	if err := unix.Madvise(shared, unix.MADV_DONTFORK); err != nil {
		t.Fatal(err)
	}
	list, err := ReadAreas(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list, func(a Area) bool { return a.Shared() && a.Has("dc") && a.End-a.Start == evidence.Addr(len(shared)) }) {
		t.Errorf("no shared area without a copy in children: %+v", list)
	}
}
