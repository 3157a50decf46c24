package driver

import (
	"context"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// mostPlaces bounds the addresses of one place of the source, mostArrivals how often a replay stops
// at them.
const (
	mostPlaces   = 64
	mostArrivals = 20_000
)

// lastMomentAt is the last moment at which a thread of the run reaches the place that the
// user named.
func (a *analysis) placeMoment(ctx context.Context, rec *record.Recording) (evidence.Moment, error) {
	if m, err := evidence.ParseMoment(a.req.FailedAt); err == nil {
		return m, nil
	}
	var pcs []evidence.Addr
	err := watchtrace.AtEnd(ctx, rec, a.imageOptions(), func(p *image.Process) error {
		var err error
		a.process = p
		pcs, err = a.placesNamed(a.req.FailedAt)
		a.process = nil
		return err
	})
	if err != nil {
		return evidence.Moment{}, fmt.Errorf("--failed-at %s: %w", a.req.FailedAt, err)
	}
	var last evidence.Moment
	counts := moments{}
	arrivals := 0
	var breaks []replay.Break
	for _, pc := range pcs {
		breaks = append(breaks, replay.Break{PC: pc, Do: func(s *replay.Stopped) error {
			if arrivals++; arrivals > mostArrivals {
				return fmt.Errorf("it is reached more than %d times; give a moment THREAD:EVENT:PC", mostArrivals)
			}
			last = counts.arrive(s.Moment, pc)
			return nil
		}})
	}
	a.say("replaying to find the last time that " + a.req.FailedAt + " is reached")
	if _, err := replay.Run(ctx, rec, replay.Options{Image: a.imageOptions(), Free: true, Breaks: breaks}); err != nil {
		return evidence.Moment{}, fmt.Errorf("--failed-at %s: %w", a.req.FailedAt, err)
	}
	if last.PC == 0 {
		return last, fmt.Errorf("--failed-at %s: the run does not come there", a.req.FailedAt)
	}
	return last, nil
}

// moments counts how often threads reached addresses since their last events. Other addresses and
// threads may occur between two arrivals.
type moments map[evidence.Moment]uint64

// arrive counts one more arrival at an address, of the thread and after the event of at, and
// returns its moment.
func (m moments) arrive(at evidence.Moment, pc evidence.Addr) evidence.Moment {
	at.PC, at.Count = pc, 0
	m[at]++
	at.Count = m[at]
	return at
}

// placesNamed are the addresses of FILE:LINE or of a function.
func (a *analysis) placesNamed(text string) ([]evidence.Addr, error) {
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if line, err := strconv.Atoi(text[i+1:]); err == nil && line > 0 {
			return a.lineAddresses(text[:i], line)
		}
	}
	if s, found := a.process.SymbolNamed(text); found {
		return []evidence.Addr{s.Addr}, nil
	}
	found, like := a.functionsLike(text)
	var list []evidence.Addr
	for _, f := range found[:min(len(found), mostFunctions)] {
		if s, ok := a.process.SymbolNamed(f.linkage); ok {
			list = append(list, s.Addr)
		}
	}
	if inlined := a.inlinedAt(text); len(inlined) > 0 {
		list = append(list, inlined...)
	}
	switch {
	case len(list) > 0:
		return list[:min(len(list), mostPlaces)], nil
	case len(like) > 0:
		return nil, fmt.Errorf("no function has this name; like it are %s", strings.Join(like, ", "))
	}
	return nil, errors.New("no function has this name, and it is no FILE:LINE and no moment THREAD:EVENT")
}

// debugOf calls look with the debug information of each of the program's own objects that
// has some. What cannot be read is passed over: the object's own limits tell.
func (a *analysis) debugOf(look func(m *image.Module, d *dwarf.Data)) {
	for _, m := range a.process.Modules {
		if image.RuntimeModule(m.Path) || m.File == "" {
			continue
		}
		for _, file := range []string{m.DebugFile(), m.File} {
			if file == "" {
				continue
			}
			f, err := elf.Open(file)
			if err != nil {
				continue
			}
			d, err := f.DWARF()
			if err == nil {
				look(m, d)
			}
			f.Close()
			if err == nil {
				break
			}
		}
	}
}

