package verdict

import (
	"fmt"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/replay"
)

// withoutFree finds out whether the program fails if the call frees nothing that ended the life of the memory at which a way ends, and proves the
// cause by that. The failure need not be the access itself: what was read there, or stored, may make it later.
func (t *tracedCauses) withoutFree(cause *evidence.Cause, way *provenance.Way) {
	o := way.Object
	if way.End != provenance.Freed || cause.Kind != evidence.CauseUseAfterFree || cause.Proof == evidence.Proved || cause.Open != "" || o == nil || o.Mapped() || o.Freed < 0 {
		return
	}
	step := t.exact.trace.Step(o.Freed)
	call := heapCall{name: step.Call, entry: step.Entry, thread: step.Thread, ordinal: step.Ordinal}
	if step.Entry == 0 || !call.frees() {
		return // realloc moves the object
	}
	at, err := t.moments.ofCall(call, releases(o.Addr))
	if err != nil {
		t.progress.failedPart(err)
		return
	}
	x := change{what: "the free withheld", link: noLink, event: &evidence.Event{Thing: fmt.Sprintf("the object at %v", o.Addr), At: at}, keeps: true,
		options: replay.FreeRequest{Edits: []replay.Edit{{Kind: replay.EditKeepFreed, Bytes: o.Size, At: at}}}}
	if len(cause.Experiments) == 0 {
		cause.Experiments = append(cause.Experiments, t.experiments.unchanged(t.rec))
	}
	cause.Experiments = append(cause.Experiments, t.experiments.without(&x))
	if cause.Experiments[0].Agrees() && cause.Experiments[len(cause.Experiments)-1].Agrees() {
		t.experiments.proveBy(cause, *x.event)
	}
}
