package failure

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
)

// askedAt is the place in the program's own code at which a thread asked for what it waits for. Functions that are handed the object itself, as
// a program's own xlock(pthread_mutex_t *) or a method of a class around a mutex, ask on behalf of their callers.
func (w *waiter) askedAt(frames []unwind.Frame, kind evidence.WaitKind) *evidence.Site {
	own := programSite(sitesOfFrames(frames, w))
	if len(typesOf[kind]) == 0 {
		return own
	}
	const mostHanded = 8
	handed := 0
	for i := range min(len(frames), siteFrames) {
		f := &frames[i]
		if !slices.ContainsFunc(f.Calls, func(c image.SymbolizedCall) bool { return ofProgram(&c.Site) }) {
			continue
		}
		calls, info, pc := w.inlineChain(f)
		if len(calls) != len(f.Calls) {
			return own
		}
		for j := range f.Calls {
			if !ofProgram(&f.Calls[j].Site) {
				continue
			}
			vars, err := info.VariablesAt(calls[j], pc)
			if err != nil || handed == mostHanded {
				return own
			}
			if !slices.ContainsFunc(vars, func(v debuginfo.Variable) bool { return v.Parameter && handsIn(v.Type, kind) }) {
				return &f.Calls[j].Site
			}
			handed++
		}
	}
	return own
}

// inlineChain is the inline chain of a frame, innermost first, with the debug information that has it, and the address there; none: there is
// no debug information.
func (w *waiter) inlineChain(f *unwind.Frame) ([]debuginfo.Call, *debuginfo.Info, uint64) {
	m := w.ModuleAt(f.LookupPC())
	if m == nil {
		return nil, nil, 0
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil, nil, 0
	}
	pc := m.LinkAddr(f.LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil {
		return nil, nil, 0
	}
	return calls, info, pc
}

// typesOf are the types of the objects that threads wait for.
var typesOf = map[evidence.WaitKind][]string{
	evidence.WaitMutex:     {"pthread_mutex_t", "mtx_t"},
	evidence.WaitRWLock:    {"pthread_rwlock_t"},
	evidence.WaitCondition: {"pthread_cond_t", "cnd_t"},
	evidence.WaitSemaphore: {"sem_t"},
	evidence.WaitBarrier:   {"pthread_barrier_t"},
}

// handsIn reports whether a parameter is a pointer to an object of a kind.
func handsIn(t debuginfo.Type, kind evidence.WaitKind) bool {
	return t != nil && t.Kind() == debuginfo.KindPointer && isObject(t.Elem(), kind, 0)
}

// isObject reports whether a type is that of an object of a kind, or of a class around one, which may also have pointers.
func isObject(t debuginfo.Type, kind evidence.WaitKind, depth int) bool {
	const mostNested = 4
	if t == nil || depth > mostNested {
		return false
	}
	if slices.Contains(typesOf[kind], strings.TrimPrefix(t.Name(), "volatile ")) {
		return true
	}
	if t.Kind() != debuginfo.KindStruct {
		return false
	}
	found := false
	for _, m := range t.Members() {
		switch {
		case m.Type == nil:
			return false
		case !found && isObject(m.Type, kind, depth+1):
			found = true
		case m.Type.Kind() != debuginfo.KindPointer:
			return false
		}
	}
	return found
}
