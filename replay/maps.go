package replay

import (
	"fmt"
	"sort"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/procmaps"
	"diagnose/replay/record"
)

// mapping is a line of /proc/PID/maps.
type mapping struct {
	span
	perms  string // "r-xp"
	offset uint64
	path   string
}

// mappings are in ascending order.
type mappings []mapping

func readMaps(pid int) (mappings, error) {
	lines, err := procmaps.ReadProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return mappingsOf(lines), nil
}

func mappingsOf(lines []procmaps.Mapping) mappings {
	list := make(mappings, len(lines))
	for i, l := range lines {
		list[i] = mapping{span: span{uint64(l.Start), uint64(l.End)}, perms: l.Perms, offset: l.Offset, path: l.Path}
	}
	return list
}

func (l mappings) at(addr uint64) *mapping {
	i := sort.Search(len(l), func(i int) bool { return l[i].end > addr })
	if i == len(l) || addr < l[i].start {
		return nil
	}
	return &l[i]
}

func (l mappings) executable(addr uint64) bool {
	m := l.at(addr)
	return m != nil && m.perms[2] == 'x'
}

// hidden reports whether a mapping is not compared: the engine's own, and those that the kernel
// provides.
func hidden(start uint64, path string) bool {
	return start >= agent.EngineBase && start < agent.EngineStacks || path == "[vdso]" || path == "[vsyscall]" || strings.HasPrefix(path, "[vvar")
}

func compareMappings(want []record.Mapping, got mappings) error {
	i := 0
	for _, g := range got {
		if hidden(g.start, g.path) {
			continue
		}
		for i < len(want) && hidden(uint64(want[i].Start), string(want[i].Path)) {
			i++
		}
		if i == len(want) {
			return inputf("replay: the process starts otherwise than it was recorded: it has %s, the recording nothing more", g)
		}
		w := &want[i]
		if err := compareMapping(w, &g); err != nil {
			return err
		}
		i++
	}
	for ; i < len(want); i++ {
		if !hidden(uint64(want[i].Start), string(want[i].Path)) {
			return inputf("replay: the process starts otherwise than it was recorded: %s is missing", describeMapping(&want[i]))
		}
	}
	return nil
}

func compareMapping(w *record.Mapping, g *mapping) error {
	same := uint64(w.Start) == g.start && uint64(w.End) == g.end && w.Permissions == g.perms && uint64(w.Offset) == g.offset && string(w.Path) == g.path
	if same && w.BuildID == "" {
		return nil
	}
	if strings.HasPrefix(g.path, "/") && (string(w.Path) == g.path || same) && w.BuildID != "" {
		// A file that an update replaced is reported before a mapping that it moved.
		if id := object.BuildIDOf(g.path); id != w.BuildID {
			return inputf("replay: %s is not the recorded file any more: its build-id is %s, the recording has %s", g.path, orNone(id), w.BuildID)
		}
	}
	if same {
		return nil
	}
	return inputf("replay: the process starts otherwise than it was recorded: it has %s, the recording %s", g, describeMapping(w))
}

func (m mapping) String() string {
	return describe(m.start, m.end, m.perms, m.path, m.offset)
}

func describeMapping(m *record.Mapping) string {
	return describe(uint64(m.Start), uint64(m.End), m.Permissions, string(m.Path), uint64(m.Offset))
}

func describe(start, end uint64, perms, path string, offset uint64) string {
	text := fmt.Sprintf("%v-%v %s", evidence.Addr(start), evidence.Addr(end), perms)
	switch {
	case path == "":
		return text + " (no file)"
	case path[0] == '[':
		return text + " " + path
	}
	return fmt.Sprintf("%s %s+%#x", text, path, offset)
}
