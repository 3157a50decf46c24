package inline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// Inlined runs code of ours at instructions of the program, inside of the process. Around each of
// them there is a window (patch.FindWindow). Its first bytes are a jump to our memory, which has
// copies of the window's instructions and our code at those requested. The code itself comes from
// Code. Where no window is possible, an int3 replaces the instruction.
//
// The code is installed while only one thread can be in the text. Reads of the process's memory
// return the program's own bytes (Memory).
type Inlined struct {
	process *tracee.Process
	stage   *recorded.Stage
	code    Code
	// exposed is called when a window has been removed, or a jump from its code.
	exposed func(w *Window) error
	sites   map[uint64]*Site
	// Returns are addresses that the program reaches without a jump of its own: signal handlers
	// return to them.
	Returns []uint64
	// windows are in ascending order.
	windows []*Window
	// unloaded is what waits for its object to be loaded again.
	unloaded []unloaded
	arenas   []*arena
	// Traps are the sites by the address after the int3 that stops for them.
	Traps map[uint64]*Site
	// trapped: there are sites whose instruction an int3 replaces.
	trapped bool
}

// Code makes the code that runs at instructions.
type Code interface {
	// Shared appends the code that the sites of an arena share. inline appends the code that
	// replaces a site's instruction; a.program appends the instruction itself.
	Shared(a *Assembler) error
	Inline(a *Assembler, s *Site) error
	// Trapped handles a thread that was stopped by an int3 of that code, or by one that replaces
	// the instruction.
	Trapped(t *tracee.Thread, s *tracee.SignalStop, site *Site) error
	// Faulted handles a fault in our own code; false: the fault is not from it.
	Faulted(t *tracee.Thread, s *tracee.SignalStop) (bool, error)
}

// Site is an instruction at which our code runs.
type Site struct {
	Inst   x86.Inst
	Number int
	window *Window // nil: it is an int3
	object tracee.Object
}

// Moved reports whether the instruction is in memory of ours, and not replaced by an int3.
func (s *Site) Moved() bool { return s.window != nil }

// Window is a window with the addresses of the copies of its instructions.
type Window struct {
	patch.Window
	Copies []uint64
	sites  []*Site
	jumps  []tracee.Words
}

// arena is memory of ours within reach of jumps from the program's text.
type arena struct {
	tracee.Span
	// placed are the copies of the program's instructions in it.
	placed []placedCode
}

type placedCode struct {
	tracee.Span
	inst *x86.Inst
}

func New(p *tracee.Process, s *recorded.Stage, code Code, exposed func(*Window) error) *Inlined {
	return &Inlined{process: p, stage: s, code: code, exposed: exposed, sites: map[uint64]*Site{}, Traps: map[uint64]*Site{}}
}

