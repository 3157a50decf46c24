package main

import (
	"fmt"
	"math/rand/v2"

	"diagnose/evidence"
)

// workload is a shape of log.
type workload struct {
	name, what     string
	threads, words int
	// places is how many places of the code access one word.
	places int
	// stretch is how many accesses a thread makes before another one runs;
	// locked: they are a critical section, with a lock set of its own.
	stretch int
	locked  bool
	// reads of ten accesses read.
	reads int
	// posts: every so many stretches one thread orders another.
	posts int
}

var workloads = []workload{
	{name: "counter", what: "8 threads, a word, under a lock", threads: 8, words: 1, places: 4, locked: true, stretch: 4, reads: 5, posts: 1000},
	{name: "table", what: "64 threads, 256 words of 12 places each", threads: 64, words: 256, places: 12, stretch: 4, reads: 8, posts: 100},
	{name: "polling", what: "4 threads, 4 words, loops of reads", threads: 4, words: 4, places: 12, stretch: 1000, reads: 9, posts: 10},
	{name: "contention", what: "16 threads in turn, a word of 12 places", threads: 16, words: 1, places: 12, stretch: 1, reads: 5},
	{name: "confusion", what: "16 threads in turn, a word of 1000 places", threads: 16, words: 1, places: 1000, stretch: 1, reads: 5},
}

func (w workload) generate(accesses int, seed uint64) *evidence.AccessLog {
	g := &generator{workload: w, random: rand.New(rand.NewPCG(seed, 7)), log: &evidence.AccessLog{
		Recording: fmt.Sprint("generated ", seed), LockSets: [][]evidence.Lock{nil}, Threads: map[uint32]evidence.ThreadRef{},
		Accesses: make([]evidence.Access, 0, accesses),
	}}
	if w.locked {
		g.log.LockSets = make([][]evidence.Lock, 1, accesses/w.stretch+2)
	}
	for i := range w.words {
		g.log.Variables = append(g.log.Variables, evidence.Watched{Name: fmt.Sprintf("word%d", i), Size: 8})
	}
	for i := range w.places * w.words {
		function := fmt.Sprintf("function%d", i/8)
		g.log.Contexts = append(g.log.Contexts, evidence.Context{
			Site: evidence.Site{Function: function, File: "/src/a.c", Line: i + 1, PC: evidence.Addr(0x401000 + 16*i)}, Key: fmt.Sprintf("%s:%d", function, i+1),
		})
	}
	for i := range w.threads {
		start := "worker"
		if i == 0 {
			start = "main"
		}
		g.log.Threads[uint32(i+1)] = evidence.ThreadRef{Number: i + 1, Start: start}
	}
	g.ordinals, g.values = make([]uint64, w.threads), make([]uint64, w.words)
	for len(g.log.Accesses) < accesses {
		g.stretch(accesses)
	}
	return g.log
}

type generator struct {
	workload
	log       *evidence.AccessLog
	random    *rand.Rand
	ordinals  []uint64
	values    []uint64
	position  uint64
	stretches int
}

// stretch is what one thread does before another runs.
func (g *generator) stretch(most int) {
	thread := g.random.IntN(g.threads)
	g.event(thread)
	g.stretches++
	if g.posts > 0 && g.stretches%g.posts == 0 {
		to := (thread + 1) % g.threads
		from := g.ordinals[thread]
		g.event(to)
		g.log.Order = append(g.log.Order, evidence.OrderEdge{From: uint32(thread + 1), To: uint32(to + 1), FromOrdinal: from, ToOrdinal: g.ordinals[to]})
	}
	locks := int32(0)
	if g.locked {
		locks = int32(len(g.log.LockSets))
		g.log.LockSets = append(g.log.LockSets, []evidence.Lock{{Address: 0x5000, Name: "lock", Taken: g.ordinals[thread]}})
	}
	word := g.random.IntN(g.words)
	for range g.workload.stretch {
		if len(g.log.Accesses) == most {
			return
		}
		g.access(thread, word, locks)
	}
}

func (g *generator) event(thread int) {
	g.ordinals[thread]++
	g.position++
}

func (g *generator) access(thread, word int, locks int32) {
	place := word*g.places + g.random.IntN(g.places)
	a := evidence.Access{
		Position: g.position, Ordinal: g.ordinals[thread], Hit: uint64(len(g.log.Accesses)), PC: g.log.Contexts[place].Site.PC,
		Old: g.values[word], New: g.values[word], Variable: int32(word), Context: int32(place), Locks: locks,
		Thread: uint32(thread + 1), Size: 8, Kind: evidence.CodeRead,
	}
	if g.random.IntN(10) >= g.reads {
		g.values[word]++
		a.New, a.Kind = g.values[word], evidence.CodeWrite
	}
	g.log.Accesses = append(g.log.Accesses, a)
}
