package patterns

import (
	"diagnose/delta"
	"diagnose/evidence"
)

// scanner makes one pass over a run's accesses and finds its patterns.
type scanner struct {
	run      *delta.Run
	accesses []evidence.Access
	cells    *delta.Cells
	state    []cell
	clocks   *clocks
	found    sightings
	// known are the patterns of the failing runs: of a passing run only these
	// are recorded; lacking says which others matter. nil for failing runs.
	known    map[key]int32
	has      []bool
	lacking  func(key) bool
	contexts contexts
	pairs    pairScanner
	failing  uint32
	// lastOwn is the failing thread's last access + 1.
	lastOwn int32
	// lastRead is the failing thread's last read + 1, by cell.
	lastRead []int32
	// firstWrite is the program's first write of a value other than 0, + 1, by cell;
	// 0: none.
	firstWrite []int32
}

// cell is the state of a word.
type cell struct {
	// write is the last one, -1: none; writer the slot that made it.
	write, writer int32
	writeClock    clock
	epoch         uint32 // counts writes, from 1
	slots         []slot
	byContext     map[int32]int32 // once there are many
	readers       []int32         // slots that read since the last write
	cached        int32
	// touched are the last accesses of the last two contexts.
	touched [2]touch
}

type touch struct{ context, index int32 }

// slot is the state of a context at a word.
type slot struct {
	context int32
	last    int32 // -1: none yet
	wrote   bool  // the last one writes
	// read is the last one since the last write, if epoch is the cell's.
	epoch     uint32
	read      int32
	readClock clock
	// seen are the others' reads of the value that last wrote, if it was
	// overwritten since.
	seen []seenRead
}

type seenRead struct {
	index int32
	clock clock
}

// mostSeen bounds the readers of a value that are kept.
const mostSeen = 16

// manySlots is the number of contexts from which they are looked up in a table.
const manySlots = 8

// other returns the last access of a context other than this; -1: none.
func (c *cell) other(context int32) int32 {
	if c.touched[0].context != context {
		return c.touched[0].index
	}
	return c.touched[1].index
}

func newScanner(run *delta.Run, failing uint32) *scanner {
	s := &scanner{
		run: run, accesses: run.Log.Accesses, cells: delta.NewCells(run.Log), found: newSightings(),
		failing:  failing,
		contexts: contexts{handlers: map[uint64]int32{}},
	}
	s.pairs.s = s
	return s
}

// scan finds all patterns. The limit, if not nil, says what it could not do.
func (s *scanner) scan() (limit *evidence.Limit) {
	var ok bool
	if s.clocks, ok = newClocks(s.run.Log); !ok {
		limit = &evidence.Limit{Code: evidence.LimitManyThreads, Subject: s.run.Log.Recording}
	}
	for i := range s.accesses {
		s.access(int32(i))
	}
	if n := s.found.forgotten; n > 0 {
		limit = &evidence.Limit{Code: evidence.LimitManyPatterns, Subject: s.run.Log.Recording, Count: uint64(n)}
	}
	return limit
}

func (s *scanner) access(i int32) {
	a := &s.accesses[i]
	if a.By == evidence.ByHeap && a.Kind == evidence.CodeRead {
		return // a check of its guards
	}
	var now *threadClock
	if s.clocks != nil {
		now = s.clocks.threads[a.Thread]
		if now.next < len(now.points) && now.points[now.next].ordinal <= a.Ordinal {
			s.clocks.advance(now, a.Ordinal)
		}
	}
	number := s.cells.Of(a)
	if int(number) == len(s.state) {
		s.state = append(s.state, cell{write: -1, epoch: 1, touched: [2]touch{{-1, -1}, {-1, -1}}})
		s.lastRead, s.firstWrite = append(s.lastRead, 0), append(s.firstWrite, 0)
	}
	c := &s.state[number]
	context := s.contexts.of(a)
	n := c.slot(context)
	reads, writes := a.Kind != evidence.CodeWrite, a.Kind == evidence.CodeWrite || a.Kind == evidence.CodeReadWrite
	s.pairs.access(i, number, context, writes, now)
	s.three(c, &c.slots[n], i, reads, writes, now)
	s.two(c, n, i, reads, writes, now)
	c.update(n, i, reads, writes, now)
	if writes && s.firstWrite[number] == 0 && a.New != 0 && a.By != evidence.ByHeap {
		s.firstWrite[number] = i + 1
	}
	if s.failing == a.Thread {
		s.lastOwn = i + 1
	}
	if reads && (s.failing == 0 || s.failing == a.Thread) {
		s.lastRead[number] = i + 1
	}
}

