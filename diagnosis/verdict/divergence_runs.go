package verdict

import (
	"encoding/binary"
	"slices"
	"strings"

	"diagnose/delta"
	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
	"diagnose/replay"
	"diagnose/replay/record"
)

// The bounds of the comparison of branches: how often a replay stops, how often it is begun again, and how many runs of
// each kind are compared.
const (
	mostBranchStops  = 20_000
	mostBranchRounds = 6
	mostBranchRuns   = 32
)

// branchPoint is a branch of a failing run that is looked for in other runs.
type branchPoint struct {
	inst    *x86.Inst
	compare *x86.Inst // nil: what it compares is not known there
	entry   evidence.Addr
	ways    []delta.Way
}

// branchPoints are the branches of conditions, by their instructions.
type branchPoints map[evidence.Addr]*branchPoint

func pointsOf(conditions []provenance.Condition, ways []delta.Way, decode func(evidence.Addr) (*x86.Inst, bool)) branchPoints {
	points := branchPoints{}
	for i := range conditions {
		c := &conditions[i]
		p := points[c.PC]
		if p == nil {
			inst, ok := decode(c.PC)
			if !ok {
				continue
			}
			p = &branchPoint{inst: inst, compare: c.Compare, entry: c.Entry}
			points[c.PC] = p
		}
		if !slices.Contains(p.ways, ways[i]) {
			p.ways = append(p.ways, ways[i])
		}
	}
	return points
}

// branchesOf runs a recording again, and finds which ways it takes on from branches. A branch that it comes to too often without
// taking the failing run's ways counts as if it had taken them, so that nothing is said of it.
func (ds *divergenceSearch) branchesOf(rec *record.Recording, points branchPoints) (*delta.Branches, error) {
	open := branchPoints{}
	for pc, p := range points {
		open[pc] = p
	}
	out := delta.NewBranches()
	for range mostBranchRounds {
		look := &branchLook{points: open, out: out}
		_, err := replay.Run(ds.progress.ctx, rec, replay.ProbeRequest{Common: replay.Common{Image: ds.in.Image, Unnamed: true}, Probing: replay.Probing{At: look.places(), Begin: look.begin, OnArrival: look.arrived}})
		if err != nil {
			return nil, err
		}
		if look.stops < mostBranchStops {
			return out, nil
		}
		look.close()
	}
	for _, p := range open {
		p.take(out)
	}
	return out, nil
}

// take notes all ways of a branch.
func (p *branchPoint) take(out *delta.Branches) {
	for _, way := range p.ways {
		out.Add(way, nil)
	}
}

// branchLook is one replay that stops at branches.
type branchLook struct {
	points branchPoints
	out    *delta.Branches
	stops  int
	counts map[evidence.Addr]int
	// calls are the functions that each thread is in, of those that have a branch.
	calls map[uint32][]branchCall
}

// branchCall is an activation of a function: its first instruction, the stack pointer there and the address to which it returns.
type branchCall struct{ entry, sp, returns evidence.Addr }

func (b *branchLook) begin() {
	b.stops, b.counts, b.calls = 0, map[evidence.Addr]int{}, map[uint32][]branchCall{}
}

