package driver

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/replay/record"
)

// stuck reports whether the process was ended because none of its threads could go on.
func (a *analysis) stuck() bool {
	if !a.ofRecording() {
		return false
	}
	o := a.failing[0].Manifest.Outcome.Stuck
	return o == record.StuckBlocked || o == record.StuckCycle
}

// ofRecording reports whether the process is the recording's, and its threads are known
// by their numbers there.
func (a *analysis) ofRecording() bool {
	p := a.process
	return len(a.failing) > 0 && p.Program.PID == a.failing[0].Manifest.PID && len(p.Threads) > 0 && p.Threads[0].Ref.Recorded != 0
}

// notedWaits are the words that the process's threads sleep on, as the recording library has
// noted them (agent/src/engine_hunt.c). Only one that hunts, and found that none can go on,
// has each of them sleep on what it waits for. 0: it is not known.
func (a *analysis) notedWaits() []evidence.Addr {
	if !a.stuck() {
		return nil
	}
	threads, found := a.process.SymbolNamed("dg_hunt_threads")
	if !found || threads.Module == nil {
		return nil
	}
	info, err := threads.Module.Debug()
	if err != nil || info == nil {
		return nil // what the stacks tell is left
	}
	v, found, err := info.GlobalAt(threads.Module.LinkAddr(threads.Addr), 0)
	if err != nil || !found || v.Type == nil || v.Type.Elem() == nil {
		return nil
	}
	offset, found := memberOffset(v.Type.Elem(), "wait", "word")
	if !found {
		return nil
	}
	words := make([]evidence.Addr, len(a.process.Threads))
	for i := range a.process.Threads {
		of := int64(a.process.Threads[i].Ref.Recorded)*v.Type.Elem().Size() + offset
		if word, err := image.Uint64(a.process, threads.Addr+evidence.Addr(of)); err == nil {
			words[i] = evidence.Addr(word)
		}
	}
	return words
}

// memberOffset is where a member of a member of a structure is.
func memberOffset(t debuginfo.Type, path ...string) (offset int64, found bool) {
	for _, name := range path {
		i := slices.IndexFunc(t.Members(), func(m debuginfo.Member) bool { return m.Name == name && m.Type != nil })
		if i < 0 {
			return 0, false
		}
		m := t.Members()[i]
		offset, t = offset+m.Offset, m.Type
	}
	return offset, true
}

// stackVariable names an address on a stack by the function and its variable ("main's pool.lock");
// empty: no frame is known to have a variable there.
func (a *analysis) stackVariable(addr evidence.Addr) string {
	for i := range a.walked {
		frames := a.walked[i].Frames
		for j := range frames {
			f := &frames[j]
			if f.CFA == 0 || addr >= f.CFA || addr < f.Registers.SP() {
				continue
			}
			if name := a.variableIn(f, addr); name != "" {
				return name
			}
			break // the frame is found, and its variable is not known
		}
	}
	return ""
}

// variableIn names the variable of a frame that is stored at an address.
func (a *analysis) variableIn(f *unwind.Frame, addr evidence.Addr) string {
	m := a.process.ModuleAt(f.PC())
	if m == nil {
		return ""
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return ""
	}
	pc := m.LinkAddr(f.LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil || len(calls) != len(f.Calls) {
		return ""
	}
	frame := &value.Frame{Process: a.process, Module: m, Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
	for level, call := range calls {
		variables, err := info.VariablesAt(call, pc)
		if err != nil {
			continue
		}
		for _, v := range variables {
			where, err := value.Lives(frame, v)
			if err != nil || !where.InMemory || v.Type == nil || addr < where.Addr || addr >= where.Addr+evidence.Addr(max(v.Type.Size(), 0)) {
				continue
			}
			path, _, _ := value.Path(v.Type, int64(addr-where.Addr), 0)
			return evidence.ShortName(f.Calls[level].Site.Function) + "'s " + v.Name + lockPath(path)
		}
	}
	return ""
}

// lockPath shortens the path to the first member of a lock to a path to the lock: it removes the
// members of the C library's types and of libstdc++'s.
func lockPath(path string) string {
	path, _, _ = strings.Cut(path, ".__")
	// A std::condition_variable has one in another.
	for _, inside := range []string{"._M_impl._M_rwlock", "._M_rwlock", "._M_mutex", "._M_cond", "._M_cond"} {
		path = strings.TrimSuffix(path, inside)
	}
	return path
}
