package ask

import (
	"errors"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay"
)

const (
	// mostInstructions bounds the instructions whose arrivals are counted, mostArrivals the arrivals.
	mostInstructions = 64
	mostArrivals     = 50_000
)

// exactMoments completes the moments of writes whose instruction may access other memory, too: a replay stops at each arrival at
// these instructions, and tells from the registers whether it is the write. Where the number of these arrivals is not that of the
// writes, as in a replay that is cut at mostArrivals, moments stay as they are.
func (a *asker) exactMoments(t *trace, indices []int, moments []evidence.Moment) error {
	c := &counter{trace: t, code: a.code(), instructions: map[evidence.Addr]*x86.Inst{}, found: map[countedKey][]evidence.Moment{}}
	c.choose(indices, moments)
	if len(c.instructions) == 0 {
		return nil
	}
	request := replay.ProbeRequest{Common: replay.Common{Image: a.q.Image, Unnamed: true},
		Probing: replay.Probing{At: c.at(), Files: c.files(), Begin: func() { clear(c.found); c.arrivals = 0 }, OnArrival: c.arrived}}
	if a.q.Until != nil {
		request.Hooks = []replay.Hook{{At: *a.q.Until, Do: func(*replay.Stopped) error { return replay.ErrEnough }}}
	}
	a.progress(Progress{Stage: StageDetails})
	a.answer.Coverage.Replays++
	if _, err := replay.Run(a.ctx, a.rec, request); err != nil {
		return err
	}
	c.fill(indices, moments)
	return nil
}

// countedKey is a word that an instruction writes after an event of a thread.
type countedKey struct {
	thread  uint32
	ordinal uint64
	pc      evidence.Addr
	word    evidence.Addr
}

// counter counts the arrivals of threads at instructions that write watched words.
type counter struct {
	*trace
	code         *image.Process
	instructions map[evidence.Addr]*x86.Inst
	// words are those that are watched, by their address with their size.
	words map[evidence.Addr]uint64
	// found are the moments of the writes, in their order.
	found    map[countedKey][]evidence.Moment
	arrivals int
}

func (c *counter) key(x *evidence.Access) countedKey {
	return countedKey{x.Thread, x.Ordinal, x.PC, c.log.Variables[x.Variable].Address + evidence.Addr(x.Offset)}
}

// choose finds the instructions of writes without a full moment.
func (c *counter) choose(indices []int, moments []evidence.Moment) {
	c.words = map[evidence.Addr]uint64{}
	for n, i := range indices {
		x := &c.log.Accesses[i]
		if moments[n].PC != 0 || x.By != evidence.ByProgram || x.PC == 0 || c.log.Variables[x.Variable].Partial() {
			continue
		}
		if c.instructions[x.PC] == nil {
			inst := c.instruction(x.PC)
			if inst == nil || len(c.instructions) == mostInstructions {
				continue
			}
			c.instructions[x.PC] = inst
		}
		c.words[c.key(x).word] = uint64(x.Size)
	}
}

// instruction returns the instruction at a pc; nil: it cannot be told which memory it writes from the registers before it.
func (c *counter) instruction(pc evidence.Addr) *x86.Inst {
	var code [15]byte
	n, err := c.code.ReadMemory(pc, code[:])
	if n == 0 && err != nil {
		return nil
	}
	inst, err := x86.Decode(code[:n], uint64(pc))
	if err != nil || inst.Repeats() {
		return nil
	}
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && (o.Repeated || o.Implicit || o.Memory.Segment != x86.SegNone) {
			return nil
		}
	}
	return &inst
}

func (c *counter) at() []evidence.Addr {
	var list []evidence.Addr
	for pc := range c.instructions {
		list = append(list, pc)
	}
	slices.Sort(list)
	return list
}

// files returns where the files are mapped that the instructions are of.
func (c *counter) files() map[evidence.Addr]replay.MappedFile {
	files := map[evidence.Addr]replay.MappedFile{}
	for pc := range c.instructions {
		if m := c.code.MappingAt(pc); m != nil && strings.HasPrefix(m.Path, "/") {
			files[pc] = replay.MappedFile{Path: strings.TrimSuffix(m.Path, " (deleted)"), Base: m.Start - evidence.Addr(m.Offset)}
		}
	}
	return files
}

// arrived notes an arrival for each watched word that the instruction is about to write.
func (c *counter) arrived(a *replay.Arrival) error {
	if c.arrivals++; c.arrivals > mostArrivals {
		return replay.ErrEnough
	}
	inst := c.instructions[a.Moment.PC]
	if inst == nil {
		return errors.New("ask: an arrival at an instruction that was not asked for")
	}
	regs, err := a.Registers()
	if err != nil {
		return err
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access != evidence.Write && o.Access != evidence.ReadWrite {
			continue
		}
		addr, known := o.Memory.Address(func(r x86.Reg) (uint64, bool) { return generalRegister(&regs, r) })
		if !known {
			continue
		}
		for word, size := range c.words {
			if addr < uint64(word)+size && addr+uint64(o.Size) > uint64(word) {
				key := countedKey{a.Moment.Thread, a.Moment.Ordinal, a.Moment.PC, word}
				c.found[key] = append(c.found[key], a.Moment)
			}
		}
	}
	return nil
}

// generalRegister is the value of a register of 64 bits; x86 and image number these alike.
func generalRegister(regs *image.Registers, r x86.Reg) (uint64, bool) {
	if !r.General() {
		return 0, false
	}
	return regs.Get(image.Register(r))
}

// fill fills in the moments of those writes of which as many were found as there are.
func (c *counter) fill(indices []int, moments []evidence.Moment) {
	writes := map[countedKey][]int{}
	for i := range c.log.Accesses {
		if x := &c.log.Accesses[i]; c.instructions[x.PC] != nil && x.By == evidence.ByProgram {
			writes[c.key(x)] = append(writes[c.key(x)], i)
		}
	}
	for n, i := range indices {
		key := c.key(&c.log.Accesses[i])
		list := writes[key]
		if moments[n].PC == 0 && len(list) > 0 && len(list) == len(c.found[key]) {
			moments[n] = c.found[key][slices.Index(list, i)]
		}
	}
}
