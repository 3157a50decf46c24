package verify

import (
	"path/filepath"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// ended returns the threads that ended in the recording.
func (v *verifier) ended() []*agent.RawRThread {
	list := slices.Clone(v.ending)
	control, err := image.Struct[agent.RawControl](v.core, agent.EngineControl)
	if err != nil {
		return list
	}
	for i := uint32(1); i <= min(control.Threads, agent.RThreads-1); i++ {
		if raw, err := image.Struct[agent.RawRThread](v.core, evidence.Addr(agent.RThreadAddress(i))); err == nil && raw.State == agent.REnded {
			list = append(list, raw)
		}
	}
	return list
}

// wasEnding reports whether a thread of the core, which ended in the replay, had done all its
// events.
func (v *verifier) wasEnding(t *recorded.Thread) bool {
	r, err := v.process.ReadThread(t.Index)
	return err == nil && r.State == agent.REnded && r.Ordinal == t.Raw.Ordinal && t.Frame != nil
}

// controlBlock is larger than glibc's struct pthread.
const controlBlock = 4096

// endedIDs returns the words with the ids of threads that ended. The kernel clears them
// (set_tid_address(2)) some time after a thread's last event.
func (v *verifier) endedIDs() []exclusion {
	var list []exclusion
	for _, raw := range v.ended() {
		if raw.ThreadPointer == 0 {
			continue
		}
		for at := raw.ThreadPointer; at < raw.ThreadPointer+controlBlock; at += 4 {
			want, have, ok := v.words(at)
			if !ok {
				break
			}
			if want == raw.TID && have == 0 || want == 0 && have == raw.TID {
				list = append(list, exclusion{Span: tracee.Span{Start: at, End: at + 4}, what: "the ids of threads that ended", why: "the kernel clears them when it gets there"})
			}
		}
	}
	return list
}

// linkerCount returns the dynamic linker's count of symbol look-ups, a statistic
// (_dl_num_relocations). Threads that call a function for the first time at the same moment each
// look it up. The count is not atomic and may lose some of these look-ups. No symbol gives its
// address: it is the only word in the linker's variables that differs by so little.
func (v *verifier) linkerCount() []exclusion {
	const mostLost = 16
	var found []exclusion
	for _, m := range v.core.Modules {
		if !strings.HasPrefix(filepath.Base(m.Path), "ld-linux") || m.Object == nil {
			continue
		}
		global, ok := m.Object.SymbolNamed("_rtld_global")
		if !ok {
			continue
		}
		start := global.Value + m.Bias
		for at := start; at+8 <= start+global.Size; at += 8 {
			want, have, ok := v.words(at)
			wantHigh, haveHigh, okHigh := v.words(at + 4)
			if !ok || !okHigh {
				return nil
			}
			if want == have || wantHigh != 0 || haveHigh != 0 {
				continue
			}
			if len(found) > 0 || max(want, have)-min(want, have) > mostLost || min(want, have) == 0 {
				return nil
			}
			found = append(found, exclusion{Span: tracee.Span{Start: at, End: at + 8}, what: "the dynamic linker's count of look-ups", why: "a statistic that threads write at the same time"})
		}
	}
	return found
}

// words returns the recorded and the replayed word at an address.
func (v *verifier) words(at uint64) (want, have uint32, ok bool) {
	w, err := image.Struct[uint32](v.core, evidence.Addr(at))
	if err != nil {
		return 0, 0, false
	}
	h, err := tracee.ReadStruct[uint32](v.process.Memory, at)
	if err != nil {
		return 0, 0, false
	}
	return *w, *h, true
}
