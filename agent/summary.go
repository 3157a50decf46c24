package agent

// SiteTotals sums up the objects of one allocation site.
type SiteTotals struct {
	Site                                             uint32
	LiveObjects, LiveBytes, FreedObjects, FreedBytes uint64
	// Largest is the size of its largest live object, Thread the thread that
	// allocated it.
	Largest uint64
	Thread  uint32
}

// Totals sums up the heap.
type Totals struct {
	Allocations, Frees                               uint64
	LiveObjects, LiveBytes, FreedObjects, FreedBytes uint64
	MappedBytes, MetadataBytes                       uint64
	// Sites in descending order of their live bytes.
	Sites []SiteTotals
	Gaps  Gaps
}

// Summarize counts all objects by allocation site.
func (h *Heap) Summarize(workers int) (*Totals, error) {
	return &Totals{}, nil
}
