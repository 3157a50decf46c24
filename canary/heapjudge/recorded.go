package heapjudge

import (
	"encoding/hex"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

// judgement is the result for an error of the agent: the kinds, and the words
// for what happened and why.
type judgement struct {
	finding   evidence.FindingKind
	failure   evidence.FailureKind
	what, why string
}

// judge classifies an error; finding f has its object, damage and call.
func (h *Heap) judge(e *agent.Error, f *evidence.Finding) judgement {
	switch e.Kind {
	case agent.ErrorOverflow:
		return judgement{evidence.FindingHeapOverflow, evidence.HeapOverflow, "heap overflow found", h.damageWhy(evidence.FindingHeapOverflow, e, f)}
	case agent.ErrorUnderflow:
		return judgement{evidence.FindingHeapUnderflow, evidence.HeapUnderflow, "heap underflow found", h.damageWhy(evidence.FindingHeapUnderflow, e, f)}
	case agent.ErrorUseAfterFree:
		return judgement{evidence.FindingUseAfterFree, evidence.UseAfterFree, "use after free found", h.damageWhy(evidence.FindingUseAfterFree, e, f)}
	case agent.ErrorDoubleFree:
		if e.When == agent.AtRealloc {
			return judgement{evidence.FindingDoubleFree, evidence.DoubleFree, "realloc, after its free, of " + h.objectWords(e), life(f)}
		}
		return judgement{evidence.FindingDoubleFree, evidence.DoubleFree, "double free of " + h.objectWords(e), firstFreed(f)}
	case agent.ErrorMismatch:
		what := "mismatched free"
		if e.Object != nil {
			what = fmt.Sprintf("mismatched free: %s released %s from %v", e.API.Release(), h.objectWords(e), e.Object.API)
		}
		return judgement{evidence.FindingMismatchedFree, evidence.MismatchedFree, what, life(f)}
	}
	return h.invalidFree(e, f)
}

// invalidFree is a free of an address that is not an object's start.
func (h *Heap) invalidFree(e *agent.Error, f *evidence.Finding) judgement {
	call := "free"
	switch {
	case e.When == agent.AtRealloc:
		call = "realloc"
	case e.When == agent.AtSize:
		call = "malloc_usable_size"
	case e.API != agent.APIMalloc:
		call = e.API.Release()
	}
	v := judgement{evidence.FindingInvalidFree, evidence.InvalidFree, "", fmt.Sprintf("%v is %s", e.Pointer, h.process.Place(e.Pointer).Text)}
	if o := h.filledWith(e.Pointer); o != nil {
		v.what = call + " of a wild pointer that was read from freed memory"
		v.why = joined(fmt.Sprintf("%v is what %s at %v is filled with", e.Pointer, sized(o), o.Addr), life(f))
		return v
	}
	switch e.Kind {
	case agent.ErrorFreeMiddle:
		v.what, v.why = call+" of a pointer to the middle of an object", life(f)
		if e.Object != nil {
			v.what = fmt.Sprintf("%s of a pointer %s", call, offsetWords(e.Pointer, e.Object))
		}
	case agent.ErrorFreeStack:
		v.what = call + " of memory on a stack"
	case agent.ErrorFreeGlobal:
		v.what = call + " of a global or constant"
	case agent.ErrorFreeForeign:
		v.what = call + " of memory that another allocator or the program mapped"
	default:
		v.what = call + " of a wild pointer"
	}
	return v
}

func (h *Heap) objectWords(e *agent.Error) string {
	if e.Object == nil {
		return fmt.Sprintf("the object at %v", e.Pointer)
	}
	return fmt.Sprintf("%s at %v", articled(e.Object.Size), e.Object.Addr)
}

// damageWhy describes the overwritten bytes, the calls that made the object,
// and how the damage was detected.
func (h *Heap) damageWhy(kind evidence.FindingKind, e *agent.Error, f *evidence.Finding) string {
	text := "seen " + whenWords(e.When)
	if e.Object != nil && f.Damage != nil {
		text = damageWords(kind, e.Object, f.Damage) + ", " + text
	}
	return joined(text, life(f))
}

func life(f *evidence.Finding) string {
	if f.Object == nil {
		return ""
	}
	return lifeWords(f.Object)
}

func firstFreed(f *evidence.Finding) string {
	if text := life(f); f.Object != nil && f.Object.Freed != nil && text != "" {
		return "first " + text
	} else if text != "" {
		return text
	}
	return ""
}

func joined(parts ...string) string {
	text := ""
	for _, p := range parts {
		if p != "" && text != "" {
			text += "; "
		}
		text += p
	}
	return text
}

// errorFinding converts an error of the agent to a finding of the report.
func (h *Heap) errorFinding(e *agent.Error) (evidence.Finding, judgement, error) {
	o := e.Object
	if o == nil {
		o = h.filledWith(e.Pointer)
	}
	err := h.findFrees(o)
	f := evidence.Finding{Addr: e.Pointer, Object: h.Object(o), Proof: evidence.FromCore}
	f.Call = &evidence.HeapCall{Stack: evidence.Stack{Frames: []evidence.Frame{}}, Thread: h.thread(e.Thread)}
	h.fillStack(f.Call, e.Stack, image.FreesMemory)
	f.Site = f.Call.Site
	if ref := h.threadRef(e.TID); ref != nil && (f.Call.Thread == nil || !f.Call.Thread.Ended) {
		f.Threads = []evidence.ThreadRef{*ref}
	}
	if e.Object != nil && e.DamageEnd > e.Damage {
		f.Damage = h.recordedDamage(e)
		f.Addr, f.Size = f.Damage.Start, int(min(uint64(f.Damage.End-f.Damage.Start), 1<<31))
		if e.Kind == agent.ErrorOverflow && f.Damage.Reaches && f.Damage.Start > e.Object.End() {
			f.Proof = evidence.Inferred // it may be an underflow of the object after it
		}
	}
	v := h.judge(e, &f)
	f.Kind, f.Summary = v.finding, v.what
	h.tell(e, &f, v)
	return f, v, err
}

// filledWith returns the freed object whose fill a pointer is; nil if it is
// none, or if the memory was reallocated since.
func (h *Heap) filledWith(p evidence.Addr) *agent.Object {
	o, offset, ok, err := h.FillWord(uint64(p))
	if err != nil || !ok || offset != 0 || o.State == agent.Live {
		return nil
	}
	return &o
}

// tell adds facts that the parts of a finding do not give.
func (h *Heap) tell(e *agent.Error, f *evidence.Finding, v judgement) {
	switch e.Kind {
	case agent.ErrorOverflow, agent.ErrorUnderflow, agent.ErrorUseAfterFree:
		f.Summary = titles[v.finding]
		if f.Damage != nil {
			f.Summary += ": " + damageWords(v.finding, e.Object, f.Damage)
		}
		f.Facts = append(f.Facts, evidence.Fact{Name: "found", Text: whenWords(e.When)})
	case agent.ErrorFreeMiddle, agent.ErrorDoubleFree, agent.ErrorMismatch:
	default:
		f.Facts = append(f.Facts, evidence.Fact{Name: "where", Text: v.why})
	}
	if e.Fatal {
		f.Facts = append(f.Facts, evidence.Fact{Name: "outcome", Text: "the agent ended the process"})
	}
}

// recordedDamage is the damage as the agent recorded it. If the process ended
// there, it is read from memory, which has all of it.
func (h *Heap) recordedDamage(e *agent.Error) *evidence.Damage {
	o, word := e.Object, e.Guard
	if e.Kind == agent.ErrorUseAfterFree {
		word = h.FillWordOf(o)
	}
	if e.Fatal && uint64(e.DamageEnd-e.Damage) <= agent.SmallMax {
		if d, err := h.Damage(o, agent.Range{Start: e.Damage, End: e.DamageEnd}, word); err == nil && d != nil {
			d.Reaches = h.reaches(e.Kind, o, d)
			return d
		}
	}
	d := &evidence.Damage{Start: e.Damage, End: e.DamageEnd, Offset: int64(e.Damage - o.Addr)}
	d.Reaches = h.reaches(e.Kind, o, d)
	found := e.Bytes[:min(uint64(len(e.Bytes)), uint64(d.End-d.Start))]
	expected := make([]byte, len(found))
	for i := range found {
		expected[i] = byte(word >> ((d.Start + evidence.Addr(i)) % 8 * 8))
		if found[i] != expected[i] {
			d.Overwritten++
		}
	}
	d.Overwritten = max(1, d.Overwritten) // beyond the recorded bytes only the length is known
	n := min(len(found), shownBytes)
	d.Bytes, d.Text, d.Expected = hex.EncodeToString(found[:n]), wording.Printable(found[:n]), hex.EncodeToString(expected[:n])
	return d
}

// shownBytes is how much of a damage is shown.
const shownBytes = 64

// reaches reports whether a damage extends to the far end of the guard or the
// fill.
func (h *Heap) reaches(kind int, o *agent.Object, d *evidence.Damage) bool {
	switch kind {
	case agent.ErrorOverflow:
		return d.End >= min(o.SlotEnd, o.End()+agent.LargeCanary)
	case agent.ErrorUnderflow:
		before, _, err := h.Guards(o)
		return err == nil && d.Start <= before.Start
	}
	return d.End >= h.Fill(o).End
}

// fatalError is the error for which the agent ended the process in a thread; nil if
// it did not.
func (h *Heap) fatalError(tid int) *agent.Error {
	i := slices.IndexFunc(h.errors, func(e agent.Error) bool { return e.Fatal && e.TID == tid })
	if i < 0 {
		return nil
	}
	return &h.errors[i]
}
