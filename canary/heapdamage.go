package canary

import (
	"diagnose/agent"
	"diagnose/evidence"
)

// Side says which end of an object was passed.
type Side uint8

// The sides.
const (
	Behind Side = iota // overflow
	Before             // underflow
)

// Damage is an overwritten canary of the heap.
type Damage struct {
	// Object is the object next to the canary. It is live, except that for the
	// canary before a span's first slot it may be freed.
	Object agent.Object
	Side   Side
	// Damage has offsets relative to Object.
	Damage evidence.Damage
	// Gap is the number of canary bytes between the object and the damage.
	Gap uint64
	// Beyond is set if the damage reaches the far end of the canary. It is the object
	// there: the one in the next slot, or for an underflow the one before. nil when
	// there is none.
	Beyond *agent.Object
	// BeyondDamaged: the canary after Beyond is damaged as well.
	BeyondDamaged bool
	// FromBeyond: the damage reaches Beyond but not this object, so it more
	// likely comes from Beyond.
	FromBeyond bool
	// Continues: the canary of the object in the slot before is damaged up to
	// this object's start, so this may be the same write.
	Continues bool
}

// describe says how the canaries of an object are damaged.
func describe(h *agent.Heap, o *agent.Object) ([]Damage, error) {
	before, behind, err := h.Guards(o)
	if err != nil {
		return nil, err
	}
	word, err := h.CanaryWordOf(o)
	if err != nil {
		return nil, err
	}
	var list []Damage
	for _, guard := range []struct {
		side Side
		agent.Range
	}{{Before, before}, {Behind, behind}} {
		d, err := h.Damage(o, guard.Range, word)
		if err != nil {
			return list, err
		}
		if d == nil {
			continue
		}
		damage := Damage{Object: *o, Side: guard.side, Damage: *d}
		if err := damage.place(h, guard.Range); err != nil {
			return list, err
		}
		list = append(list, damage)
	}
	return list, nil
}

// place finds the object on the other side of the damage.
func (d *Damage) place(h *agent.Heap, guard agent.Range) error {
	var beyond agent.Object
	var found bool
	var err error
	if d.Side == Behind {
		d.Gap = uint64(d.Damage.Start - guard.Start)
		d.Damage.Reaches = d.Damage.End == guard.End
		if d.Damage.Reaches && guard.End == d.Object.SlotEnd && !d.Object.Guarded {
			beyond, found, err = h.Following(&d.Object)
		}
	} else {
		d.Gap = uint64(guard.End - d.Damage.End)
		d.Damage.Reaches = d.Damage.Start == guard.Start
		if d.Damage.Reaches && (!d.Object.Large || guard.Start == d.Object.Slot) {
			beyond, found, err = h.Preceding(&d.Object)
			found = found && !beyond.Guarded
		}
	}
	if err != nil {
		return err
	}
	if found {
		d.Beyond, d.FromBeyond = &beyond, d.Gap > 0
		if damage, err := behindOf(h, &beyond); err == nil {
			d.BeyondDamaged = damage != nil
		}
	}
	return d.findStart(h)
}

// findStart sets Continues, if the damage may have begun in the slot before.
func (d *Damage) findStart(h *agent.Heap) error {
	if d.Side == Before || d.Object.Large {
		return nil
	}
	o, found, err := h.Preceding(&d.Object)
	if err != nil || !found || o.SlotEnd != d.Object.Slot {
		return err
	}
	damage, err := behindOf(h, &o)
	d.Continues = err == nil && damage != nil && damage.End == o.SlotEnd
	return nil
}

// behindOf returns the damage of the canary after an object.
func behindOf(h *agent.Heap, o *agent.Object) (*evidence.Damage, error) {
	_, behind, err := h.Guards(o)
	if err != nil {
		return nil, err
	}
	word, err := h.CanaryWordOf(o)
	if err != nil {
		return nil, err
	}
	return h.Damage(o, behind, word)
}
