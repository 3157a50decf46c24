package replay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
)

// inlined runs code of ours at instructions of the program's, inside of the
// process: around each of them there is a window (findWindow) of which the first
// bytes are a jump to memory of ours, where the window's instructions stand, with
// our code around those that are meant. What that code does is inlineCode's
// matter. Where no window is possible, an int3 stands in the instruction's place.
//
// It is put there while one thread alone can be in that code. What reads the
// process's memory sees the program's own bytes (processMemory).
type inlined struct {
	c     *controller
	code  inlineCode
	sites map[uint64]*inlineSite
	// returns are where the program comes to by no jump of its own: handlers of
	// signals return there.
	returns []uint64
	// windows are in ascending order.
	windows []*inlineWindow
	arenas  []*arena
	// traps are the sites by the address behind an int3 that stops for them.
	traps map[uint64]*inlineSite
}

// inlineCode is what runs at instructions.
type inlineCode interface {
	// shared appends what the sites of one arena have in common, and inline what
	// stands in the place of a site's instruction; that itself is a.program.
	shared(a *inlineAssembler) error
	inline(a *inlineAssembler, s *inlineSite) error
	// trapped is for a thread that an int3 of that code has stopped, or the one in
	// the instruction's place.
	trapped(t *thread, s *signalStop, site *inlineSite) error
	// faulted is for a fault of our own code; false: it is none.
	faulted(t *thread, s *signalStop) (bool, error)
}

// inlineSite is an instruction at which code of ours runs.
type inlineSite struct {
	inst   x86.Inst
	number int
	window *inlineWindow // nil: it is an int3
}

// inlineWindow is a window with the addresses of what stands for each of its
// instructions.
type inlineWindow struct {
	window
	at    []uint64
	sites []*inlineSite
	jumps []words
}

// arena is memory of ours that jumps from the program's text reach.
type arena struct {
	span
	// placed are the program's instructions that stand in it.
	placed []placedCode
}

type placedCode struct {
	span
	inst *x86.Inst
}

func newInlined(c *controller, code inlineCode) *inlined {
	return &inlined{c: c, code: code, sites: map[uint64]*inlineSite{}, traps: map[uint64]*inlineSite{}}
}

