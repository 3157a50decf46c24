package learn

import (
	"testing"
)

// TestRaces makes accesses of two threads to one word, by hand.
func TestRaces(t *testing.T) {
	const x, lock, other = 0x100000, 0x200000, 0x300000
	write := func(at uint64) access { return access{pc: at, addr: at, size: 4, writes: true, canOrder: true} }
	read := func(at uint64) access { return access{pc: at + 1, addr: at, size: 4, reads: true, canOrder: true} }
	ordered := func(a access) access { a.ordered = true; return a }
	for _, test := range []struct {
		name  string
		run   func(r *races, a, b *clocked)
		raced bool
	}{
		{"nothing between", func(r *races, a, b *clocked) { r.all(a, write(x)); r.all(b, read(x)) }, true},
		{"two reads", func(r *races, a, b *clocked) { r.all(a, read(x)); r.all(b, read(x)) }, false},
		{"a read, then a write", func(r *races, a, b *clocked) { r.all(a, read(x)); r.all(b, write(x)) }, true},
		{"one thread", func(r *races, a, b *clocked) { r.all(a, write(x), read(x)) }, false},
		{"handed over by an ordered word", func(r *races, a, b *clocked) {
			r.all(a, write(x), ordered(write(lock)))
			r.all(b, ordered(read(lock)), read(x))
		}, false},
		{"written after the ordered word", func(r *races, a, b *clocked) {
			r.all(a, ordered(write(lock)), write(x))
			r.all(b, ordered(read(lock)), read(x))
		}, true},
		{"an ordered word of another line", func(r *races, a, b *clocked) {
			r.all(a, write(x), ordered(write(lock)))
			r.all(b, ordered(read(other)), read(x))
		}, true},
		{"both ordered", func(r *races, a, b *clocked) { r.all(a, ordered(write(x))); r.all(b, ordered(read(x))) }, false},
		{"handed over by a call", func(r *races, a, b *clocked) {
			r.all(a, write(x))
			r.synchronise(a, lock)
			r.synchronise(b, lock)
			r.all(b, read(x))
		}, false},
		{"a number is no object", func(r *races, a, b *clocked) {
			r.all(a, write(x))
			r.synchronise(a, 3)
			r.synchronise(b, 3)
			r.all(b, read(x))
		}, true},
		{"the step has ended", func(r *races, a, b *clocked) {
			r.all(a, write(x))
			r.step(b, 11, 20)
			r.all(b, read(x))
		}, false},
		{"the step has not ended", func(r *races, a, b *clocked) {
			r.all(a, write(x))
			r.step(b, 9, 20)
			r.all(b, read(x))
		}, true},
		{"an earlier step has ended", func(r *races, a, b *clocked) {
			r.all(a, write(x))
			r.step(a, 11, 30)
			r.step(b, 12, 20)
			r.all(b, read(x))
		}, false},
		{"in a later step", func(r *races, a, b *clocked) {
			r.step(a, 11, 30)
			r.all(a, write(x))
			r.step(b, 12, 20)
			r.all(b, read(x))
		}, true},
	} {
		r := newRaces()
		r.begin()
		var a, b clocked
		r.add(&a, 1)
		r.add(&b, 2)
		r.step(&a, 1, 10)
		r.step(&b, 2, 10)
		test.run(&r, &a, &b)
		if got := r.of[x/wordSize].raced > 0; got != test.raced {
			t.Errorf("%s: %v, want %v", test.name, got, test.raced)
		}
	}
}

func (r *races) all(t *clocked, list ...access) {
	for i := range list {
		r.access(t, &list[i])
	}
}

// TestRacesApart: each thread's access is in a replay of its own.
func TestRacesApart(t *testing.T) {
	for _, test := range []struct {
		begin, end uint64 // of the second thread's step
		writes     bool
		want       int
	}{{5, 20, true, 1}, {5, 20, false, 0}, {11, 20, true, 0}} {
		r := newRaces()
		var a, b clocked
		r.begin()
		r.add(&a, 1)
		r.step(&a, 1, 10)
		r.all(&a, access{pc: 1, addr: 64, size: 8, reads: true, canOrder: true})
		r.begin()
		r.add(&b, 2)
		r.step(&b, test.begin, test.end)
		r.all(&b, access{pc: 2, addr: 64, size: 8, reads: !test.writes, writes: test.writes, canOrder: true})
		if list := r.words(nil); len(list) != test.want {
			t.Errorf("%+v: %d words", test, len(list))
		}
	}
}
