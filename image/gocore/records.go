package gocore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/gotable"
)

const (
	// mostRecords bounds the goroutines, dead ones among them, that are read.
	mostRecords = 1 << 20
	// mostRead bounds the goroutines that are read to find the list.
	mostRead = 4 * mostRecords
	// mostVariables bounds the variables that are searched, in bytes.
	mostVariables = 64 << 20
	statusIdle    = 0
	statusDead    = 6
)

// unused reports whether a goroutine with the status has no stack to show, nor
// perhaps valid registers.
func unused(status uint64) bool {
	return statuses[status] == statuses[statusDead] || status == statusIdle
}

// records reads the list of all goroutines, runtime.allgs.
//
// Without symbols its place is not known. It is the one slice among the
// program's variables whose elements are all goroutines: each has its own
// address in its saved registers.
func (s *stripped) records() ([]goroutineRecord, error) {
	data, err := readArea(s.memory, s.table.Module.BSS)
	if err != nil {
		return nil, err
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[i:]) }
	var found []goroutineRecord
	for i := 0; i+24 <= len(data); i += 8 {
		first, n, room := word(i), word(i+8), word(i+16)
		if first == 0 || first%8 != 0 || n == 0 || n > room || n > mostRecords || !evidence.Addr(first).Canonical() {
			continue
		}
		list, ok := s.recordsAt(evidence.Addr(first), int(n))
		if !ok {
			continue
		}
		if found != nil {
			return nil, errors.New("more than one list in the program's variables may be that of all goroutines")
		}
		found = list
	}
	if found == nil {
		return nil, errors.New("the list of all goroutines is not in the program's variables")
	}
	return found, nil
}

// readArea reads variables of the program, up to mostVariables bytes.
func readArea(m image.Memory, a gotable.Area) ([]byte, error) {
	size := uint64(a.End - a.Start)
	if size > mostVariables {
		return nil, fmt.Errorf("the program has %d bytes of variables, of which at most %d are searched", size, uint64(mostVariables))
	}
	data := make([]byte, size)
	n, err := m.ReadMemory(a.Start, data)
	if n == 0 && err != nil {
		return nil, fmt.Errorf("the program's variables: %w", err)
	}
	return data[:n], nil
}

// recordsAt reads n goroutines through the pointers at addr; ok is false when
// they are something else.
func (s *stripped) recordsAt(addr evidence.Addr, n int) (list []goroutineRecord, ok bool) {
	const step = 512
	ids := map[uint64]bool{}
	for i := 0; i < n; i += step {
		pointers := make([]byte, 8*min(step, n-i))
		if _, err := s.memory.ReadMemory(addr+evidence.Addr(8*i), pointers); err != nil {
			return nil, false
		}
		for len(pointers) > 0 {
			g, err := s.record(evidence.Addr(binary.LittleEndian.Uint64(pointers)))
			pointers = pointers[8:]
			if err != nil {
				return nil, false
			}
			if unused(g.status) {
				continue
			}
			if g.id == 0 || ids[g.id] || g.low >= g.high {
				return nil, false
			}
			ids[g.id] = true
			list = append(list, g)
		}
	}
	return list, len(list) > 0
}

// record reads a goroutine.
func (s *stripped) record(addr evidence.Addr) (goroutineRecord, error) {
	var b [gSize]byte
	if s.read++; s.read > mostRead {
		return goroutineRecord{}, errors.New("too many goroutines were read")
	}
	if addr == 0 || addr%8 != 0 {
		return goroutineRecord{}, fmt.Errorf("no goroutine is at %v", addr)
	}
	if _, err := s.memory.ReadMemory(addr, b[:]); err != nil {
		return goroutineRecord{}, err
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	pointer := func(at int) evidence.Addr { return evidence.Addr(word(at)) }
	l := &s.layout
	g := goroutineRecord{
		addr: addr, status: uint64(binary.LittleEndian.Uint32(b[l.status:])) &^ scanBit, id: word(l.id),
		low: pointer(gStackLow), high: pointer(gStackHigh), pc: pointer(gSavedPC), sp: pointer(gSavedSP), fp: pointer(l.framePointer),
		thread: pointer(gThread), panicking: pointer(gPanic), reason: b[l.reason],
		signal: binary.LittleEndian.Uint32(b[l.signal:]), signalCode: word(l.signalCode), faultAddr: word(l.faultAddr),
	}
	if statuses[g.status] == "" || !unused(g.status) && pointer(gSelf) != addr {
		return g, fmt.Errorf("no goroutine is at %v", addr)
	}
	return g, nil
}
