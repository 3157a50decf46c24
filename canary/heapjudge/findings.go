package heapjudge

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/internal/wording"
	"diagnose/quarantine"
)

const (
	// shownFindings is how many findings of the heap a report of a crash has,
	// and summarizedFindings the same for a Summary.
	shownFindings, summarizedFindings = 8, 40
	// keptDamages bounds the damages that each judge returns: the strongest of
	// them are chosen.
	keptDamages = 1000
)

// Ranks of the findings: those about the failure come first.
const (
	rankEnded    = iota // the agent ended the process because of it
	rankFailure         // the object that the failing pointer names
	rankRelated         // damage of objects that the failing pointers lead to
	rankRecorded        // found while the program ran
	rankDamaged
	rankPointer // the object that a failing pointer is in
)

// heapFinding is a finding before it is reported.
type heapFinding struct {
	evidence.Finding
	rank int
	// object and beyond are the concerned objects; their calls are looked up
	// only if the finding is shown.
	object, beyond *agent.Object
	// ready: the finding has its objects already.
	ready bool
}

// FailingThread is the thread whose failure is explained, with its stack.
type FailingThread struct {
	Process *image.Process
	Thread  *image.Thread
	// Stack is nil if it is not known.
	Stack *unwind.Stack
	// Frames are those of Stack that the static scan sees: the innermost ones may be
	// left out.
	Frames []unwind.Frame
	// ValueFrame returns the context in which the variables of a frame of Stack are
	// read; nil for code outside of every object.
	ValueFrame func(i int) *value.Frame
}

// Findings gathers what the heap shows: the errors that the agent recorded, the damaged
// objects, and the objects that the failing pointers name. t is nil if the failure is
// not that of the examined thread.
func (x *Explanation) Findings(t *FailingThread) ([]evidence.Finding, error) {
	c := &collection{heap: x.heap, near: x.relatedAddresses(t != nil)}
	err := c.judgeHeap()
	if t != nil {
		err = cmp.Or(err, c.addPointed(x), c.addFreedUses(x, t), c.addOutOfMemory(x.failure, t.Thread.Ref.TID))
	}
	list := c.complete(shownFindings)
	x.limit(c.limits...)
	return list, err
}

// collection gathers the findings of a heap.
type collection struct {
	heap *Heap
	// near are addresses that the failure concerns.
	near   []evidence.Addr
	list   []*heapFinding
	limits []evidence.Limit
	// damaged counts the objects that are damaged now.
	damaged uint64
}

// judgeHeap adds the agent's findings, and those of the judges of canaries and
// of freed memory.
func (c *collection) judgeHeap() error {
	err := c.addRecorded()
	guards, fills := c.scan()
	for i := range guards.Damages {
		c.addGuard(&guards.Damages[i])
	}
	for i := range fills.Damages {
		c.addFill(&fills.Damages[i])
	}
	damaged := map[evidence.Addr]bool{} // an object may have damage on both sides
	for i := range guards.Damages {
		damaged[guards.Damages[i].Object.Addr] = true
	}
	for i := range fills.Damages {
		damaged[fills.Damages[i].Object.Addr] = true
	}
	c.damaged = uint64(len(damaged) + guards.Further + fills.Further)
	c.limits = append(append(c.limits, guards.Limits...), fills.Limits...)
	return err
}

// scan judges the canaries and the freed memory in one scan of the heap.
func (c *collection) scan() (*canary.HeapResult, *quarantine.Result) {
	heap := c.heap.Heap
	guards := canary.NewHeapCheck(heap, canary.HeapOptions{Limit: keptDamages})
	fills := quarantine.NewHeapCheck(heap, quarantine.Options{Limit: keptDamages})
	gaps := heap.ScanFor(0, guards.Visit, fills.Visit)
	return guards.Result(gaps[0]), fills.Result(gaps[1])
}

// addRecorded adds the errors that the agent found while the program ran.
func (c *collection) addRecorded() error {
	var err error
	for i := range c.heap.errors {
		e := &c.heap.errors[i]
		f, _, errFound := c.heap.errorFinding(e)
		err = cmp.Or(err, errFound)
		rank := rankRecorded
		if e.Fatal {
			rank = rankEnded
		}
		c.list = append(c.list, &heapFinding{Finding: f, rank: rank, object: e.Object, ready: true})
	}
	if c.heap.more > 0 {
		c.limits = append(c.limits, evidence.Limit{Code: evidence.LimitHeapFindings, Count: uint64(c.heap.more),
			Reason: fmt.Sprintf("the agent found %s more than it keeps", wording.Count(uint64(c.heap.more), "error"))}.Worded())
	}
	return err
}

