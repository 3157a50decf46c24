package flow

import (
	"math/rand/v2"
	"testing"

	"diagnose/image/x86"
)

// TestFirstReturn: the groups of returns that are passed at once have none that was asked for.
func TestFirstReturn(t *testing.T) {
	const threads, steps, stack = 3, 20_000, 200
	ret, other := &instruction{inst: &x86.Inst{Flow: x86.FlowReturn}}, &instruction{inst: &x86.Inst{}}
	trace := &Trace{steps: newSteps(), instructions: map[uint64]*instruction{1: ret, 2: other}}
	random := rand.New(rand.NewPCG(1, 2))
	for range steps {
		s := step{pc: 1 + random.Uint64N(2), thread: uint32(random.IntN(threads)), library: random.IntN(9) == 0}
		s.general[x86.RSP] = random.Uint64N(stack)
		if random.IntN(1000) == 0 {
			s.general[x86.RSP] = stack + random.Uint64N(stack) // rare
		}
		trace.steps.add(&s)
	}
	expected := func(thread uint32, after, before int, low, high uint64) int {
		for n := after + 1; n < before; n++ {
			s := trace.steps.at(n)
			if s.thread == thread && !s.library && s.pc == 1 && s.general[x86.RSP] >= low && s.general[x86.RSP] < high {
				return n
			}
		}
		return -1
	}
	for range 2000 {
		thread, after, before := uint32(random.IntN(threads+1)), random.IntN(steps)-1, random.IntN(steps)
		low := random.Uint64N(2 * stack)
		high := low + random.Uint64N(stack/10)
		if got, want := trace.FirstReturn(thread, after, before, low, high), expected(thread, after, before, low, high); got != want {
			t.Fatalf("thread %d, %d to %d, %d to %d: %d, want %d", thread, after, before, low, high, got, want)
		}
	}
}
