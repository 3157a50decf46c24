package replay

import (
	"strings"

	"diagnose/image/object"
	"diagnose/replay/record"
)

// copyStart writes the dynamic linker's recorded data into the process.
func copyStart(p *process, rec *record.Recording) error {
	pages, err := rec.StartPages()
	if err != nil {
		return &InputError{err}
	}
	for i := range pages {
		if _, err := p.memory.WriteAt(pages[i].Data[:], int64(pages[i].Addr)); err != nil {
			return err
		}
	}
	return nil
}

// compareStart checks that the process has the recorded mappings when its engine starts. From a
// different start the replay cannot be the same.
func compareStart(p *process, m *record.Manifest) error {
	if len(m.Start.Mappings) == 0 {
		return inputf("replay: the recording ended before its start was written down")
	}
	maps, err := readMaps(p.pid)
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

func describeMapping(m *record.Mapping) string {
	return mapping{span: span{uint64(m.Start), uint64(m.End)}, perms: m.Permissions, offset: uint64(m.Offset), path: string(m.Path)}.String()
}

// sameBuild accepts a copy of the recorded file, with the same build-id.
func sameBuild(path, want string) error {
	f, err := object.Open(path)
	if err != nil {
		return inputf("replay: %w", err)
	}
	defer f.Close()
	if got := f.BuildID(); want == "" || got != want {
		return inputf("replay: %s is not the recorded file any more: its build-id is %s, the recording has %s", path, orNone(got), orNone(want))
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}
