package verdict

import (
	"errors"
	"fmt"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay"
)

// boundsExperiment is an experiment that undoes whatever a function stores outside of what its
// code means: one store undone leaves the rest of the same defect.
type boundsExperiment struct {
	*work
	function image.Symbol
	// where: what is outside follows from the heap, or from start and end. Of a stack
	// they are those of the frame with this CFA, and as far from the CFA in others.
	where      region
	start, end evidence.Addr
	cfa        evidence.Addr
	before     bool // it stores before the start
	stores     []evidence.Addr
	calls      []outgoing
}

type region uint8

const (
	inHeap region = iota
	onStack
	static
)

// outgoing is an instruction that may store any number of bytes: a call of a library's
// function, or one that repeats itself. back is where it is done.
type outgoing struct{ pc, back evidence.Addr }

const (
	mostFunction = 1 << 16 // bytes of code
	mostBreaks   = 256
	// mostConfined bounds the stops of one replay.
	mostConfined = 20_000
	// farStored is how far outside a library's store is looked for.
	farStored = 1 << 12
)

var errConfined = fmt.Errorf("the function makes more than %d stores", mostConfined)

// boundsChange is the experiment for a link that lies outside of what it means; nil where
// the bounds are not known.
func (ce *chainExperiments) boundsChange(l *link) *change {
	if l.seen.Site == nil {
		return nil
	}
	x := &boundsExperiment{work: ce.chain.work}
	var ok bool
	if x.function, ok = ce.chain.Process.SymbolAt(l.seen.Site.PC); !ok || x.function.Size == 0 || x.function.Size > mostFunction {
		return nil
	}
	meant := "objects"
	if meant, ok = x.bounds(ce.chain, l, meant); !ok || !x.instructions(l) {
		return nil
	}
	name := x.function.Name
	if calls := x.Process.Symbolize(x.function.Addr, image.AtInstruction); len(calls) > 0 && calls[len(calls)-1].Site.Function != "" {
		name = calls[len(calls)-1].Site.Function
	}
	return &change{what: fmt.Sprintf("all that %s stores outside of %s undone", evidence.ShortName(name), meant),
		options: replay.FreeRequest{}, breaks: x.breaks}
}

// bounds finds out what is outside.
func (x *boundsExperiment) bounds(c *chain, l *link, meant string) (string, bool) {
	if x.heapAt(x.Process, l.victim.start) {
		x.where = inHeap
		return meant, true
	}
	st := &l.store
	if st.From != nil && st.MeantSize > 0 {
		x.start, x.end, meant = *st.From, *st.From+evidence.Addr(st.MeantSize), st.Meant
		x.before = l.victim.start < x.start
	} else if c.victim.damaged() {
		x.start, x.end = c.victim.start, c.victim.start
		meant = "its own memory, from " + c.victim.name + " on,"
	} else {
		return "", false
	}
	if c.Process.ModuleAt(x.start) != nil {
		x.where = static
		return meant, true
	}
	x.where = onStack
	for i := range l.seen.Stack.Frames {
		f := &l.seen.Stack.Frames[i]
		if f.Kind == evidence.Physical && f.CFA != 0 && x.holds(f.Site.PC) {
			x.cfa = f.CFA
			return meant, true
		}
	}
	return "", false
}

// holds reports whether code is the function's. The address that a call comes back to
// may be its end.
func (x *boundsExperiment) holds(pc evidence.Addr) bool {
	return pc >= x.function.Addr && pc <= x.function.Addr+evidence.Addr(x.function.Size)
}

func (x *boundsExperiment) heapAt(m agent.Memory, addr evidence.Addr) bool {
	heap, err := agent.Open(m, 0)
	return err == nil && heap.InObjects(addr)
}

// instructions chooses those to be looked at. Of the heap it is known what every store
// is to; of other memory only how the stores that were seen reach it.
func (x *boundsExperiment) instructions(l *link) bool {
	code := make([]byte, x.function.Size)
	if n, err := x.Process.ReadMemory(x.function.Addr, code); err != nil || n != len(code) {
		return false
	}
	list, _ := x86.Function(code, uint64(x.function.Addr))
	seen := map[evidence.Addr]bool{}
	for i := range l.log.Accesses {
		if a := &l.log.Accesses[i]; x.holds(a.PC) && l.has(a.Hit) {
			seen[a.PC] = true
		}
	}
	framed, like := false, map[x86.Memory]bool{}
	for i := range list {
		in := &list[i]
		framed = framed || in.Op == "mov" && len(in.Operands) == 2 && in.Operands[0].Reg == x86.RBP && in.Operands[1].Reg == x86.RSP
		if o := storedTo(in); o != nil && seen[evidence.Addr(in.PC)] && o.Memory.Index != x86.RegNone {
			like[o.Memory] = true
		}
	}
	byLibrary := len(seen) == 0
	for i := range list {
		in := &list[i]
		pc, next := evidence.Addr(in.PC), evidence.Addr(in.PC)+evidence.Addr(in.Len)
		o := storedTo(in)
		switch {
		case in.Flow == x86.FlowCall && byLibrary && !x.ownTarget(in):
			x.calls = append(x.calls, outgoing{pc, next})
		case o == nil || in.Flow != x86.FlowNext:
		case o.Repeated:
			if seen[pc] || x.where == inHeap {
				x.calls = append(x.calls, outgoing{pc, next})
			}
		case seen[pc] || x.where == inHeap && pointed(&o.Memory, framed) || x.where == onStack && like[o.Memory]:
			x.stores = append(x.stores, pc)
		}
	}
	n := len(x.stores) + 2*len(x.calls)
	return n > 0 && n < mostBreaks
}

