package probe

import (
	"context"
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/probe/sandbox"
	"diagnose/replay"
)

// hitProgram is the program at a hit of debug code: that of the replay, and from the first call of one of its functions on a copy, which is
// thrown away at the end of the hit.
type hitProgram struct {
	ctx    context.Context
	r      *run
	x      *stop
	copied *replay.Copy
}

// Read implements sandbox.Program.
func (h *hitProgram) Read(addr evidence.Addr, p []byte) (err error) {
	if h.copied != nil {
		_, err = h.copied.ReadMemory(addr, p)
	} else {
		_, err = h.x.stopped.ReadMemory(addr, p)
	}
	return err
}

// Call implements sandbox.Program.
func (h *hitProgram) Call(call *sandbox.FunctionCall) (result *sandbox.Result, why string, err error) {
	if h.copied == nil {
		thread := h.x.stopped.Moment.Thread
		if thread == 0 {
			return nil, "the thread has done no event yet, so the process cannot be copied", nil
		}
		var impossible *replay.NoCheckpointError
		if h.copied, err = h.x.stopped.Copy(thread); errors.As(err, &impossible) {
			return nil, "the process cannot be copied here: " + impossible.Why, nil
		} else if err != nil {
			return nil, "", err
		}
	}
	returned, err := h.copied.Call(h.ctx, replay.Call{Function: call.Function, Integers: call.Integers, Vectors: call.Vectors, Upper: call.Upper,
		Stack: call.Stack, Limit: replay.CallLimit{Time: call.Time}, Foreign: call.Own})
	var failed *replay.CallError
	if errors.As(err, &failed) {
		return nil, h.why(failed), nil
	}
	if err != nil {
		return nil, "", err
	}
	result = &sandbox.Result{RAX: returned.RAX, RDX: returned.RDX, X87: returned.X87}
	copy(result.Vectors[:], returned.Vector[:])
	return result, "", nil
}

// why says why a call did not return, and where it was.
func (h *hitProgram) why(e *replay.CallError) string {
	pc := e.PC
	if e.Thread == 0 || e.End == replay.CallStuck { // what Err says has the threads
		return e.Bare()
	}
	place := pc.String()
	if calls := h.r.process.Symbolize(pc, image.AtInstruction); len(calls) > 0 {
		place = siteText(&calls[0].Site)
	}
	return fmt.Sprintf("%s; thread %d was at %s", e.Bare(), e.Thread, place)
}

// close throws the copy away.
func (h *hitProgram) close() error {
	if h.copied == nil {
		return nil
	}
	return h.copied.Close()
}
