package procmaps

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

func TestParse(t *testing.T) {
	text := `7f00-8f00 r-xp 00001000 fd:01 4711                       /tmp/a b\012c (deleted)` + "\n" +
		"8f00-9f00 rw-p 00000000 00:00 0 \n" +
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
	got, err := Parse([]byte(text))
	want := []Mapping{
		{Start: 0x7f00, End: 0x8f00, Perms: "r-xp", Offset: 0x1000, Device: unix.Mkdev(0xfd, 1), Inode: 4711, Path: "/tmp/a b\nc (deleted)"},
		{Start: 0x8f00, End: 0x9f00, Perms: "rw-p"},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Perms: "--xp", Path: "[vsyscall]"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, line := range []string{"", "7f00 rw-p 0 0:0 0", "7f00-8f00 rw 0 0:0 0", "7f00-8f00 rw-p x 0:0 0", "7f00-8f00 rw-p 0 00 0",
		"7f00-8f00 rw-p 0 0:0 -1", "8f00-7f00 rw-p 0 0:0 0", "10-20"} {
		if m, err := ParseLine(line); err == nil {
			t.Errorf("%q is %+v", line, m)
		}
	}
	if _, err := Parse([]byte("1-2 rwxp 0 0:0 0\n1-2\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("the error does not name the line: %v", err)
	}
}

func TestReadSelf(t *testing.T) {
	for name, read := range map[string]func(int) ([]Mapping, error){"thread": Read, "process": ReadProcess} {
		list, err := read(os.Getpid())
		ascending := func(a, b Mapping) int { return int(min(1, max(-1, int64(a.Start)-int64(b.Start)))) }
		at := evidence.Addr(1 << 62)
		for _, m := range list {
			if m.Path == "[stack]" {
				at = m.Start
			}
		}
		if err != nil || !slices.IsSortedFunc(list[:len(list)-1], ascending) || at == 1<<62 {
			t.Errorf("%s: %d mappings, %v", name, len(list), err)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add("7f00-8f00 r-xp 00001000 fd:01 4711    /tmp/a")
	f.Add("1-2 rwxp 0 0:0 0")
	f.Fuzz(func(t *testing.T, line string) {
		if m, err := ParseLine(line); err == nil && (m.Start >= m.End || len(m.Perms) != 4) {
			t.Errorf("%q is %+v", line, m)
		}
	})
}
