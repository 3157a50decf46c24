package driver

import (
	"slices"
	"unsafe"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// waitReader reads what the threads of a stopped process wait for.
type waitReader struct {
	*stoppedProcess
	*recordings
}

// turn reports whether a thread sleeps on a word in the recording library until it is its turn
// (agent/src/engine/turn.c). A hunt lets one thread run at a time, so each other thread sleeps on
// such a word, whatever call of the program it is in.
func (w waitReader) turn(word evidence.Addr) bool {
	const at = evidence.Addr(unsafe.Offsetof(agent.RawRThread{}.Go))
	slot := word - at - agent.EngineThreads
	if word < agent.EngineThreads+at || slot%agent.ThreadSlot != 0 {
		return false
	}
	t, err := image.Struct[agent.RawRThread](w.process, word-at)
	return err == nil && evidence.Addr(t.Index) == slot/agent.ThreadSlot
}

// endOf returns the number of the recorded thread whose end a word of the recording library reports:
// the first word of the thread's struct dg_fact (agent/src/engine/thread.c). 0: it reports none.
func (w waitReader) endOf(word evidence.Addr) int {
	facts, found := w.process.SymbolNamed("dg_facts")
	size := evidence.Addr(facts.Size / agent.RThreads)
	if !found || size == 0 || word < facts.Addr || word-facts.Addr >= size*agent.RThreads || (word-facts.Addr)%size != 0 {
		return 0
	}
	return int((word - facts.Addr) / size)
}

// notedWaits are the words that the process's threads wait for, noted by the recording library of a
// hunt (agent/src/hunt/hunt.c). If none of the threads can continue, each of them waits for its
// word. If one can, a note counts only for a thread whose wait is not over and has no time limit.
// 0: it is not known.
func (w waitReader) notedWaits() []evidence.Addr {
	threads, found := w.process.SymbolNamed("dg_hunt_threads")
	if !found || threads.Module == nil {
		return nil
	}
	info, err := threads.Module.Debug()
	if err != nil || info == nil {
		return nil // only the stacks are left
	}
	v, found, err := info.GlobalAt(threads.Module.LinkAddr(threads.Addr), 0)
	if err != nil || !found || v.Type == nil || v.Type.Elem() == nil {
		return nil
	}
	note, found := newWaitNote(v.Type.Elem())
	if !found {
		return nil
	}
	note.facts, _ = w.process.SymbolNamed("dg_facts")
	words, stuck := make([]evidence.Addr, len(w.process.Threads)), w.stuck(w.process)
	for i := range w.process.Threads {
		of := int64(w.process.Threads[i].Ref.Recorded) * v.Type.Elem().Size()
		if of > 0 && of < int64(threads.Size) {
			words[i] = note.read(w.process, threads.Addr+evidence.Addr(of), stuck)
		}
	}
	return words
}

// waitNote has the offsets at which the recording library notes what a thread waits for (struct
// dg_wait, agent/src/engine/wait.h), in its data of each thread.
type waitNote struct {
	word, how, value, timed, expired, woken int64
	// facts has the words that say whether threads have ended (agent/src/engine/thread.c).
	facts image.Symbol
}

func newWaitNote(t debuginfo.Type) (n waitNote, found bool) {
	for name, offset := range map[string]*int64{"word": &n.word, "how": &n.how, "value": &n.value, "timed": &n.timed, "expired": &n.expired, "woken": &n.woken} {
		if *offset, found = memberOffset(t, "wait", name); !found {
			return n, false
		}
	}
	return n, true
}

// read returns the word that the thread whose note begins at an address waits for. 0: it is not
// known, for example because the note cannot be read. stuck: no thread can continue.
func (n *waitNote) read(p *image.Process, at evidence.Addr, stuck bool) evidence.Addr {
	word, err := image.Uint64(p, at+evidence.Addr(n.word))
	if err != nil {
		return 0
	}
	if stuck || n.waits(p, at, evidence.Addr(word)) {
		return evidence.Addr(word)
	}
	return 0
}

// waits reports whether a thread is known to wait for a word until another thread wakes it or, if
// it waits for the end of a thread, changes it. For changes of other words the recording library
// waits for its own purposes.
func (n *waitNote) waits(p *image.Process, at, word evidence.Addr) bool {
	const change, wake = 1, 2 // enum dg_wait_for
	how, err := image.Uint32(p, at+evidence.Addr(n.how))
	switch {
	case err != nil:
		return false
	case how == wake:
	case how == change && word >= n.facts.Addr && word-n.facts.Addr < evidence.Addr(n.facts.Size):
		now, err := image.Uint32(p, word)
		noted, err2 := image.Uint32(p, at+evidence.Addr(n.value))
		if err != nil || err2 != nil || now != noted {
			return false
		}
	default:
		return false
	}
	for _, flag := range []int64{n.timed, n.expired, n.woken} {
		var b [1]byte
		if got, err := p.ReadMemory(at+evidence.Addr(flag), b[:]); err != nil || got != 1 || b[0] != 0 {
			return false
		}
	}
	return true
}

// memberOffset is the offset of a nested member of a structure.
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