// has reports whether a hit is one of those that the link is about.
func (l *link) has(hit uint64) bool {
	for _, h := range l.hits {
		if h == hit {
			return true
		}
	}
	return false
}

// storedTo is the memory that an instruction stores to, nil if it does not, or if it is
// the stack's top.
func storedTo(in *x86.Inst) *x86.Operand {
	for i := range in.Operands {
		o := &in.Operands[i]
		if o.IsMemory && (!o.Implicit || o.Repeated) && o.Access.Writes() {
			return o
		}
	}
	return nil
}

// pointed reports that an address is made of a pointer, and not the place of a variable
// of the frame, or of a static one.
func pointed(m *x86.Memory, framed bool) bool {
	return m.Segment == x86.SegNone && !m.Absolute && m.Base != x86.RIP && m.Base != x86.RSP && (m.Base != x86.RBP || !framed)
}

// ownTarget reports whether a call is of the program's own code, which does its own
// stores.
func (x *boundsExperiment) ownTarget(in *x86.Inst) bool {
	if !in.HasTarget {
		return false
	}
	s, ok := x.Process.SymbolAt(evidence.Addr(in.Target))
	if !ok || s.Addr != evidence.Addr(in.Target) || strings.HasSuffix(s.Name, "@plt") {
		return false
	}
	calls := x.Process.Symbolize(s.Addr, image.AtInstruction)
	return len(calls) > 0 && !image.LibraryCode(&calls[len(calls)-1].Site)
}

// boundsReplay is one replay's.
type boundsReplay struct {
	*boundsExperiment
	stops int
	// frames are the CFAs of the function's activations by thread, the innermost last.
	frames map[uint32][]evidence.Addr
	// open are the calls that a thread is in, by the stack pointer.
	open map[activation][]saved
}

type activation struct {
	thread uint32
	sp     evidence.Addr
	pc     evidence.Addr
}

// saved is memory as it was before a call.
type saved struct {
	addr evidence.Addr
	data []byte
	// beside is the heap object that it is beside of, nil if of none.
	beside *agent.Object
}

func (x *boundsExperiment) breaks() []replay.Break {
	r := &boundsReplay{boundsExperiment: x, frames: map[uint32][]evidence.Addr{}, open: map[activation][]saved{}}
	var list []replay.Break
	add := func(pc evidence.Addr, do func(*replay.Stopped, *image.Registers) error) {
		list = append(list, replay.Break{PC: pc, Changes: true, Do: func(s *replay.Stopped) error {
			if r.stops++; r.stops > mostConfined {
				return errConfined
			}
			regs, err := s.Registers()
			if err != nil {
				return err
			}
			return do(s, &regs)
		}})
	}
	if x.where == onStack {
		add(x.function.Addr, r.entered)
	}
	for _, call := range x.calls {
		// Behind one call another one may begin.
		add(call.back, func(s *replay.Stopped, regs *image.Registers) error { return r.restore(s, regs, call.pc) })
		add(call.pc, func(s *replay.Stopped, regs *image.Registers) error { return r.save(s, regs, call.pc) })
	}
	for _, pc := range x.stores {
		add(pc, r.store)
	}
	return list
}

// entered is for a thread at the function's first instruction: its CFA is above the
// return address (System V ABI for x86-64, 3.2.2).
func (r *boundsReplay) entered(s *replay.Stopped, regs *image.Registers) error {
	thread, cfa := s.Moment.Thread, regs.SP()+wordSize
	list := r.frames[thread]
	for len(list) > 0 && list[len(list)-1] <= cfa {
		list = list[:len(list)-1]
	}
	r.frames[thread] = append(list, cfa)
	return nil
}

// object is what the function means in the thread's activation; false if that is not
// known.
func (r *boundsReplay) object(thread uint32, sp evidence.Addr) (start, end evidence.Addr, ok bool) {
	if r.where == static {
		return r.start, r.end, true
	}
	list := r.frames[thread]
	for len(list) > 0 && list[len(list)-1] <= sp {
		list = list[:len(list)-1]
	}
	if len(list) == 0 {
		return 0, 0, false
	}
	by := list[len(list)-1] - r.cfa
	return r.start + by, r.end + by, true
}

// store skips a store that is outside.
func (r *boundsReplay) store(s *replay.Stopped, regs *image.Registers) error {
	addr, size, err := s.Stores()
	if err != nil {
		return nil // not one that can be undone: the run shows what comes of it
	}
	out, err := r.outside(s, regs, addr, evidence.Addr(size))
	if err != nil || !out {
		return err
	}
	return s.SkipStore()
}

