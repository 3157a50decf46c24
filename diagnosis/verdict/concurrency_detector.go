package verdict

import (
	"path"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/patterns"
	"diagnose/watchtrace"
)

// ordersItself is why an order of a detector is not proved, although it cures.
const ordersItself = "atomic instructions order themselves, and whoever is kept from coming second is not found out: what brought both threads there decides"

// detector reports whether a candidate is who is first at a check that the failing
// function makes by atomic instructions. It finds out that two contexts have what is
// one's: keeping them apart cures any reason for that. Where passing runs have both the
// other way round, as a count is dropped behind where it is raised, it is who is first
// that is wrong.
func (r *race) detector(c *patterns.Candidate) bool {
	log := r.failing[c.Run].log
	return detects(c, log, func(a *evidence.Access) bool {
		return atomic(r.Process, a.PC) && inFailingFunction(r.Case, &log.Contexts[a.Context].Site)
	})
}

// detects is detector, where own tells an atomic instruction of the failing function.
func detects(c *patterns.Candidate, log *evidence.AccessLog, own func(*evidence.Access) bool) bool {
	if c.Never || c.Reversed || len(c.Accesses) != 2 {
		return false
	}
	return !slices.ContainsFunc(c.Accesses, func(i int) bool {
		return log.Accesses[i].Kind != evidence.CodeReadWrite || !own(&log.Accesses[i])
	})
}

// inFailingFunction reports whether a place is in a function that the failing thread was in.
func inFailingFunction(c *evidence.Case, s *evidence.Site) bool {
	for _, g := range c.Stacks {
		if g.Failing && slices.ContainsFunc(g.Stack.Frames, func(f evidence.Frame) bool {
			return s.Function != "" && evidence.ShortName(f.Site.Function) == evidence.ShortName(s.Function)
		}) {
			return true
		}
	}
	return false
}

// atomic reports whether the instruction at an address has a lock prefix, or is an
// exchange with memory, which needs none. Code that cannot be read is not known to be one.
func atomic(m image.Memory, pc evidence.Addr) bool {
	const (
		lock, operandSize    = 0xf0, 0x66
		rexMask, rex         = 0xf0, 0x40
		exchange8, exchange  = 0x86, 0x87
		prefixesAndOperation = 4
	)
	code := make([]byte, prefixesAndOperation)
	n, _ := m.ReadMemory(pc, code) // as far as it goes
	code = code[:n]
	if len(code) > 0 && code[0] == operandSize {
		code = code[1:]
	}
	if len(code) > 0 && code[0] == lock {
		return true
	}
	if len(code) > 0 && code[0]&rexMask == rex {
		code = code[1:]
	}
	return len(code) > 0 && (code[0] == exchange8 || code[0] == exchange)
}

// foreign reports whether a target is no variable of the program: the insides of
// locks, and what is the agent's.
func foreign(p *image.Process, t watchtrace.Target) bool {
	if t.Addr >= agent.EngineBase && t.Addr < agent.EngineStacks {
		return true
	}
	m := p.ModuleAt(t.Addr)
	return insideLock(t) || m != nil && strings.HasPrefix(path.Base(m.Path), "libdiagnose-")
}

// lockTypes are the C library's whose insides are its own. Those of some have members
// (__data beside __size and __align, bits/pthreadtypes.h), others are numbers.
var lockTypes = map[string]bool{"pthread_mutex_t": true, "pthread_rwlock_t": true, "pthread_spinlock_t": true, "pthread_cond_t": true,
	"pthread_barrier_t": true, "pthread_once_t": true, "sem_t": true}

// lockMembers are the members by which a path leads into a lock: the C library's, and of
// Rust's locks (library/std/src/sys/sync), which are a futex or a state.
var lockMembers = map[string]bool{"__data": true, "__size": true, "__align": true}

// insideLock reports whether a target is a lock or a part of one.
func insideLock(t watchtrace.Target) bool {
	if lockTypes[strings.TrimPrefix(t.Type, "volatile ")] {
		return true
	}
	members := strings.FieldsFunc(t.Name, func(r rune) bool { return r == '.' || r == '>' || r == '-' || r == '[' || r == ']' })
	for i, m := range members {
		futex := i > 0 && members[i-1] == "inner" && (m == "futex" || m == "state" || m == "writer_notify")
		if lockMembers[m] || futex && i+1 < len(members) && members[i+1] == "v" {
			return true
		}
	}
	return false
}