// addDamage adds a damage. If the agent recorded it already, it completes that
// finding.
func (c *collection) addDamage(f *heapFinding, damage *evidence.Damage) {
	for _, known := range c.list {
		if known.ready && known.Kind == f.Kind && known.object != nil && known.object.Addr == f.object.Addr &&
			known.Damage != nil && known.Damage.Start == damage.Start {
			known.beyond = f.beyond
			known.Facts = append(known.Facts, f.Facts...)
			if f.Proof == evidence.Inferred {
				known.Proof = f.Proof
			}
			return
		}
	}
	f.Damage, f.Addr, f.Size = damage, damage.Start, int(min(uint64(damage.End-damage.Start), 1<<31))
	f.Summary = titles[f.Kind] + ": " + damageWords(f.Kind, f.object, damage)
	f.rank = rankDamaged
	if c.related(f) {
		f.rank = rankRelated
	}
	c.list = append(c.list, f)
}

// addGuard adds an overwritten canary.
func (c *collection) addGuard(d *canary.Damage) {
	f := &heapFinding{object: &d.Object, beyond: d.Beyond}
	f.Kind, f.Proof = evidence.FindingHeapOverflow, evidence.FromCore
	if d.Side == canary.Before {
		f.Kind = evidence.FindingHeapUnderflow
	}
	if d.FromBeyond && d.Beyond != nil {
		other := "an underflow"
		if d.Side == canary.Before {
			other = "an overflow"
		}
		f.orRather(fmt.Sprintf("%s of %s at %v, up to which the damage goes, while the bytes next to this object are whole",
			other, sized(d.Beyond), d.Beyond.Addr))
	}
	if d.Continues {
		f.orRather("the end of the overflow of the object before, whose damage goes up to this one")
	}
	if d.BeyondDamaged {
		f.Facts = append(f.Facts, evidence.Fact{Name: "farther on", Text: "the guard of the object beyond is damaged as well"})
	}
	c.addDamage(f, &d.Damage)
}

// orRather adds an alternative explanation, which makes the finding an
// inference.
func (f *heapFinding) orRather(text string) {
	f.Proof = evidence.Inferred
	f.Facts = append(f.Facts, evidence.Fact{Name: "or rather", Text: text})
}

// addFill adds a freed object that was written to.
func (c *collection) addFill(d *quarantine.Damage) {
	f := &heapFinding{object: &d.Object}
	f.Kind, f.Proof = evidence.FindingUseAfterFree, evidence.FromCore
	if d.Before != nil && c.overflowed(d.Before) {
		f.orRather(fmt.Sprintf("the end of the overflow of %s at %v, whose damage goes up to here", sized(d.Before), d.Before.Addr))
	}
	c.addDamage(f, &d.Damage)
}

// overflowed reports whether an object's overflow up to the next slot is among
// the findings.
func (c *collection) overflowed(o *agent.Object) bool {
	return slices.ContainsFunc(c.list, func(f *heapFinding) bool {
		return f.Kind == evidence.FindingHeapOverflow && f.object != nil && f.object.Addr == o.Addr && f.Damage != nil && f.Damage.Reaches
	})
}

// titles begin the summaries of damages.
var titles = map[evidence.FindingKind]string{
	evidence.FindingHeapOverflow:  "heap overflow",
	evidence.FindingHeapUnderflow: "heap underflow",
	evidence.FindingUseAfterFree:  "use after free",
}

// related reports whether a damage concerns an object of the failure, or is
// directly before one.
func (c *collection) related(f *heapFinding) bool {
	for _, at := range c.near {
		for _, o := range []*agent.Object{f.object, f.beyond} {
			if o != nil && at >= o.Slot && at < o.SlotEnd {
				return true
			}
		}
	}
	return false
}

// complete sorts the findings, keeps the first of them, up to most, and
// completes those.
func (c *collection) complete(most int) []evidence.Finding {
	slices.SortStableFunc(c.list, func(x, y *heapFinding) int { return cmp.Compare(x.rank, y.rank) })
	if more := len(c.list) - most; more > 0 {
		c.list = c.list[:most]
		c.limits = append(c.limits, evidence.Limit{Code: evidence.LimitHeapFindings, Count: uint64(more), Reason: fmt.Sprintf("%s of the heap are left out; %s damaged in all",
			wording.Count(uint64(more), "further finding"), objectsAre(c.damaged))}.Worded())
	}
	var objects []*agent.Object
	for _, f := range c.list {
		objects = append(objects, f.object, f.beyond)
	}
	if err := c.heap.findFrees(objects...); err != nil {
		c.limits = append(c.limits, evidence.Limit{Code: evidence.LimitHeapUnread, Reason: err.Error()}.Worded())
	}
	out := make([]evidence.Finding, 0, len(c.list))
	for _, f := range c.list {
		if !f.ready {
			f.Object = c.heap.Object(f.object)
			if f.Site == nil && f.Object != nil && f.Object.Allocated != nil {
				f.Site = f.Object.Allocated.Site
			}
		}
		if f.beyond != nil {
			f.Beyond = c.heap.Object(f.beyond)
		}
		out = append(out, f.Finding)
	}
	return out
}

func objectsAre(n uint64) string {
	if n == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", n)
}