func (r *boundsReplay) outside(s *replay.Stopped, regs *image.Registers, addr, size evidence.Addr) (bool, error) {
	if r.where != inHeap {
		start, end, ok := r.object(s.Moment.Thread, regs.SP())
		if r.before {
			return ok && addr < start, nil
		}
		return ok && addr+size > end, nil
	}
	heap, err := agent.Open(s, 0)
	if err != nil {
		return false, err
	}
	if !heap.InObjects(addr) {
		return false, nil
	}
	near, found, err := heap.Nearest(addr)
	if err != nil {
		return false, err
	}
	return found && !(near.Where == agent.Inside && near.Object.State == agent.Live && addr+size <= near.Object.End()), nil
}

// arguments are the registers in which functions get addresses (System V ABI for
// x86-64, 3.2.3), and in which instructions that repeat themselves have them.
var arguments = []image.Register{image.RDI, image.RSI, image.RDX, image.RCX, image.R8, image.R9}

// save keeps what is outside of the objects that a call is handed.
func (r *boundsReplay) save(s *replay.Stopped, regs *image.Registers, pc evidence.Addr) error {
	key := activation{s.Moment.Thread, regs.SP(), pc}
	if _, repeats := r.open[key]; repeats {
		return nil
	}
	var list []saved
	var err error
	if r.where == inHeap {
		list, err = r.besideObjects(s, regs)
	} else if start, end, ok := r.object(s.Moment.Thread, regs.SP()); ok && handed(regs, start, end) {
		switch {
		case !r.before:
			list = append(list, keep(s, end, farStored))
		case r.where == onStack:
			list = append(list, keep(s, regs.SP(), start-regs.SP()))
		default:
			list = append(list, keep(s, start-min(farStored, start), min(farStored, start)))
		}
	}
	if len(list) > 0 {
		r.open[key] = list
	}
	return err
}

// handed reports whether a call gets an address of an object, or of its end.
func handed(regs *image.Registers, start, end evidence.Addr) bool {
	for _, n := range arguments {
		if v, ok := regs.Get(n); ok && evidence.Addr(v) >= start && evidence.Addr(v) <= end {
			return true
		}
	}
	return false
}

// besideObjects keeps what is around the heap objects that a call is handed, but for
// what is in others of them.
func (r *boundsReplay) besideObjects(s *replay.Stopped, regs *image.Registers) ([]saved, error) {
	heap, err := agent.Open(s, 0)
	if err != nil {
		return nil, err
	}
	var objects []agent.Object
	for _, n := range arguments {
		v, _ := regs.Get(n)
		near, found, err := heap.Nearest(evidence.Addr(v))
		if err != nil {
			return nil, err
		}
		if found && near.Object.State == agent.Live && (near.Where == agent.Inside || near.Distance == 0) {
			objects = append(objects, near.Object)
		}
	}
	var list []saved
	for i := range objects {
		from, to := objects[i].End(), objects[i].End()+farStored
		low, high := objects[i].Addr-farStored, objects[i].Addr
		for j := range objects {
			if o := &objects[j]; o.Addr >= from && o.Addr < to {
				to = o.Addr
			}
			if o := &objects[j]; o.End() <= high && o.End() > low {
				low = o.End()
			}
		}
		behind, before := keep(s, from, to-from), keep(s, low, high-low)
		if page := high &^ (farStored - 1); len(before.data) == 0 && page > low { // nothing is mapped below
			before = keep(s, page, high-page)
		}
		behind.beside, before.beside = &objects[i], &objects[i]
		list = append(list, behind, before)
	}
	return list, nil
}

// keep is memory as far as it goes.
func keep(s *replay.Stopped, addr, size evidence.Addr) saved {
	data := make([]byte, size)
	n, _ := s.ReadMemory(addr, data)
	return saved{addr: addr, data: data[:n]}
}

// restore puts back what the call changed outside.
func (r *boundsReplay) restore(s *replay.Stopped, regs *image.Registers, pc evidence.Addr) error {
	key := activation{s.Moment.Thread, regs.SP(), pc}
	var errs []error
	for _, m := range r.open[key] {
		there, err := r.still(s, m.beside)
		errs = append(errs, err)
		if there && len(m.data) > 0 {
			errs = append(errs, s.WriteMemory(m.addr, m.data))
		}
	}
	delete(r.open, key)
	return errors.Join(errs...)
}

// still reports whether an object is what it was: what the heap did to it stays.
func (r *boundsReplay) still(s *replay.Stopped, was *agent.Object) (bool, error) {
	if was == nil {
		return true, nil
	}
	heap, err := agent.Open(s, 0)
	if err != nil {
		return false, err
	}
	now, found, err := heap.Lookup(was.Addr)
	if err != nil {
		return false, err
	}
	return found && now.State == agent.Live && now.Addr == was.Addr && now.Size == was.Size, nil
}
