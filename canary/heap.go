package canary

import (
	"diagnose/agent"
	"diagnose/evidence"
)

// HeapOptions of CheckHeap. The zero value is useful.
type HeapOptions struct {
	// Workers check at the same time; 0 is one a processor.
	Workers int
	// Limit bounds the damages that are returned; 0 is 100.
	Limit int
}

// Side says which end of an object was passed.
type Side uint8

// The sides.
const (
	Behind Side = iota // overflow
	Before             // underflow
)

// Damage is an overwritten canary of the heap.
type Damage struct {
	// Object is the live object that was left. For the guard before a span's
	// first slot it may be freed.
	Object agent.Object
	Side   Side
	// Damage has offsets relative to Object.
	Damage evidence.Damage
	// Gap is how many bytes of canary stand between the object and the damage.
	Gap uint64
	// Beyond is what lies where the damage went on to, when it goes up to the
	// canary's end: the object in the next slot (for an underflow: the last one of
	// the span before). nil when nothing was ever allocated there.
	Beyond *agent.Object
	// BeyondDamaged: Beyond's own canary is damaged as well.
	BeyondDamaged bool
	// Continues: the damage of the object before goes up to this one's slot, so
	// that this may be the same write.
	Continues bool
	// MaybeUnderflow: the damage goes up to the next slot and leaves this
	// object's end alone, so it rather is an underflow of Beyond.
	MaybeUnderflow bool
}

// HeapResult is what CheckHeap found.
type HeapResult struct {
	// Damages in address order: those with the lowest addresses, and how many
	// Further ones there are.
	Damages []Damage
	Further int
	// Checked counts the objects whose canaries were compared.
	Checked uint64
	// Limits say what could not be read.
	Limits []evidence.Limit
}

// CheckHeap compares the canaries of all live objects, and those before the
// spans' first slots.
func CheckHeap(h *agent.Heap, options HeapOptions) (*HeapResult, error) {
	return &HeapResult{}, nil
}
