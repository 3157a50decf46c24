package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
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
func lastMomentAt(ctx context.Context, rec *record.Recording, place string, images image.Options, say func(string)) (evidence.Moment, error) {
	if m, err := evidence.ParseMoment(place); err == nil {
		return m, nil
	}
	var pcs []evidence.Addr
	err := watchtrace.AtEnd(ctx, rec, images, func(p *image.Process) error {
		var err error
		pcs, err = sourceNames{process: p}.placesNamed(place)
		return err
	})
	if err != nil {
		return evidence.Moment{}, fmt.Errorf("--failed-at %s: %w", place, err)
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
	say("replaying to find the last time that " + place + " is reached")
	if _, err := replay.Run(ctx, rec, replay.FreeRequest{Common: replay.Common{Image: images}, Breaks: breaks}); err != nil {
		return evidence.Moment{}, fmt.Errorf("--failed-at %s: %w", place, err)
	}
	if last.PC == 0 {
		return last, fmt.Errorf("--failed-at %s: the run does not come there", place)
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
func (n sourceNames) placesNamed(text string) ([]evidence.Addr, error) {
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if line, err := strconv.Atoi(text[i+1:]); err == nil && line > 0 {
			return n.lineAddresses(text[:i], line)
		}
	}
	if s, found := n.process.SymbolNamed(text); found {
		return []evidence.Addr{s.Addr}, nil
	}
	found, like := n.functionsLike(text)
	var list []evidence.Addr
	for _, f := range found[:min(len(found), mostFunctions)] {
		if s, ok := n.process.SymbolNamed(f.linkage); ok {
			list = append(list, s.Addr)
		}
	}
	if inlined := n.inlinedAt(text); len(inlined) > 0 {
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

// lineAddresses are the addresses at which the code of a line begins, one for each stretch of it.
func (n sourceNames) lineAddresses(file string, line int) ([]evidence.Addr, error) {
	var list []evidence.Addr
	known := false
	n.eachDebug(func(m *image.Module, d *debuginfo.Info) {
		found, here, err := d.AddressesOf(file, line, mostPlaces)
		if err != nil {
			return // the object's own limits report it
		}
		known = known || here
		for _, at := range found {
			if addr := m.Addr(at); len(list) < mostPlaces && !slices.Contains(list, addr) {
				list = append(list, addr)
			}
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

// inlinedAt are the addresses at which the code of an inlined function begins.
func (n sourceNames) inlinedAt(name string) []evidence.Addr {
	var list []evidence.Addr
	named := func(f *debuginfo.Function) bool {
		return stands(name, f.Name) || f.Linkage != "" && (f.Linkage == name || stands(name, image.CanonicalName(f.Linkage)))
	}
	n.eachDebug(func(m *image.Module, d *debuginfo.Info) {
		found, err := d.InlinedCode(named, mostPlaces-len(list))
		if err != nil {
			return // the object's own limits report it
		}
		for _, at := range found {
			list = append(list, m.Addr(at))
		}
	})
	return list
}

// eachDebug calls look with the debug information of each of the program's own objects
// that has some.
func (n sourceNames) eachDebug(look func(*image.Module, *debuginfo.Info)) {
	for _, m := range n.process.Modules {
		if image.RuntimeModule(m.Path) {
			continue
		}
		if d, err := m.Debug(); err == nil && d != nil {
			look(m, d)
		}
	}
}
