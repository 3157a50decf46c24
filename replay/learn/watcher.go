package learn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder/sites"
)

// watcher looks at the instructions of traced replays.
type watcher struct {
	races
	order   *order
	library record.Text
	// ordered are the addresses of instructions that the recording orders.
	ordered map[uint64]bool
	// windows is code that is executed elsewhere.
	windows []sites.Addresses
	// own is code that has its order from events.
	own          []sites.Addresses
	instructions map[*x86.Inst]*instruction
	threads      map[uint32]*thread
	latest       *thread
	executed     uint64 // of this replay
	// stubs are pcs of code that is executed in the place of windows.
	stubs map[uint64]bool
}

// thread is a thread of a traced replay.
type thread struct {
	clocked
	ordinal  uint64
	number   uint32
	executed uint64            // since its last event
	arrivals map[uint64]uint64 // at the program's instructions, since then
	general  [16]uint64
	values   values
	recent   [recentAccesses]recentAccess // a ring
	next     int
}

// recentAccesses is how many accesses of a loop that waits are looked at.
const recentAccesses = 512

type recentAccess struct {
	pc   uint64
	word uint64
	read bool
}

// instruction is what the watcher needs of an instruction.
type instruction struct {
	inst      *x86.Inst
	transfers []transfer.Transfer
	operands  []*x86.Operand // in memory
	canOrder  bool
}

func newWatcher(rec *record.Recording) (*watcher, error) {
	o, err := readOrder(rec.Log)
	if err != nil {
		return nil, err
	}
	w := &watcher{races: newRaces(), order: o, library: rec.Manifest.Agent.Path, instructions: map[*x86.Inst]*instruction{}, stubs: map[uint64]bool{}}
	if err := w.readTable(rec); err != nil {
		return nil, err
	}
	for _, m := range rec.Manifest.Start.Mappings {
		if sites.OrdersItself(string(m.Path)) {
			w.own = append(w.own, sites.Addresses{Start: uint64(m.Start), End: uint64(m.End)})
		}
	}
	return w, nil
}

// mostTable bounds the patch table of a recording.
const mostTable = 64 << 20

// readTable reads the recording's patch table.
func (w *watcher) readTable(rec *record.Recording) error {
	w.ordered = map[uint64]bool{}
	f, err := rec.File(record.SitesName)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostTable))
	if err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	var p agent.RawSitePatch
	var code agent.RawSiteCode // of the same size
	for size := binary.Size(&p); len(b) >= size; b = b[size:] {
		binary.Decode(b, binary.LittleEndian, &p) // it has the size
		binary.Decode(b, binary.LittleEndian, &code)
		switch p.Kind {
		case agent.PatchAtomic:
			w.windows = append(w.windows, sites.Addresses{Start: p.At, End: p.Resume})
		case agent.PatchOperation:
			w.ordered[code.At] = true
		}
	}
	return nil
}

// begin prepares for a replay.
func (w *watcher) begin() {
	w.threads, w.latest, w.executed = map[uint32]*thread{}, nil, 0
	w.races.begin()
}

// each takes the next instruction.
func (w *watcher) each(x *replay.Executed) {
	t := w.threads[x.Thread]
	if t == nil {
		t = &thread{values: newValues(), number: x.Thread}
		w.add(&t.clocked, x.Thread)
		w.threads[x.Thread] = t
	}
	w.latest = t
	if x.Again || x.Inst == nil {
		return
	}
	if x.Ordinal != t.ordinal {
		t.ordinal, t.executed, t.arrivals = x.Ordinal, 0, map[uint64]uint64{}
		begin, end := w.order.step(x.Thread, x.Ordinal)
		w.step(&t.clocked, begin, end)
	}
	if x.Called != 0 {
		// Which of the functions synchronise is not known: objects that two threads hand over are taken to be locks.
		w.synchronise(&t.clocked, t.general[x86.RDI], t.general[x86.RSI])
		t.values.called()
	}
	t.executed++
	w.executed++
	t.general = x.General
	pc := x.PC
	t.arrivals[pc]++
	if x.Stub {
		w.stubs[pc] = true
		if pc = x.At; pc == 0 {
			return
		}
	}
	if slices.ContainsFunc(w.own, func(r sites.Addresses) bool { return pc >= r.Start && pc < r.End }) {
		return
	}
	w.look(t, x, pc)
}

