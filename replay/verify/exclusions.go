package verify

import (
	"fmt"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/tracee"
)

// exclusions returns the memory that is not compared.
func (v *verifier) exclusions() []exclusion {
	list := []exclusion{{Span: tracee.Span{Start: agent.EngineBase, End: agent.EngineStacks}, what: "the engine's range", why: whyEngine}}
	for _, m := range v.maps {
		switch {
		case tracee.Hidden(m.Start, m.Path) && strings.HasPrefix(m.Path, "["):
			list = append(list, exclusion{Span: m.Span, what: m.Path, why: "the kernel's"})
		case v.ofAgent(m):
			list = append(list, exclusion{Span: m.Span, what: v.library(), why: whyEngine, variables: true})
		}
	}
	list = append(list, v.deadStacks()...)
	list = append(list, v.sharedMemory()...)
	list = append(list, v.endedStacks()...)
	list = append(list, v.endedIDs()...)
	list = append(list, v.startingIDs()...)
	list = append(list, v.newStacks()...)
	list = append(list, v.timesLeft()...)
	return append(list, v.linkerCount()...)
}

// ofAgent reports whether a mapping has the library's writable data, where the
// engine's variables are.
func (v *verifier) ofAgent(m tracee.Mapping) bool {
	if m.Perms[1] != 'w' {
		return false
	}
	module := v.core.ModuleAt(evidence.Addr(m.Start))
	return module != nil && module.Path == string(v.stage.Rec.Manifest.Agent.Path)
}

// sharedMemory returns the memory that other processes write, if the recording says that there
// were any.
func (v *verifier) sharedMemory() []exclusion {
	if !v.stage.Shared {
		return nil
	}
	var list []exclusion
	for i := range v.core.Mappings {
		m := &v.core.Mappings[i]
		// The kernel's names of shared memory (mm/shmem.c, ipc/shm.c), and shm_open(3)'s.
		for _, name := range []string{"/dev/zero", "/SYSV", "/dev/shm/"} {
			if strings.HasPrefix(m.Path, name) {
				list = append(list, exclusion{Span: tracee.Span{Start: uint64(m.Start), End: uint64(m.End)}, what: "shared memory", why: "other processes write there, too"})
			}
		}
	}
	return list
}

// deadStacks returns the parts of the threads' stacks below what they use. Signals leave their
// frames there, whenever they arrive.
func (v *verifier) deadStacks() []exclusion {
	var list []exclusion
	for _, i := range sortedKeys(v.recorded) {
		t := v.recorded[i]
		low, high := t.Raw.StackLow, t.Raw.StackHigh
		if m := v.core.MappingAt(evidence.Addr(t.Program().Rsp)); i == 1 && m != nil && m.Path == "[stack]" {
			low, high = uint64(m.Start), uint64(m.End)
		}
		sp := t.Program().Rsp - tracee.RedZone
		if low == 0 || sp <= low || sp >= high {
			continue // on a stack for handlers, or one that the program made
		}
		list = append(list, exclusion{Span: tracee.Span{Start: low, End: sp}, what: fmt.Sprintf("the stack of thread %d below its stack pointer", i), why: "the program does not use it"})
	}
	return list
}

// endedStacks returns the stacks of threads that have ended, if no other thread uses them. The
// dynamic linker at the first call of a function, or glibc where a thread waits, leaves different
// frames there.
func (v *verifier) endedStacks() []exclusion {
	used := map[uint64]bool{}
	for _, t := range v.recorded {
		used[t.Raw.StackLow] = true
	}
	var list []exclusion
	for _, raw := range v.ended() {
		if used[raw.StackLow] {
			continue
		}
		low, high := raw.StackLow, raw.ThreadPointer
		if low < agent.EngineStacks || high <= low || high > agent.EngineEnd {
			continue // one that the program made, and may look at
		}
		used[low] = true
		list = append(list, exclusion{Span: tracee.Span{Start: low, End: high}, what: "the stacks of threads that ended", why: "the program does not use them"})
	}
	return list
}

func (v *verifier) tellExclusions(list []exclusion, lost []uint64) {
	index := map[string]int{}
	for i, x := range list {
		if lost[i] == 0 {
			continue
		}
		j, ok := index[x.what]
		if !ok {
			j = len(v.result.Excluded)
			index[x.what] = j
			v.result.Excluded = append(v.result.Excluded, Exclusion{What: x.what, Why: x.why})
		}
		v.result.Excluded[j].Bytes += lost[i]
	}
}
