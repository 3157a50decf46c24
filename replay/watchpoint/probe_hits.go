package watchpoint

import (
	"cmp"
	"encoding/binary"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// drain takes the entries of the ring. If t is not nil, it is stopped right after the last of
// them.
func (p *probes) drain(t *tracee.Thread) error {
	if p.block == nil {
		return nil
	}
	for {
		at := blockRing + int(p.done%ringEntries)*entryBytes
		if p.word(at+entryDone).Load() != p.done+1 {
			break
		}
		if err := p.taken(p.block[at:at+entryBytes], t); err != nil {
			return err
		}
		p.done++
	}
	p.word(blockLimit).Store(p.done + ringEntries)
	p.word(blockStop).Store(p.stopAt())
	return nil
}

// stopAt returns the number of the first entry, counted from 1, that may be of a hit to be
// inspected. An entry makes one hit for each watched word that its instruction touches, and system
// calls may have made others meanwhile.
func (p *probes) stopAt() uint64 {
	next := ^uint64(0)
	for _, n := range p.tr.asked.Inspected {
		if n >= p.tr.number {
			next = min(next, n)
		}
	}
	if next == ^uint64(0) {
		return next
	}
	const mostTouched = mostLogged // words may be of one byte
	others := uint64(len(p.calls) * len(p.tr.watches))
	if next-p.tr.number < others {
		return p.done + 1
	}
	return p.done + 1 + (next-p.tr.number-others)/mostTouched
}

// taken makes hits of an entry.
func (p *probes) taken(e []byte, t *tracee.Thread) error {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(e[at:]) }
	x := p.all[uint32(word(entrySite))]
	s := &sighting{thread: int(word(entrySite) >> 32), position: word(entryConsumed), held: word(entryHeld)}
	if who, real := word(entryWho), uint32(word(entryReal)); int(real) == s.thread {
		s.index, s.tid, s.ordinal = uint32(who), uint32(who>>32), word(entryOrdinal)
		s.turn = word(entryTurns)
		p.tr.indices[s.thread] = s.index
	} else if err := p.tr.identify(s); err != nil {
		return err
	}
	h := Hit{Thread: s.index, Ordinal: s.ordinal, Position: s.position, Turn: s.turn, Held: s.held, PC: evidence.Addr(x.inst.PC),
		SP: evidence.Addr(word(entrySP)), Kind: CodeOf(x.operands[0].Access)}
	addr, size := word(entryAddr), uint64(x.operands[0].Size)
	first := addr &^ 7
	return p.touched(addr, size, func(watch int, w *tracee.Watch) error {
		n := int(uint64(w.Addr)-first) / 8
		part := func(v uint64) uint64 { return v >> (8 * (w.Addr & 7)) & (^uint64(0) >> (64 - 8*w.Size)) }
		h := h
		h.Watch = watch
		return p.hit(h, part(word(entryBefore+8*n)), part(word(entryAfter+8*n)), t)
	})
}

// touched calls f for the watches that an access touches, in their order.
func (p *probes) touched(addr, size uint64, f func(watch int, w *tracee.Watch) error) error {
	i, _ := slices.BinarySearchFunc(p.sorted, addr, func(i int, addr uint64) int {
		return cmp.Compare(uint64(p.tr.watches[i].Addr)+uint64(p.tr.watches[i].Size), addr+1)
	})
	var list []int
	for ; i < len(p.sorted) && uint64(p.tr.watches[p.sorted[i]].Addr) < addr+size; i++ {
		list = append(list, p.sorted[i])
	}
	slices.Sort(list)
	for _, watch := range list {
		if err := f(watch, &p.tr.watches[watch]); err != nil {
			return err
		}
	}
	return nil
}

// hit takes an access to a watched word, with the word's values before and after.
func (p *probes) hit(h Hit, before, after uint64, t *tracee.Thread) error {
	if err := p.called(h.Position); err != nil {
		return err
	}
	p.notice(h.Watch, before)
	h.Old, h.New = before, after
	p.tr.known[h.Watch] = after
	if p.leftOut(&h) {
		return nil
	}
	return p.tr.emit(h, t)
}

// leftOut reports whether a hit is a read that was not requested.
func (p *probes) leftOut(h *Hit) bool {
	return p.tr.watches[h.Watch].Writes && h.Kind == evidence.CodeRead
}

// notice compares a word with its value after the last access that was seen.
func (p *probes) notice(watch int, now uint64) {
	if p.tr.read[watch] && p.tr.known[watch] != now {
		p.tr.Counts.Unseen[watch]++
	}
	p.tr.known[watch], p.tr.read[watch] = now, true
}

// kernelAccess is an access of a system call to watched memory.
type kernelAccess struct {
	thread            uint32
	ordinal, position uint64
	pc                evidence.Addr
	addr, size        uint64
	data              []byte // written; nil: it was read
}

// readLog finds the accesses of system calls to watched memory, and the pcs to which signal
// handlers return.
func (p *probes) readLog() error {
	position := uint64(0)
	for e, err := range p.tr.stage.Rec.Log.Ordered() {
		if err != nil {
			return nil // the replay ends there
		}
		position++
		if e.Kind == eventlog.KindSignal && len(e.Args) > 1 && eventlog.SignalPlace(e.Args[0]) == eventlog.PlaceAsync {
			p.in.Returns = append(p.in.Returns, e.Args[1])
		}
		for _, x := range e.Payloads {
			k := kernelAccess{thread: e.Thread, ordinal: e.Ordinal, position: position, pc: evidence.Addr(e.Site), addr: uint64(x.Addr), size: uint64(len(x.Data))}
			switch {
			case x.Kind == eventlog.PayloadOut:
				k.data = x.Data
			case x.Kind == eventlog.PayloadDigest && len(x.Data) == 16:
				k.size = binary.LittleEndian.Uint64(x.Data[8:])
			default:
				continue
			}
			if k.size == 0 || !p.touches(k.addr, k.size) {
				continue
			}
			const syscall = 2
			if e.Kind == agent.EvSyscall {
				k.pc -= syscall
			}
			k.data = slices.Clone(k.data)
			p.calls = append(p.calls, k)
		}
	}
	return nil
}

// called makes hits of the system calls' accesses up to a position.
func (p *probes) called(position uint64) error {
	for len(p.calls) > 0 && p.calls[0].position <= position {
		k := &p.calls[0]
		p.calls = p.calls[1:]
		h := Hit{Thread: k.thread, Ordinal: k.ordinal, Position: k.position, PC: k.pc, By: evidence.ByCall, Kind: evidence.CodeRead}
		if k.data != nil {
			h.Kind = evidence.CodeWrite
		}
		err := p.touched(k.addr, k.size, func(watch int, w *tracee.Watch) error {
			h := h
			h.Watch, h.Old = watch, p.tr.known[watch]
			h.New = h.Old
			for b := range uint64(w.Size) {
				if at := uint64(w.Addr) + b - k.addr; k.data != nil && at < uint64(len(k.data)) {
					h.New = h.New&^(0xff<<(8*b)) | uint64(k.data[at])<<(8*b)
				}
			}
			p.tr.known[watch] = h.New
			if p.leftOut(&h) {
				return nil
			}
			return p.tr.emit(h, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
