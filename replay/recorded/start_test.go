package recorded

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/procmaps"
	"diagnose/replay/record"
	"diagnose/replay/tracee"
)

const sampleMaps = `200000000000-20000000a000 rw-p 00000000 00:00 0
21a000000000-21a000001000 rw-p 00000000 00:00 0
555555554000-555555555000 r--p 00000000 fe:00 9979539                    /nowhere/a program
7ffff7a44000-7ffff7b9a000 r-xp 00026000 fe:00 326269                     /nowhere/libc.so.6
7ffff7fc2000-7ffff7fc6000 r--p 00000000 00:00 0                          [vvar]
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
`

func recordedMappings(t *testing.T, text string) []record.Mapping {
	t.Helper()
	maps := mustParse(t, text)
	var list []record.Mapping
	for _, m := range maps {
		list = append(list, record.Mapping{Start: evidence.Addr(m.Start), End: evidence.Addr(m.End), Offset: evidence.Addr(m.Offset),
			Permissions: m.Perms, Path: record.Text(m.Path)})
	}
	return list
}

func TestCompareStart(t *testing.T) {
	want := recordedMappings(t, sampleMaps)
	for _, c := range []struct{ name, old, new, says string }{
		{"same", "", "", ""},
		{"engine's own", "21a000001000", "21a000002000", ""},
		{"kernel's own", "7ffff7fc2000", "7ffff7fc1000", ""},
		{"moved", "555555554000-555555555000", "555555555000-555555556000", "/nowhere/a program"},
		{"permissions", "r-xp", "rwxp", "rwxp /nowhere/libc.so.6"},
		{"stack", "7ffffffde000", "7ffffffdd000", "[stack]"},
		{"more", "[stack]\n", "[stack]\nffffffffff600000-ffffffffff601000 r--p 00000000 00:00 0 /more\n", "/more"},
		{"fewer", sampleMaps[strings.LastIndex(sampleMaps, "7ffffffde"):], "", "[stack]"},
	} {
		err := compareMappings(want, mustParse(t, strings.Replace(sampleMaps, c.old, c.new, 1)))
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, which should name %s", c.name, err, c.says)
		}
	}
	// A library of another build is reported before a mapping that it moved.
	want[3].BuildID = "abcd"
	if err := compareMappings(want, mustParse(t, sampleMaps)); err == nil || !strings.Contains(err.Error(), "libc.so.6 is not the recorded file") {
		t.Errorf("another build-id: %v", err)
	}
}

func mustParse(t *testing.T, text string) tracee.Mappings {
	t.Helper()
	lines, err := procmaps.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tracee.MappingsOf(lines)
}
