package gdbserver

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/replay"
)

// points are the breakpoints and watchpoints that gdb has inserted.
type points struct {
	breakpoints []evidence.Addr
	watched     []watched
}

// watched is a watchpoint.
type watched struct {
	kind    byte // of the packet: '2' writes, '4' all accesses
	addr    uint64
	length  uint64
	watches []replay.Watch
}

const (
	mostBreakpoints = 4096
	// mostWatches is the number of debug registers.
	mostWatches = 4
)

func (p *points) halts() debug.Halts {
	h := debug.Halts{Breakpoints: slices.Clone(p.breakpoints)}
	for _, w := range p.watched {
		h.Watches = append(h.Watches, w.watches...)
	}
	return h
}

// reasonOf is the part of a stop reply for an access.
func (p *points) reasonOf(w replay.Watch) string {
	for _, x := range p.watched {
		if !slices.Contains(x.watches, w) {
			continue
		}
		if x.kind == '2' {
			return fmt.Sprintf("watch:%x;", x.addr)
		}
		return fmt.Sprintf("awatch:%x;", x.addr)
	}
	return ""
}

// words divides a range into words that debug registers can watch; nil: there are too many.
func words(addr, length uint64, writes bool) []replay.Watch {
	var list []replay.Watch
	for length > 0 {
		size := uint64(8)
		for size > length || addr%size != 0 {
			size /= 2
		}
		if len(list) == mostWatches {
			return nil
		}
		list = append(list, replay.Watch{Addr: evidence.Addr(addr), Size: int(size), Writes: writes})
		addr, length = addr+size, length-size
	}
	return list
}

// point answers Z and z. Reads alone cannot be watched: gdb then watches all accesses.
func (s *Server) point(packet string) (string, error) {
	if len(packet) < 3 || packet[2] != ',' {
		return unsupported, nil
	}
	kind := packet[1]
	place, _, _ := strings.Cut(packet[3:], ";")
	addr, length, err := parsePair(place)
	if err != nil {
		return "", err
	}
	inserts := packet[0] == 'Z'
	p := &s.points
	switch kind {
	case '0', '1':
		at := slices.Index(p.breakpoints, evidence.Addr(addr))
		switch {
		case inserts && at < 0 && len(p.breakpoints) == mostBreakpoints:
			return "E.there are too many breakpoints", nil
		case inserts && at < 0:
			p.breakpoints = append(p.breakpoints, evidence.Addr(addr))
		case !inserts && at >= 0:
			p.breakpoints = slices.Delete(p.breakpoints, at, at+1)
		}
		return "OK", nil
	case '2', '4':
		return p.watch(kind, addr, length, inserts)
	}
	return unsupported, nil
}

func (p *points) watch(kind byte, addr, length uint64, inserts bool) (string, error) {
	same := func(w watched) bool { return w.kind == kind && w.addr == addr && w.length == length }
	if !inserts {
		p.watched = slices.DeleteFunc(p.watched, same)
		return "OK", nil
	}
	if slices.ContainsFunc(p.watched, same) {
		return "OK", nil
	}
	if err := replay.WatchesWork(); err != nil {
		return "", err
	}
	list := words(addr, length, kind == '2')
	taken := len(p.halts().Watches)
	if len(list) == 0 || taken+len(list) > mostWatches || addr >= 1<<47 {
		return "E.the debug registers do not suffice", nil
	}
	p.watched = append(p.watched, watched{kind, addr, length, list})
	return "OK", nil
}