// three searches for another context's access since this context's last.
func (s *scanner) three(c *cell, mine *slot, i int32, reads, writes bool, now *threadClock) {
	p := mine.last
	if p < 0 {
		return
	}
	switch {
	case c.write > p && reads && mine.wrote:
		s.emit3(shapeWWR, p, c.write, i, c.writeClock, now)
	case c.write > p && reads:
		s.emit3(shapeRWR, p, c.write, i, c.writeClock, now)
	case c.write > p && !mine.wrote:
		s.emit3(shapeRWW, p, c.write, i, c.writeClock, now)
	case c.write > p:
		for _, r := range mine.seen {
			s.emit3(shapeWRW, p, r.index, i, r.clock, now)
		}
	case writes && mine.wrote:
		for _, r := range c.readers {
			if other := &c.slots[r]; other != mine {
				s.emit3(shapeWRW, p, other.read, i, other.readClock, now)
			}
		}
	}
}

// emit3 records a pattern of three. b is between p and c in every order if the program
// orders p before b and b before c. The allocator's accesses to fresh or freed memory
// never belong together with accesses of the program.
func (s *scanner) emit3(shape shape, p, b, c int32, between clock, now *threadClock) {
	first, middle, last := &s.accesses[p], &s.accesses[b], &s.accesses[c]
	if handlerCannot(first, middle) || first.By == evidence.ByHeap || last.By == evidence.ByHeap {
		return
	}
	ordered := s.before(middle, last, nowOf(now)) && s.before(first, middle, between)
	s.emit(key{
		shape: shape, variable: s.run.Variable[last.Variable],
		places: [4]delta.Place{s.run.Place(first), s.run.Place(middle), s.run.Place(last)},
	}, ordered, [4]int32{p, b, c})
}

// handlerCannot: the interrupted code cannot run between two accesses of one handler
// call, so such accesses are of two calls of the handler.
func handlerCannot(first, middle *evidence.Access) bool {
	return first.Thread == middle.Thread && first.Handler != 0 && middle.Handler == 0
}

// two searches for the others' accesses that conflict with this one and have no
// conflicting one after them.
func (s *scanner) two(c *cell, n int32, i int32, reads, writes bool, now *threadClock) {
	mine := &c.slots[n]
	own := c.write >= 0 && c.writer == n
	hasRead := mine.epoch == c.epoch
	if reads && c.write >= 0 && !own && !hasRead {
		s.emit2(shapeWR, c.write, i, now)
	}
	if !writes {
		return
	}
	others := false
	for _, r := range c.readers {
		if r != n {
			others = true
			s.emit2(shapeRW, c.slots[r].read, i, now)
		}
	}
	if !reads && !others && !own && c.write >= 0 && !hasRead {
		s.emit2(shapeWW, c.write, i, now)
	}
}

func (s *scanner) emit2(shape shape, p, c int32, now *threadClock) {
	first, last := &s.accesses[p], &s.accesses[c]
	s.emit(key{
		shape: shape, variable: s.run.Variable[last.Variable],
		places: [4]delta.Place{s.run.Place(first), s.run.Place(last)},
	}, s.before(first, last, nowOf(now)), [4]int32{p, c})
}