// Install puts the code at those sites whose objects are loaded, through a stopped thread, and
// returns the other sites.
func (in *Inlined) Install(t *tracee.Thread, sites []*Site) (left []*Site, err error) {
	maps, err := tracee.ReadMaps(in.process.PID)
	if err != nil {
		return nil, err
	}
	byMapping := map[uint64][]*Site{}
	for _, s := range sites {
		m := maps.Containing(s.Inst.PC)
		if m == nil || m.Perms[2] != 'x' {
			left = append(left, s)
			continue
		}
		s.object = m.Object()
		byMapping[m.Start] = append(byMapping[m.Start], s)
	}
	for _, list := range byMapping {
		slices.SortFunc(list, func(a, b *Site) int { return cmp.Compare(a.Inst.PC, b.Inst.PC) })
		if err := in.installIn(t, list); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(in.windows, func(a, b *Window) int { return cmp.Compare(a.Start, b.Start) })
	return left, nil
}

// installIn installs sites of one mapping, in ascending order.
func (in *Inlined) installIn(t *tracee.Thread, sites []*Site) error {
	windows := in.chooseWindows(sites)
	if len(windows) > 0 {
		if err := in.assemble(t, windows); err != nil {
			return err
		}
	}
	for _, w := range windows {
		for _, j := range w.jumps {
			if err := in.process.Memory.Replace(j.Addr, j.Data); err != nil {
				return err
			}
		}
		if len(w.jumps) > 0 {
			in.windows = append(in.windows, w)
		}
	}
	for _, s := range sites {
		in.sites[s.Inst.PC] = s
		if s.window != nil {
			continue
		}
		// It may be padding that the window before it covers.
		if err := in.Expose(s.Inst.PC); err != nil {
			return err
		}
		if err := in.trap(s); err != nil {
			return err
		}
	}
	return nil
}

// trap replaces an instruction by an int3.
func (in *Inlined) trap(s *Site) error {
	s.window, in.trapped = nil, true
	in.Traps[s.Inst.PC+1] = s
	return in.process.Memory.Replace(s.Inst.PC, []byte{tracee.Int3})
}

// HasTrapped reports whether there are sites, or have been, whose instruction is not in memory of ours.
func (in *Inlined) HasTrapped() bool { return in.trapped }

// Has reports whether there is a site at a pc.
func (in *Inlined) Has(pc uint64) bool { return in.sites[pc] != nil }

// Add puts an int3 at one more site while the program runs: a thread may be at any instruction, so
// none is moved. added is false if there is a site already.
func (in *Inlined) Add(s *Site) (added bool, err error) {
	if in.sites[s.Inst.PC] != nil {
		return false, nil
	}
	maps, err := tracee.ReadMaps(in.process.PID)
	if err != nil {
		return false, err
	}
	if m := maps.Containing(s.Inst.PC); m != nil {
		s.object = m.Object()
	}
	i := slices.IndexFunc(in.windows, func(w *Window) bool { return s.Inst.PC >= w.Start && s.Inst.PC < w.End })
	if i >= 0 {
		if err := in.removeWindow(i); err != nil {
			return false, err
		}
	}
	in.sites[s.Inst.PC] = s
	return true, in.trap(s)
}

// chooseWindows finds windows for sites. A window may have several sites.
func (in *Inlined) chooseWindows(sites []*Site) []*Window {
	pcs := make([]uint64, 0, len(sites))
	for _, s := range sites {
		pcs = append(pcs, s.Inst.PC)
	}
	search := patch.NewEntrySearch(pcs...)
	text, base, known := in.process.SearchEntries(search, pcs...)
	if !known {
		return nil
	}
	for _, pc := range in.Returns {
		search.Add(pc)
	}
	entries := search.Sorted()
	taken := in.patched()
	var list []*Window
	for _, s := range sites {
		if n := len(list); n > 0 && list[n-1].addSite(s) {
			continue
		}
		// Windows must not overlap.
		border := entries
		if n := len(list); n > 0 {
			i, _ := slices.BinarySearch(entries, list[n-1].End)
			border = slices.Insert(slices.Clone(entries), i, list[n-1].End)
		}
		w := patch.FindWindow(text, base, s.Inst.PC, border)
		if w == nil || slices.ContainsFunc(taken, w.Overlaps) || slices.ContainsFunc(list, func(x *Window) bool { return w.Overlaps(&x.Window) }) {
			continue
		}
		x := &Window{Window: *w}
		if x.addSite(s) {
			list = append(list, x)
		}
	}
	return list
}

// patched returns the text that the engine replaces.
func (in *Inlined) patched() []*patch.Window {
	var list []*patch.Window
	for p := range in.stage.Patches() {
		list = append(list, &patch.Window{Start: p.At, End: p.At + uint64(max(p.Length, 2))})
	}
	return list
}

// addSite adds a site to the window if its instruction is in it.
func (w *Window) addSite(s *Site) bool {
	if !slices.ContainsFunc(w.Moved, func(inst x86.Inst) bool { return inst.PC == s.Inst.PC }) {
		return false
	}
	w.sites = append(w.sites, s)
	s.window = w
	return true
}

// mostInline bounds the code of a site, and that shared by sites.
const mostInline = 3072

// assemble writes the code of windows into an arena. A window whose code is not possible has no
// jumps.
func (in *Inlined) assemble(t *tracee.Thread, windows []*Window) error {
	count := 1
	for _, w := range windows {
		count += len(w.sites)
	}
	size := (uint64(count)*mostInline + tracee.PageSize - 1) &^ (tracee.PageSize - 1)
	base, err := in.process.MapNear(t, windows[0].Start, size)
	if errors.Is(err, patch.ErrImpossible) {
		for _, w := range windows {
			w.give()
		}
		return nil
	}
	if err != nil {
		return err
	}
	x := &arena{Span: tracee.Span{Start: base, End: base + size}}
	in.process.Mapped = append(in.process.Mapped, x.Span)
	a := &Assembler{Assembler: patch.Assembler{Base: base}, in: in, arena: x}
	if err := in.code.Shared(a); err != nil {
		return err
	}
	for _, w := range windows {
		if err := a.window(w); errors.Is(err, patch.ErrImpossible) {
			w.give()
		} else if err != nil {
			return err
		}
	}
	if uint64(a.Len()) > size {
		return fmt.Errorf("replay: %d bytes of code for %d instructions", a.Len(), count)
	}
	in.arenas = append(in.arenas, x)
	_, err = in.process.Memory.WriteAt(a.Bytes(), int64(base))
	return err
}

// give gives up a window: its sites get an int3.
func (w *Window) give() {
	for _, s := range w.sites {
		s.window = nil
	}
	w.jumps = nil
}

// ArenaAt returns the arena that has a pc.
func (in *Inlined) ArenaAt(pc uint64) *arena {
	for _, x := range in.arenas {
		if pc >= x.Start && pc < x.End {
			return x
		}
	}
	return nil
}
