package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/object"
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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err == nil && len(text) == 0 {
		text, err = mapsOfOthers(pid)
	}
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return parseMaps(text)
}

// mapsOfOthers: a main thread that left by itself has no memory any more, the
// others have.
func mapsOfOthers(pid int) ([]byte, error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/maps", pid))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			return text, nil
		}
	}
	return nil, fmt.Errorf("/proc/%d/maps: the process has no memory", pid)
}

func parseMaps(text []byte) (mappings, error) {
	var list mappings
	for line := range bytes.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 6)
		if len(fields) < 5 || len(fields[1]) != 4 {
			return nil, fmt.Errorf("replay: maps line %q", line)
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(fields[2], 16, 64)
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("replay: maps line %q", line)
		}
		m := mapping{span: span{start, end}, perms: fields[1], offset: offset}
		if len(fields) == 6 {
			m.path = strings.TrimLeft(fields[5], " ")
		}
		list = append(list, m)
	}
	return list, nil
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

// compareStart sees that the process stands, when its engine starts, where the
// recorded one stood: from a different start there is no same way.
func (c *controller) compareStart(m *record.Manifest) error {
	if len(m.Start.Mappings) == 0 {
		return inputf("replay: the recording ended before its start was written down")
	}
	maps, err := readMaps(c.pid)
	if err != nil {
		return err
	}
	return compareMappings(m.Start.Mappings, maps)
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
		// What an update replaced is named before what it moved.
		if id := buildIDOf(g.path); id != w.BuildID {
			return inputf("replay: %s is not what was recorded any more: its build-id is %s, the recording has %s", g.path, orNone(id), w.BuildID)
		}
	}
	if same {
		return nil
	}
	return inputf("replay: the process starts otherwise than it was recorded: it has %s, the recording %s", g, describeMapping(w))
}

func buildIDOf(path string) string {
	f, err := object.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return f.BuildID()
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