// look notes the accesses of an instruction of the program, and where its values go.
func (w *watcher) look(t *thread, x *replay.Executed, pc uint64) {
	in := w.instructions[x.Inst]
	if in == nil {
		in = newInstruction(x.Inst)
		w.instructions[x.Inst] = in
	}
	if x.Stub && slices.ContainsFunc(in.operands, func(o *x86.Operand) bool { return o.Memory.Segment != x86.SegNone }) {
		return // the engine's, noted as the beginning of the program's instruction
	}
	for _, o := range in.operands {
		addr, ok := addressOf(o, &x.General)
		if !ok || o.Memory.Segment != x86.SegNone || addr >= agent.EngineBase && addr < agent.EngineStacks {
			continue
		}
		a := access{pc: pc, addr: addr, size: uint64(o.Size), reads: o.Access.Reads(), writes: o.Access.Writes(), ordered: w.ordered[pc], canOrder: in.canOrder}
		w.access(&t.clocked, &a)
		if !nearStack(addr, &x.General) {
			t.recent[t.next%recentAccesses] = recentAccess{pc, addr / wordSize, a.reads && !a.writes}
			t.next++
		}
	}
	w.follow(t.values, in, pc, &x.General)
}

func newInstruction(inst *x86.Inst) *instruction {
	in := &instruction{inst: inst, transfers: transfer.Of(inst), canOrder: sites.CanOrder(inst)}
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && o.Access != "" && o.Size > 0 {
			in.operands = append(in.operands, o)
		}
	}
	return in
}

func addressOf(o *x86.Operand, general *[16]uint64) (uint64, bool) {
	return o.Memory.Address(func(r x86.Reg) (uint64, bool) {
		if !r.General() {
			return 0, false
		}
		return general[r], true
	})
}

// nearStack reports whether an address is near the stack pointer: in a frame of the last calls.
func nearStack(addr uint64, general *[16]uint64) bool {
	const below, above = 128, 64 << 10
	sp := general[x86.RSP]
	return addr >= sp-below && addr < sp+above
}

// computes reports whether the thread that ran last has executed many instructions without an event.
func (w *watcher) computes() bool {
	const long = 20_000
	return w.latest != nil && w.latest.executed >= long
}

// spins reports whether it seems to wait in a loop: the last accesses are to few words.
func (w *watcher) spins() bool {
	const few = 32
	if !w.computes() {
		return false
	}
	words := map[uint64]bool{}
	for _, a := range w.latest.recent {
		words[a.word] = true
	}
	return len(words) <= few
}

// place is where a thread that computes can be kept back: in its loop, but not in code that is executed elsewhere, after
// few rounds, as each arrival is a stop.
func (w *watcher) place() (eventlog.Preemption, bool) {
	const rounds = 100
	if !w.spins() {
		return eventlog.Preemption{}, false
	}
	t := w.latest
	p := eventlog.Preemption{Thread: t.number, Ordinal: t.ordinal, Class: eventlog.PointEvent, Until: eventlog.Never}
	for _, pc := range slices.Sorted(maps.Keys(t.arrivals)) {
		if t.arrivals[pc] < 10*rounds || w.isElsewhere(pc) {
			continue
		}
		p.Class, p.PC, p.Count = eventlog.PointPC, evidence.Addr(pc), rounds
	}
	return p, true
}

// isElsewhere reports whether a pc is not of the program's own code, or is in a window.
func (w *watcher) isElsewhere(pc uint64) bool {
	holds := func(r sites.Addresses) bool { return pc >= r.Start && pc < r.End }
	return w.stubs[pc] || slices.ContainsFunc(w.own, holds) || slices.ContainsFunc(w.windows, holds)
}

// waits are the words that the thread that ran last reads again and again, without an event.
func (w *watcher) waits() (words []uint64) {
	t := w.latest
	if !w.computes() || t.next < recentAccesses {
		return nil
	}
	written := map[uint64]bool{}
	for _, a := range t.recent {
		written[a.word] = written[a.word] || !a.read
	}
	for _, a := range t.recent {
		if !written[a.word] && w.decides[a.pc] && !slices.Contains(words, a.word) {
			words = append(words, a.word)
		}
	}
	const most = 16 // more is no loop that waits
	if len(words) > most {
		return nil
	}
	return words
}

// unordered returns the addresses of accesses to learn, those to the words with most races first. If branches depend on some of
// the words, only these: the order of others may follow from theirs.
func (w *watcher) unordered() []uint64 {
	var deciding, all []uint64
	for _, x := range w.words(w.waits()) {
		decides := slices.ContainsFunc(x.pcs, func(pc uint64) bool { return w.decides[pc] })
		for _, pc := range x.pcs {
			if w.ordered[pc] || slices.Contains(all, pc) {
				continue
			}
			all = append(all, pc)
			if decides {
				deciding = append(deciding, pc)
			}
		}
	}
	if len(deciding) > 0 {
		return deciding
	}
	return all
}