// lineAddresses are where the code of a line begins, once for each stretch of it.
func (a *analysis) lineAddresses(file string, line int) ([]evidence.Addr, error) {
	var list []evidence.Addr
	known := false
	a.debugOf(func(m *image.Module, d *dwarf.Data) {
		units := d.Reader()
		for {
			unit, err := units.Next()
			if err != nil || unit == nil {
				return
			}
			if rows, err := d.LineReader(unit); err == nil && rows != nil {
				found, here := lineBegins(rows, file, line)
				known = known || here
				for _, at := range found {
					if addr := m.Addr(at); len(list) < mostPlaces && !slices.Contains(list, addr) {
						list = append(list, addr)
					}
				}
			}
			units.SkipChildren()
		}
	})
	switch {
	case len(list) > 0:
		return list, nil
	case known:
		return nil, fmt.Errorf("line %d of %s has no code", line, file)
	}
	return nil, fmt.Errorf("no source file of the program is called %s", file)
}

// lineBegins are the addresses of the rows at which a line begins. known: the file is one
// of the table's.
func lineBegins(rows *dwarf.LineReader, file string, line int) (list []uint64, known bool) {
	var row dwarf.LineEntry
	before := false
	for rows.Next(&row) != io.EOF {
		same := row.File != nil && (row.File.Name == file || strings.HasSuffix(row.File.Name, "/"+path.Clean(file)))
		known = known || same
		at := same && row.Line == line && !row.EndSequence
		if at && !before && row.IsStmt {
			list = append(list, row.Address)
		}
		before = at
	}
	return list, known
}

// inlinedAt are the addresses at which the code of an inlined function begins.
func (a *analysis) inlinedAt(name string) []evidence.Addr {
	var list []evidence.Addr
	a.debugOf(func(m *image.Module, d *dwarf.Data) {
		for _, at := range inlinedCode(d, name) {
			if len(list) < mostPlaces {
				list = append(list, m.Addr(at))
			}
		}
	})
	return list
}

// mostEntries bounds the entries of debug information that are read for a name.
const mostEntries = 20 << 20

// inlinedCode finds a function's inlined code: DW_TAG_inlined_subroutine refers to the
// abstract instance, which has the name (DWARF 5, 3.3.8).
func inlinedCode(d *dwarf.Data, name string) []uint64 {
	abstract := map[dwarf.Offset]bool{}
	eachEntry(d, func(e *dwarf.Entry) {
		if e.Tag != dwarf.TagSubprogram {
			return
		}
		full, _ := e.Val(dwarf.AttrName).(string)
		linkage, _ := e.Val(dwarf.AttrLinkageName).(string)
		of, specified := e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		if full != "" && stands(name, full) || linkage != "" && (linkage == name || stands(name, image.CanonicalName(linkage))) || specified && abstract[of] {
			abstract[e.Offset] = true
		}
	})
	if len(abstract) == 0 {
		return nil
	}
	var list []uint64
	eachEntry(d, func(e *dwarf.Entry) {
		of, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if e.Tag != dwarf.TagInlinedSubroutine || !ok || !abstract[of] || len(list) >= mostPlaces {
			return
		}
		if at, ok := e.Val(dwarf.AttrEntrypc).(uint64); ok {
			list = append(list, at)
		} else if ranges, err := d.Ranges(e); err == nil && len(ranges) > 0 {
			list = append(list, ranges[0][0])
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

func eachEntry(d *dwarf.Data, do func(*dwarf.Entry)) {
	r := d.Reader()
	for range mostEntries {
		e, err := r.Next()
		if err != nil || e == nil {
			return
		}
		do(e)
	}
}