func (s *scanner) emit(k key, ordered bool, accesses [4]int32) {
	if s.known != nil {
		if n, ok := s.known[k]; ok {
			s.has[n] = true
			return
		}
		if !s.lacking(k) {
			return
		}
	}
	f := s.found.note(k)
	if !ordered || !f.free {
		f.last = accesses
	}
	f.recurs = f.recurs || f.free && !ordered
	f.free = f.free || !ordered
}

// before reports whether the program orders access a before access b, whose
// thread's clock is given.
func (s *scanner) before(a, b *evidence.Access, clock clock) bool {
	return a.Thread != b.Thread && s.clocks != nil && clock.timeOf(s.clocks.threads[a.Thread].column) > a.Ordinal
}

func nowOf(t *threadClock) clock {
	if t == nil {
		return nil
	}
	return t.now
}

// slot returns the context's slot in this word.
func (c *cell) slot(context int32) int32 {
	if int(c.cached) < len(c.slots) && c.slots[c.cached].context == context {
		return c.cached
	}
	n, ok := int32(0), false
	if c.byContext != nil {
		n, ok = c.byContext[context]
	} else {
		for ; int(n) < len(c.slots) && !ok; n++ {
			ok = c.slots[n].context == context
		}
		if ok {
			n--
		}
	}
	if !ok {
		n = int32(len(c.slots))
		c.slots = append(c.slots, slot{context: context, last: -1})
		c.index(n)
	}
	c.cached = n
	return n
}

// index adds a new slot to the table.
func (c *cell) index(n int32) {
	if c.byContext != nil {
		c.byContext[c.slots[n].context] = n
		return
	}
	if len(c.slots) <= manySlots {
		return
	}
	c.byContext = map[int32]int32{}
	for i := range c.slots {
		c.byContext[c.slots[i].context] = int32(i)
	}
}

func (c *cell) update(n, i int32, reads, writes bool, now *threadClock) {
	mine := &c.slots[n]
	if reads {
		if mine.epoch != c.epoch {
			mine.epoch = c.epoch
			c.readers = append(c.readers, n)
		}
		mine.read = i
		if now != nil {
			mine.readClock = now.share()
		}
	}
	if writes {
		c.keepSeen(n)
		c.epoch++
		c.readers = c.readers[:0]
		c.write, c.writer = i, n
		if now != nil {
			c.writeClock = now.share()
		}
	}
	mine.last, mine.wrote, mine.seen = i, writes, mine.seen[:0]
	if c.touched[0].context != mine.context {
		c.touched[1] = c.touched[0]
	}
	c.touched[0] = touch{mine.context, i}
}

// keepSeen keeps the readers of the last writer's value, when slot n overwrites
// it before that writer accesses it again.
func (c *cell) keepSeen(n int32) {
	if c.write < 0 || c.writer == n || c.slots[c.writer].last != c.write {
		return
	}
	w := &c.slots[c.writer]
	w.seen = w.seen[:0]
	for _, r := range c.readers {
		if r != c.writer && len(w.seen) < mostSeen {
			w.seen = append(w.seen, seenRead{c.slots[r].read, c.slots[r].readClock})
		}
	}
}

// contexts numbers threads and their handlers.
type contexts struct {
	threads  []int32 // the number + 1
	handlers map[uint64]int32
	count    int32
}

func (c *contexts) of(a *evidence.Access) int32 {
	if a.Handler != 0 {
		key := uint64(a.Thread)<<8 | uint64(a.Handler)
		n, ok := c.handlers[key]
		if !ok {
			n = c.count
			c.count++
			c.handlers[key] = n
		}
		return n
	}
	if int(a.Thread) >= len(c.threads) {
		c.threads = append(c.threads, make([]int32, int(a.Thread)+1-len(c.threads))...)
	}
	if c.threads[a.Thread] == 0 {
		c.count++
		c.threads[a.Thread] = c.count
	}
	return c.threads[a.Thread] - 1
}
