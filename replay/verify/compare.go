package verify

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"diagnose/evidence"
	"diagnose/replay/tracee"
)

// exclusion is memory that is not compared, with the reason.
type exclusion struct {
	tracee.Span
	what, why string
	variables bool // of the library: they are compared, but do not count
}

// piece is memory that the core has, and its offset in the file.
type piece struct {
	tracee.Span
	offset int64
}

// without cuts the exclusions, which are in order and do not overlap, out of a piece. It reports
// to skipped what it left out.
func (p piece) without(list []exclusion, skipped func(i int, bytes uint64)) []piece {
	var kept []piece
	at := p.Start
	first, _ := slices.BinarySearchFunc(list, p.Start, func(x exclusion, a uint64) int { return cmp.Compare(x.End, a+1) })
	for i := first; i < len(list) && list[i].Start < p.End; i++ {
		x := list[i]
		if x.Start > at {
			kept = append(kept, piece{tracee.Span{Start: at, End: x.Start}, p.offset + int64(at-p.Start)})
		}
		from := max(at, x.Start)
		at = min(x.End, p.End)
		skipped(i, at-from)
	}
	if at < p.End {
		kept = append(kept, piece{tracee.Span{Start: at, End: p.End}, p.offset + int64(at-p.Start)})
	}
	return kept
}

// mergeExclusions sorts exclusions. Where two overlap, the first one in the list counts.
func mergeExclusions(list []exclusion) []exclusion {
	slices.SortStableFunc(list, func(a, b exclusion) int { return cmp.Compare(a.Start, b.Start) })
	var merged []exclusion
	last := uint64(0)
	for _, x := range list {
		x.Start = max(x.Start, last)
		if x.Start < x.End {
			merged, last = append(merged, x), x.End
		}
	}
	return merged
}

// run is a range of bytes that differ; want and got are the first of them.
type run struct {
	tracee.Span
	want, got []byte
	// unreadable says why the replay's bytes could not be read.
	unreadable string
}

const (
	// compareChunk is the size that one worker compares at a time.
	compareChunk = 1 << 20
	// joinGap: runs with fewer equal bytes between them are joined.
	joinGap = 8
	// shownBytes is how many bytes are kept of each side of a run.
	shownBytes = 16
	// chunkRuns is how many runs are kept of a chunk, maxRuns in all; the others are only counted.
	chunkRuns = 64
	maxRuns   = 1 << 14
)

// memoryComparison is the result of compareMemory.
type memoryComparison struct {
	// same, if set, is asked about the words of each run: it reports whether they count as equal.
	same func(addr uint64, want, got []byte) bool

	runs        []run // in ascending order; not all if count is larger
	count       uint64
	bytes       uint64 // that differ
	compared    uint64
	notReadable uint64
}

// compareMemory compares the pieces of a core with another memory, on all processors. same may be
// nil; several goroutines call it.
func compareMemory(ctx context.Context, core io.ReaderAt, pieces []piece, memory memoryReader,
	same func(addr uint64, want, got []byte) bool) (*memoryComparison, error) {
	var chunks []piece
	for _, p := range pieces {
		for p.Size() > compareChunk {
			chunks = append(chunks, piece{tracee.Span{Start: p.Start, End: p.Start + compareChunk}, p.offset})
			p = piece{tracee.Span{Start: p.Start + compareChunk, End: p.End}, p.offset + compareChunk}
		}
		chunks = append(chunks, p)
	}
	c := &comparer{core: core, memory: memory, chunks: chunks, same: same}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(chunks)) {
		workers.Go(func() { c.work(ctx) })
	}
	workers.Wait()
	if err := cmp.Or(ctx.Err(), c.err); err != nil {
		return nil, err
	}
	c.result.joinRuns()
	return &c.result, nil
}

type memoryReader interface {
	ReadMemory(addr evidence.Addr, p []byte) (int, error)
}

type comparer struct {
	core   io.ReaderAt
	memory memoryReader
	chunks []piece
	same   func(addr uint64, want, got []byte) bool
	next   atomic.Int64

	mu     sync.Mutex
	result memoryComparison // guarded by mu
	err    error            // guarded by mu
}

func (c *comparer) work(ctx context.Context) {
	want, got := make([]byte, compareChunk), make([]byte, compareChunk)
	for ctx.Err() == nil {
		i := int(c.next.Add(1)) - 1
		if i >= len(c.chunks) {
			return
		}
		p := c.chunks[i]
		n := int(p.Size())
		if _, err := c.core.ReadAt(want[:n], p.offset); err != nil {
			c.mu.Lock()
			c.err = tracee.Inputf("replay: the recording's core at %#x: %w", p.offset, err)
			c.mu.Unlock()
			return
		}
		c.compare(p, want[:n], got[:n])
	}
}

// compare compares one chunk. Pages that cannot be read are skipped.
func (c *comparer) compare(p piece, want, got []byte) {
	const page = 4096
	part := memoryComparison{same: c.same}
	for at := 0; at < len(want); {
		n, err := c.memory.ReadMemory(evidence.Addr(p.Start+uint64(at)), got[at:])
		part.compareRange(p.Start+uint64(at), want[at:at+n], got[at:at+n])
		at += n
		if err == nil {
			continue
		}
		end := min(len(want), at+page-int((p.Start+uint64(at))%page))
		lost := uint64(end - at)
		part.notReadable += lost
		part.note(run{Span: tracee.Span{Start: p.Start + uint64(at), End: p.Start + uint64(end)}, unreadable: err.Error(),
			want: slices.Clone(want[at:min(end, at+shownBytes)])})
		at = end
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.result
	r.count, r.bytes, r.compared, r.notReadable = r.count+part.count, r.bytes+part.bytes, r.compared+part.compared, r.notReadable+part.notReadable
	if len(r.runs) < maxRuns {
		r.runs = append(r.runs, part.runs...)
	}
}

func (m *memoryComparison) note(r run) {
	m.count++
	m.bytes += r.Size()
	if len(m.runs) < chunkRuns {
		m.runs = append(m.runs, r)
	}
}

// compareRange compares two equally long slices of the memory at addr.
func (m *memoryComparison) compareRange(addr uint64, want, got []byte) {
	m.compared += uint64(len(want))
	for at := tracee.FirstDifference(want, got, 0); at < len(want); {
		end := at + 1
		for equal := 0; end+equal < len(want) && equal < joinGap; {
			if want[end+equal] != got[end+equal] {
				end, equal = end+equal+1, 0
			} else {
				equal++
			}
		}
		if low, high := at&^7, min((end+7)&^7, len(want)); m.same != nil && addr%8 == 0 && m.same(addr+uint64(low), want[low:high], got[low:high]) {
			at = tracee.FirstDifference(want, got, high)
			continue
		}
		shown := min(end, at+shownBytes)
		m.note(run{Span: tracee.Span{Start: addr + uint64(at), End: addr + uint64(end)},
			want: slices.Clone(want[at:shown]), got: slices.Clone(got[at:shown])})
		at = tracee.FirstDifference(want, got, end)
	}
}

// joinRuns sorts the runs, and joins those that chunks or unreadable pages have cut.
func (m *memoryComparison) joinRuns() {
	slices.SortFunc(m.runs, func(a, b run) int { return cmp.Compare(a.Start, b.Start) })
	joined := m.runs[:0]
	for _, r := range m.runs {
		if n := len(joined); n > 0 && joined[n-1].End == r.Start && joined[n-1].unreadable == r.unreadable {
			joined[n-1].End = r.End
			m.count--
			continue
		}
		joined = append(joined, r)
	}
	m.runs = joined
}
