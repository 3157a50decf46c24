package verify

import (
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// A thread that creates another one is outside of the engine from after DG_EV_CREATE, or from
// before the call of a vfork, until the second entry of the stub, whose event is DG_EV_CREATED or
// DG_EV_FORK. A replay whose log does not have that event waits for it in the engine. rax then has
// the child's id from the kernel.

// settleClone excludes from the comparison, for a thread that is creating another one, the
// registers that the instruction and the stub change, if the replay has got as far.
func (v *verifier) settleClone(want *recorded.Thread, t *tracee.Thread, w *ptrace.Registers, have ptrace.Registers) error {
	if want.Frame == nil && !want.Clones() || want.Failed {
		return nil
	}
	r, err := v.process.ReadThread(t.Index)
	if err != nil {
		return err
	}
	switch {
	case r.Inside == 0 || r.Ordinal != want.Raw.Ordinal:
		return nil
	case r.WaitsFor == agent.EvCreated && (want.Clones() || want.Frame.Kind == agent.EntrySyscall):
	case r.WaitsFor == agent.EvFork && want.Clones():
	default:
		return nil
	}
	w.Rip, w.Rax, w.Rcx, w.R11, w.Eflags = have.Rip, have.Rax, have.Rcx, have.R11, have.Eflags
	return nil
}

// starting reports whether a thread of the replay that the core does not have is one that the
// recorded process was about to create, or had created so shortly before its end that it had not
// reported its id.
func (v *verifier) starting(index uint32) bool {
	want, err := image.Struct[agent.RawRThread](v.core, evidence.Addr(agent.RThreadAddress(index)))
	if err != nil || want.State != agent.RStarting {
		return false
	}
	have, err := v.process.ReadThread(index)
	return err == nil && have.Ordinal == 0
}

// startingIDs returns the words with the ids of threads whose first event is not in the log. They
// become the recorded ids only after that event.
func (v *verifier) startingIDs() []exclusion {
	var list []exclusion
	for _, t := range v.process.Threads {
		if t.Index == 0 {
			continue
		}
		raw, err := v.process.ReadThread(t.Index)
		if err != nil || raw.Ordinal != 0 || raw.ThreadPointer == 0 {
			continue
		}
		for at := raw.ThreadPointer; at < raw.ThreadPointer+controlBlock; at += 4 {
			want, have, ok := v.words(at)
			if !ok {
				break
			}
			if want != have && have == uint32(t.TID) {
				list = append(list, exclusion{Span: tracee.Span{Start: at, End: at + 4}, what: "the ids of threads that start", why: "the kernel gives others"})
			}
		}
	}
	return list
}

// newStacks returns the recorded stacks of a thread whose creator had not reached DG_EV_CREATE.
// The engine maps the stack before that event in a recording, but after it in a replay.
func (v *verifier) newStacks() []exclusion {
	control, err := image.Struct[agent.RawControl](v.core, agent.EngineControl)
	if err != nil {
		return nil
	}
	next := control.Threads + 1
	if raw, err := image.Struct[agent.RawRThread](v.core, evidence.Addr(agent.RThreadAddress(next))); err != nil || raw.Index != next || raw.State != agent.RStarting {
		return nil
	}
	var list []exclusion
	for i := range v.core.Mappings {
		m := &v.core.Mappings[i]
		s := tracee.Span{Start: uint64(m.Start), End: uint64(m.End)}
		there := slices.ContainsFunc(v.maps, func(o tracee.Mapping) bool { return o.Start < s.End && s.Start < o.End })
		if s.Start >= agent.EngineStacks && s.End <= agent.EngineEnd && !there {
			list = append(list, exclusion{Span: s, what: "the stack of a thread that was about to be made", why: "its making is not in the log"})
		}
	}
	return list
}