// install puts the code at those sites whose objects are loaded, for a thread that
// is stopped, and returns the others.
func (in *inlined) install(t *thread, sites []*inlineSite) (left []*inlineSite, err error) {
	maps, err := readMaps(in.c.pid)
	if err != nil {
		return nil, err
	}
	byMapping := map[uint64][]*inlineSite{}
	for _, s := range sites {
		m := maps.at(s.inst.PC)
		if m == nil || m.perms[2] != 'x' {
			left = append(left, s)
			continue
		}
		byMapping[m.start] = append(byMapping[m.start], s)
	}
	for _, list := range byMapping {
		slices.SortFunc(list, func(a, b *inlineSite) int { return cmp.Compare(a.inst.PC, b.inst.PC) })
		if err := in.installIn(t, list); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(in.windows, func(a, b *inlineWindow) int { return cmp.Compare(a.start, b.start) })
	return left, nil
}

// installIn is for sites of one mapping, in ascending order.
func (in *inlined) installIn(t *thread, sites []*inlineSite) error {
	windows := in.chooseWindows(sites)
	if len(windows) > 0 {
		if err := in.assemble(t, windows); err != nil {
			return err
		}
	}
	for _, w := range windows {
		for _, j := range w.jumps {
			if err := in.c.memory.replace(j.addr, j.data); err != nil {
				return err
			}
		}
		if len(w.jumps) > 0 {
			in.windows = append(in.windows, w)
		}
	}
	for _, s := range sites {
		in.sites[s.inst.PC] = s
		if s.window == nil {
			if err := in.trap(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// trap puts an int3 in an instruction's place.
func (in *inlined) trap(s *inlineSite) error {
	s.window = nil
	in.traps[s.inst.PC+1] = s
	return in.c.memory.replace(s.inst.PC, []byte{0xcc})
}

// chooseWindows finds windows for sites. One may have several.
func (in *inlined) chooseWindows(sites []*inlineSite) []*inlineWindow {
	pcs := make([]uint64, 0, len(sites))
	for _, s := range sites {
		pcs = append(pcs, s.inst.PC)
	}
	search := newEntrySearch(pcs...)
	text, base, known := search.search(in.c, pcs...)
	if !known {
		return nil
	}
	for _, pc := range in.returns {
		search.add(pc)
	}
	entries := search.sorted()
	taken := in.patched()
	var list []*inlineWindow
	for _, s := range sites {
		if n := len(list); n > 0 && list[n-1].add(s) {
			continue
		}
		// What another window has must not be part of this one.
		border := entries
		if n := len(list); n > 0 {
			i, _ := slices.BinarySearch(entries, list[n-1].end)
			border = slices.Insert(slices.Clone(entries), i, list[n-1].end)
		}
		w := findWindow(text, base, s.inst.PC, border)
		if w == nil || slices.ContainsFunc(taken, w.overlaps) || slices.ContainsFunc(list, func(x *inlineWindow) bool { return w.overlaps(&x.window) }) {
			continue
		}
		x := &inlineWindow{window: *w}
		if x.add(s) {
			list = append(list, x)
		}
	}
	return list
}

// patched is the text that the engine replaces.
func (in *inlined) patched() []*window {
	var list []*window
	for p := range in.c.stage().patches() {
		list = append(list, &window{start: p.At, end: p.At + uint64(max(p.Length, 2))})
	}
	return list
}

// add makes a site one of the window's, if its instruction is.
func (w *inlineWindow) add(s *inlineSite) bool {
	if !slices.ContainsFunc(w.moved, func(inst x86.Inst) bool { return inst.PC == s.inst.PC }) {
		return false
	}
	w.sites = append(w.sites, s)
	s.window = w
	return true
}

// mostInline bounds the code of a site, and of what sites share.
const mostInline = 1536

// assemble makes the code of windows, in an arena. Those that cannot be made have
// no jumps.
func (in *inlined) assemble(t *thread, windows []*inlineWindow) error {
	count := 1
	for _, w := range windows {
		count += len(w.sites)
	}
	size := (uint64(count)*mostInline + pageSize - 1) &^ (pageSize - 1)
	base, err := in.c.mapNear(t, windows[0].start, size)
	if errors.Is(err, errNoProbe) {
		for _, w := range windows {
			w.give()
		}
		return nil
	}
	if err != nil {
		return err
	}
	x := &arena{span: span{base, base + size}}
	in.c.mapped = append(in.c.mapped, x.span)
	a := &inlineAssembler{assembler: assembler{page: base}, in: in, arena: x}
	if err := in.code.shared(a); err != nil {
		return err
	}
	for _, w := range windows {
		if err := a.window(w); errors.Is(err, errNoProbe) {
			w.give()
		} else if err != nil {
			return err
		}
	}
	if uint64(a.Len()) > size {
		return fmt.Errorf("replay: %d bytes of code for %d instructions", a.Len(), count)
	}
	in.arenas = append(in.arenas, x)
	_, err = in.c.memory.WriteAt(a.Bytes(), int64(base))
	return err
}

// give up a window: its sites are int3.
func (w *inlineWindow) give() {
	for _, s := range w.sites {
		s.window = nil
	}
	w.jumps = nil
}

// mapNear maps memory that jumps from pc reach, and says where, or errNoProbe.
func (c *controller) mapNear(t *thread, pc, size uint64) (uint64, error) {
	maps, err := readMaps(c.pid)
	if err != nil {
		return 0, err
	}
	const step, steps = 256 << 20, 7 // up to 1.75 GiB: displacements have 31 bits
	for i := range int64(2 * steps) {
		by := (steps - i/2) * step // far from where the program's mappings grow
		if i%2 != 0 {
			by = -by
		}
		at := (pc + uint64(by)) &^ (pageSize - 1)
		if at < 1<<16 || at+size >= 1<<47 || maps.overlaps(at-pageSize, at+size+pageSize) {
			continue
		}
		result, err := ptrace.SystemCall(t.tid, unix.SYS_MMAP, at, size,
			unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
		if err != nil {
			return 0, err
		}
		if uint64(result) == at {
			return at, nil
		}
	}
	return 0, errNoProbe
}

// arenaAt is the arena that has a pc.
func (in *inlined) arenaAt(pc uint64) *arena {
	for _, x := range in.arenas {
		if pc >= x.start && pc < x.end {
			return x
		}
	}
	return nil
}

// patches are what the engine does to the program's text.
func (s *stage) patches() iter.Seq[agent.RawSitePatch] {
	return func(yield func(agent.RawSitePatch) bool) {
		for at := 0; at+siteSize <= len(s.sites); at += siteSize {
			var p agent.RawSitePatch
			if _, err := binary.Decode(s.sites[at:], binary.LittleEndian, &p); err == nil && !yield(p) {
				return
			}
		}
	}
}