// places are the branches and the first instructions of their functions.
func (b *branchLook) places() (list []evidence.Addr) {
	for pc, p := range b.points {
		list = append(list, pc)
		if p.entry != 0 {
			list = append(list, p.entry)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// close leaves out the branches of which enough is known, after a replay that stopped too often.
func (b *branchLook) close() {
	for pc, p := range b.points {
		if b.counts[pc] > mostBranchStops/len(b.points)/2 {
			p.take(b.out)
		}
		if !slices.ContainsFunc(p.ways, func(way delta.Way) bool { return !b.out.Took(way) }) {
			delete(b.points, pc)
		}
	}
}

func (b *branchLook) arrived(a *replay.Arrival) error {
	if b.stops++; b.stops >= mostBranchStops {
		return replay.ErrEnough
	}
	regs, err := a.Registers()
	if err != nil {
		return err
	}
	pc := regs.PC()
	p := b.points[pc]
	if p == nil {
		return b.entered(a, &regs)
	}
	b.counts[pc]++
	m := &machine{regs: &regs, read: a.ReadMemory}
	if next, ok := m.next(p.inst); ok {
		at := delta.Branch{PC: pc, Caller: b.caller(a.Moment.Thread, p.entry, regs.SP())}
		b.out.Add(delta.Way{Branch: at, Next: next}, m.compared(p.compare))
	}
	return nil
}

// entered notes the call of a function.
func (b *branchLook) entered(a *replay.Arrival, regs *image.Registers) error {
	const deepest = 10_000
	var word [wordSize]byte
	if n, err := a.ReadMemory(regs.SP(), word[:]); err != nil || n != wordSize {
		return err
	}
	list := leave(b.calls[a.Moment.Thread], regs.SP())
	if len(list) < deepest {
		list = append(list, branchCall{regs.PC(), regs.SP(), evidence.Addr(binary.LittleEndian.Uint64(word[:]))})
	}
	b.calls[a.Moment.Thread] = list
	return nil
}

// leave takes the functions off that have returned.
func leave(calls []branchCall, sp evidence.Addr) []branchCall {
	for len(calls) > 0 && calls[len(calls)-1].sp <= sp {
		calls = calls[:len(calls)-1]
	}
	return calls
}

// caller is the address to which a thread's innermost function returns, if that is the one which begins at entry; 0: it is not known.
func (b *branchLook) caller(thread uint32, entry, sp evidence.Addr) evidence.Addr {
	calls := leave(b.calls[thread], sp-1)
	b.calls[thread] = calls
	if n := len(calls); n > 0 && entry != 0 && calls[n-1].entry == entry {
		return calls[n-1].returns
	}
	return 0
}

// machine is a stopped thread.
type machine struct {
	regs *image.Registers
	read func(evidence.Addr, []byte) (int, error)
}

// next is where a branch leads.
func (m *machine) next(inst *x86.Inst) (evidence.Addr, bool) {
	if inst.Flow == x86.FlowJump && !inst.HasTarget && len(inst.Operands) > 0 {
		to, ok := m.operand(&inst.Operands[0])
		return evidence.Addr(to), ok
	}
	holds, ok := transfer.Holds(inst.Op, m.regs.Flags)
	if holds {
		return evidence.Addr(inst.Target), ok && inst.HasTarget
	}
	return evidence.Addr(inst.PC) + evidence.Addr(inst.Len), ok
}

// compared are the values that an instruction compares, but for its constants; nil: they are not known.
func (m *machine) compared(inst *x86.Inst) (list []uint64) {
	if inst == nil || inst.Op != "cmp" && inst.Op != "test" {
		return nil
	}
	for k := range inst.Operands {
		o := &inst.Operands[k]
		if o.IsImm || k > 0 && !o.IsMemory && !inst.Operands[0].IsMemory && o.Reg == inst.Operands[0].Reg {
			continue
		}
		v, ok := m.operand(o)
		if !ok {
			return nil
		}
		list = append(list, v)
	}
	return list
}

// operand is the value of an operand of at most 8 bytes.
func (m *machine) operand(o *x86.Operand) (uint64, bool) {
	value := func(r x86.Reg) (uint64, bool) {
		if !r.General() {
			return 0, false
		}
		return m.regs.Get(r)
	}
	size := o.Size
	if size < 1 || size > wordSize || o.RegName != "" && strings.HasSuffix(o.RegName, "h") {
		return 0, false
	}
	if !o.IsMemory {
		v, ok := value(o.Reg)
		return v & (^uint64(0) >> (64 - 8*size)), ok
	}
	addr, ok := o.Memory.Address(value)
	if !ok || o.Memory.Segment != 0 {
		return 0, false
	}
	var word [wordSize]byte
	n, err := m.read(evidence.Addr(addr), word[:size])
	return binary.LittleEndian.Uint64(word[:]), err == nil && n == size
}
