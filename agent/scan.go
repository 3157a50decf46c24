package agent

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"diagnose/evidence"
)

// Batch is a run of slots of one span with their words. It is valid during the
// visit only.
type Batch struct {
	Span *Span
	// First is the number of the first slot.
	First int
	words []uint64
}

// Len is how many slots the batch has.
func (b *Batch) Len() int { return len(b.words) }

// Object is the i-th slot of the batch.
func (b *Batch) Object(i int) Object { return b.Span.object(b.First+i, b.words[i]) }

// State is that of the i-th slot.
func (b *Batch) State(i int) State { return b.Span.state(b.words[i]) }

// Size is what the program asked for in the i-th slot.
func (b *Batch) Size(i int) uint64 {
	if b.Span.Large() {
		return b.Span.raw.Size
	}
	return b.words[i] & SizeMask
}

// Call is the allocation of the object in the i-th slot.
func (b *Batch) Call(i int) Call { return callOf(b.words[i]) }

// Memory is where the batch's slots are.
func (b *Batch) Memory() (start, end evidence.Addr) {
	start = b.Span.FirstSlot() + evidence.Addr(uint64(b.First)*b.Span.SlotSize())
	return start, start + evidence.Addr(uint64(len(b.words))*b.Span.SlotSize())
}

// A batch has at most so many slots, and so many bytes unless it is one slot.
const (
	BatchSlots  = 4096
	BatchMemory = 256 << 10
)

// Workers is how many workers a number asks for: 0 is one a processor.
func Workers(n int) int {
	if n <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return min(n, 256)
}

// Gaps counts the places that could not be read, or that no agent would have
// written.
type Gaps struct {
	Count int
	// First are the errors of some of them, the first ones in the order of the walk.
	First []error
}

// maxErrors bounds the errors that are kept: a truncated core may lack most of
// a heap.
const maxErrors = 8

// Add counts an error.
func (g *Gaps) Add(err error) {
	if g.Count++; len(g.First) < maxErrors {
		g.First = append(g.First, err)
	}
}

// Join adds what another walk missed.
func (g *Gaps) Join(other Gaps) {
	g.Count += other.Count
	g.First = append(g.First, other.First[:min(len(other.First), maxErrors-len(g.First))]...)
}

// job is a batch before its words were read.
type job struct {
	span     *Span
	first, n int
}

// Visit judges a batch. worker is the number of the worker that calls it.
type Visit func(worker int, b *Batch) error

// Scan hands every slot that may have been handed out to visit, in batches.
// So many workers (Workers) visit at once, each in its own order; visit is
// told which one it is. An error of visit is counted and does not end the scan.
func (h *Heap) Scan(workers int, visit Visit) Gaps { return h.ScanFor(workers, visit)[0] }

// ScanFor is one Scan for several judges: each batch is read once and handed to all
// of them. The gaps are those of each judge: its own errors, and the places
// that could not be walked for any of them.
func (h *Heap) ScanFor(workers int, visits ...Visit) []Gaps {
	var p patience
	n := Workers(workers)
	own := make([][]Gaps, n) // by worker and judge
	walk := parallel(n, func(jobs chan<- job) Gaps {
		return h.spans.each(func(s *Span) { s.split(jobs) })
	}, func(worker int) func(job) error {
		words, raw := make([]uint64, BatchSlots), make([]byte, 8*BatchSlots)
		own[worker] = make([]Gaps, len(visits))
		return func(j job) error {
			b := Batch{Span: j.span, First: j.first, words: words[:j.n]}
			if err := h.spans.words(&p, j.span, j.first, b.words, raw); err != nil {
				return err
			}
			for i, visit := range visits {
				if err := visit(worker, &b); err != nil {
					own[worker][i].Add(err)
				}
			}
			return nil
		}
	})
	list := make([]Gaps, len(visits))
	for i := range visits {
		list[i].Join(walk)
		for _, gaps := range own {
			list[i].Join(gaps[i])
		}
	}
	return list
}

// parallel runs produce, and workers on what it makes.
func parallel[J any](workers int, produce func(chan<- J) Gaps, worker func(int) func(J) error) Gaps {
	n := Workers(workers)
	jobs := make(chan J, 4*n)
	gaps := make([]Gaps, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			work := worker(i)
			for j := range jobs {
				if err := work(j); err != nil {
					gaps[i].Add(err)
				}
			}
		})
	}
	all := produce(jobs)
	close(jobs)
	wg.Wait()
	for i := range gaps {
		all.Join(gaps[i])
	}
	return all
}

// split makes the batches of a span.
func (s *Span) split(jobs chan<- job) {
	step := BatchSlots
	if size := s.SlotSize(); size > 0 {
		step = min(step, max(1, int(BatchMemory/size)))
	}
	for first := 0; first < s.Carved(); first += step {
		jobs <- job{s, first, min(step, s.Carved()-first)}
	}
}

// eachHeap reads the heaps of all threads.
func (h *Heap) eachHeap(visit func(i uint64, raw *RawHeap, gaps *Gaps)) (gaps Gaps) {
	var patience patience
	p := make([]byte, binary.Size(RawHeap{}))
	for i := range h.root.Heaps.Used {
		addr := h.root.Heaps.Start + i*uint64(len(p))
		if err := patience.read(h.source, "a heap", addr, p); err != nil {
			gaps.Add(err)
			if err == errGivenUp {
				break
			}
			continue
		}
		var raw RawHeap
		if _, err := binary.Decode(p, binary.LittleEndian, &raw); err != nil {
			gaps.Add(fmt.Errorf("agent: a heap at %#x: %w", addr, err))
			continue
		}
		visit(i, &raw, &gaps)
	}
	return gaps
}
