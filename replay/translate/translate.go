package translate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// Translator executes the code of a process in copies.
type Translator struct {
	process *tracee.Process
	pid     int // that has the memory below
	data    uint64
	log     tracee.Span
	arenas  []*arena
	source  source
	// stops are the addresses of instructions that are not copied, as threads stop there.
	stops map[uint64]bool
	// blocks are by their number, byPC by the program's address; nil there: the code is not translated.
	blocks []*block
	byPC   map[uint64]*block
	// byCode are the blocks by the start of their copies, in ascending order in each arena.
	byCode []*block
	// exits are the program's addresses to which copies lead that stop, by the address after their int3. misses are the
	// addresses after those of indirect jumps.
	exits  map[uint64]uint64
	misses map[uint64]bool
	// waiting are jumps to the exit of an address that has no copy.
	waiting map[uint64][]uint64
	buffer  []byte
	// fails are the threads, by the kernel's number, that neither block nor ignore SIGSEGV.
	fails map[int]bool
}

// New returns a translator for a process. It maps nothing before the first Run.
func New(p *tracee.Process) *Translator {
	x := &Translator{process: p, pid: p.PID, stops: map[uint64]bool{}, buffer: make([]byte, logSize)}
	x.source.process = p
	x.forget()
	return x
}

// forget drops all copies.
func (x *Translator) forget() {
	x.blocks, x.byPC, x.byCode = nil, map[uint64]*block{}, nil
	x.exits, x.misses, x.waiting = map[uint64]uint64{}, map[uint64]bool{}, map[uint64][]uint64{}
	x.fails = map[int]bool{}
	x.source.clear()
	for _, a := range x.arenas {
		a.next = a.Start
	}
}

// flush drops all copies, of a process that is stopped outside of them.
func (x *Translator) flush() error {
	x.forget()
	if x.data == 0 {
		return nil
	}
	return x.clearTable()
}

// Renew is called before a Run if the process's memory may have changed other than by Run: it drops the copies of code that
// is no longer there.
func (x *Translator) Renew() error {
	clear(x.fails)
	if x.source.same() {
		return nil
	}
	return x.flush()
}

// stopAt ends runs before these instructions, from now on.
func (x *Translator) stopAt(pcs []uint64) error {
	flush := false
	for _, pc := range pcs {
		if !x.stops[pc] {
			x.stops[pc] = true
			flush = flush || x.source.pages[pc&^(tracee.PageSize-1)] != nil
		}
	}
	if !flush {
		return nil
	}
	return x.flush()
}

// copyOf returns the copy of the code at a pc, and translates what the code leads to; nil: it is not translated.
func (x *Translator) copyOf(t *tracee.Thread, pc uint64) (*block, error) {
	if b, known := x.byPC[pc]; known {
		return b, nil
	}
	todo := []uint64{pc}
	for n := 0; len(todo) > 0 && n < mostAtOnce; todo = todo[1:] {
		if _, known := x.byPC[todo[0]]; known {
			continue
		}
		n++
		b, err := x.translate(t, todo[0])
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		last := b.code[len(b.code)-1].inst
		if last.HasTarget && last.Flow != x86.FlowNext {
			todo = append(todo, last.Target)
		}
		if last.Flow != x86.FlowJump && last.Flow != x86.FlowReturn {
			todo = append(todo, b.next)
		}
	}
	return x.byPC[pc], nil
}

// errFull says that an arena has no room for another block.
var errFull = errors.New("replay: the translator's memory is full")

// translate makes the copy of one block.
func (x *Translator) translate(t *tracee.Thread, pc uint64) (*block, error) {
	b := x.find(pc)
	if b == nil {
		x.byPC[pc] = nil
		return nil, nil
	}
	home, err := x.arenaFor(t, pc)
	if errors.Is(err, patch.ErrImpossible) {
		x.byPC[pc] = nil
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	const room = 64 << 10 // for the longest block
	if home.End-home.next < room {
		return nil, errFull
	}
	b.id = uint32(len(x.blocks))
	a := &assembler{Assembler: patch.Assembler{Base: home.next}, x: x, b: b}
	if err := a.assemble(); errors.Is(err, patch.ErrImpossible) {
		x.byPC[pc] = nil
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	x.blocks = append(x.blocks, b)
	x.byPC[pc] = b
	return b, x.place(home, a)
}

// place writes a copy into the process, and connects it with others.
func (x *Translator) place(home *arena, a *assembler) error {
	for _, l := range a.links {
		to := uint64(0)
		if b := x.byPC[l.target]; b != nil {
			to = b.start
		}
		if d := int64(to - l.at - 4); to == 0 || d != int64(int32(d)) {
			if to == 0 {
				x.waiting[l.target] = append(x.waiting[l.target], l.at)
			}
			to = a.Here()
			a.WriteByte(tracee.Int3)
			x.exits[a.Here()] = l.target
		}
		binary.LittleEndian.PutUint32(a.Bytes()[l.at-a.Base:], uint32(to-l.at-4))
	}
	for _, at := range a.misses {
		x.misses[at] = true
	}
	if err := x.write(a.Base, a.Bytes()); err != nil {
		return err
	}
	home.next = (a.Here() + 15) &^ 15
	b := a.b
	at := sort.Search(len(x.byCode), func(i int) bool { return x.byCode[i].start > b.start })
	x.byCode = append(x.byCode, nil)
	copy(x.byCode[at+1:], x.byCode[at:])
	x.byCode[at] = b
	pc := b.code[0].inst.PC
	for _, from := range x.waiting[pc] {
		d := int64(b.start - from - 4)
		if d != int64(int32(d)) {
			continue // the exit stays
		}
		if err := x.write(from, binary.LittleEndian.AppendUint32(nil, uint32(d))); err != nil {
			return err
		}
	}
	delete(x.waiting, pc)
	return x.enter(pc, b.start)
}

// blockAt returns the block that has a copy at an address; nil if there is none.
func (x *Translator) blockAt(code uint64) *block {
	at := sort.Search(len(x.byCode), func(i int) bool { return x.byCode[i].start > code })
	if at == 0 {
		return nil
	}
	return x.byCode[at-1]
}

// inCopies reports whether an address is in the tool's code.
func (x *Translator) inCopies(pc uint64) bool {
	for _, a := range x.arenas {
		if a.Has(pc) {
			return true
		}
	}
	return false
}

func (x *Translator) word(word uint64) (uint64, error) {
	v, err := x.process.Memory.Memory.Word(x.data + word)
	if err != nil {
		return 0, fmt.Errorf("replay: the translator's data: %w", err)
	}
	return v, nil
}
