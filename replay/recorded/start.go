package recorded

import (
	"strings"

	"diagnose/image/object"
	"diagnose/replay/record"
	"diagnose/replay/tracee"
)

// CopyStart writes the dynamic linker's recorded data into the process.
func CopyStart(p *tracee.Process, rec *record.Recording) error {
	pages, err := rec.StartPages()
	if err != nil {
		return &tracee.InputError{Err: err}
	}
	for i := range pages {
		if _, err := p.Memory.WriteAt(pages[i].Data[:], int64(pages[i].Addr)); err != nil {
			return err
		}
	}
	return nil
}

// CompareStart checks that the process has the recorded mappings when its engine starts. From a
// different start the replay cannot be the same.
func CompareStart(p *tracee.Process, m *record.Manifest) error {
	if len(m.Start.Mappings) == 0 {
		return tracee.Inputf("replay: the recording ended before its start was written down")
	}
	maps, err := tracee.ReadMaps(p.PID)
	if err != nil {
		return err
	}
	return compareMappings(m.Start.Mappings, maps)
}

func compareMappings(want []record.Mapping, got tracee.Mappings) error {
	i := 0
	for _, g := range got {
		if tracee.Hidden(g.Start, g.Path) {
			continue
		}
		for i < len(want) && tracee.Hidden(uint64(want[i].Start), string(want[i].Path)) {
			i++
		}
		if i == len(want) {
			return tracee.Inputf("replay: the process starts otherwise than it was recorded: it has %s, the recording nothing more", g)
		}
		w := &want[i]
		if err := compareMapping(w, &g); err != nil {
			return err
		}
		i++
	}
	for ; i < len(want); i++ {
		if !tracee.Hidden(uint64(want[i].Start), string(want[i].Path)) {
			return tracee.Inputf("replay: the process starts otherwise than it was recorded: %s is missing", describeMapping(&want[i]))
		}
	}
	return nil
}

func compareMapping(w *record.Mapping, g *tracee.Mapping) error {
	same := uint64(w.Start) == g.Start && uint64(w.End) == g.End && w.Permissions == g.Perms && uint64(w.Offset) == g.Offset && string(w.Path) == g.Path
	if same && w.BuildID == "" {
		return nil
	}
	if strings.HasPrefix(g.Path, "/") && (string(w.Path) == g.Path || same) && w.BuildID != "" {
		// A file that an update replaced is reported before a mapping that it moved.
		if id := object.BuildIDOf(g.Path); id != w.BuildID {
			return tracee.Inputf("replay: %s is not the recorded file any more: its build-id is %s, the recording has %s", g.Path, orNone(id), w.BuildID)
		}
	}
	if same {
		return nil
	}
	return tracee.Inputf("replay: the process starts otherwise than it was recorded: it has %s, the recording %s", g, describeMapping(w))
}

func describeMapping(m *record.Mapping) string {
	return tracee.Mapping{Span: tracee.Span{Start: uint64(m.Start), End: uint64(m.End)}, Perms: m.Permissions, Offset: uint64(m.Offset), Path: string(m.Path)}.String()
}
