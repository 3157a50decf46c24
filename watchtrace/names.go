package watchtrace

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
)

// contextKey identifies the code that made an access within a pass.
type contextKey struct {
	pc, caller evidence.Addr
}

func keyOf(h *replay.Hit) contextKey { return contextKey{h.PC, h.Caller} }

// namer names code and data from the process at a recording's end.
type namer struct {
	process *image.Process // nil: the recording has no core
}

func newNamer(rec *record.Recording, opts image.Options) (*namer, error) {
	path, err := rec.Core()
	if errors.Is(err, os.ErrNotExist) {
		return &namer{}, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := image.OpenCore(path, opts)
	if err != nil {
		return nil, &replay.InputError{Err: fmt.Errorf("watchtrace: the recording's core: %w", err)}
	}
	return &namer{p}, nil
}

func (n *namer) close() {
	if n.process != nil {
		n.process.Close()
	}
}

func (n *namer) context(key contextKey) evidence.Context {
	if n.process == nil {
		return contextOf(nil, key)
	}
	return contextOf(n.process, key)
}

// nameAll is for recordings without a core: their process exists only during a
// replay.
func nameAll(p *image.Process, hits []replay.Hit) map[contextKey]evidence.Context {
	contexts := map[contextKey]evidence.Context{}
	for i := range hits {
		key := keyOf(&hits[i])
		if _, found := contexts[key]; !found {
			contexts[key] = contextOf(p, key)
		}
	}
	return contexts
}

// contextOf finds the innermost line of the program's own code.
func contextOf(p *image.Process, key contextKey) evidence.Context {
	pc, how := key.pc, image.AtInstruction
	if key.caller != 0 {
		pc, how = key.caller, image.ReturnAddress
	}
	if p == nil || pc == 0 {
		return evidence.Context{Site: evidence.Site{PC: pc}, Key: pc.String()}
	}
	calls := p.Symbolize(pc, how)
	c := evidence.Context{Site: calls[0].Site}
	for i := range calls {
		if image.LibraryCode(&calls[i].Site) && i+1 < len(calls) {
			continue
		}
		c.Site = calls[i].Site
		if i+1 < len(calls) {
			c.Caller = calls[i+1].Site
		}
		break
	}
	c.Key = siteKey(&c.Site)
	if c.Caller.Function != "" {
		c.Key += " < " + siteKey(&c.Caller)
	}
	return c
}

// siteKey is equal for equal code, independent of its load address.
func siteKey(s *evidence.Site) string {
	switch {
	case s.Line != 0:
		return fmt.Sprintf("%s %s:%d", s.Function, s.File, s.Line)
	case s.Module != "":
		return fmt.Sprintf("%s+%v", s.Module, s.ModuleOffset)
	}
	return s.PC.String()
}

// lock names a lock by its variable; empty if it is in none.
func (n *namer) lock(addr evidence.Addr) string {
	if n.process == nil {
		return ""
	}
	return LockName(n.process, addr)
}

// LockName names the variable with static storage that is the lock at an address; empty if none is.
func LockName(p *image.Process, addr evidence.Addr) string {
	name := nameOf(p, addr)
	// The first member of glibc's types, and the members of libstdc++'s locks
	// that contain them.
	for _, inside := range []string{".__data.__lock", ".__data.__readers", ".__data", "._M_impl._M_rwlock", "._M_rwlock", "._M_mutex"} {
		name = strings.TrimSuffix(name, inside)
	}
	return name
}

// threads returns the names of a recording's threads. A thread that has ended
// is not in the core.
func (n *namer) threads(h *history) map[uint32]evidence.ThreadRef {
	refs := map[uint32]evidence.ThreadRef{}
	for i, t := range h.threads {
		ref := evidence.ThreadRef{Number: int(i), TID: t.tid, Start: "main"}
		if i != 1 {
			ref.Start = ""
			if t.start != 0 && n.process != nil {
				if s, found := n.process.SymbolAt(t.start); found {
					ref.Start = image.CanonicalName(s.Name)
				}
			}
		}
		if n.process != nil {
			for j := range n.process.Threads {
				// The process's name says nothing about a thread.
				if c := &n.process.Threads[j]; c.Ref.TID == t.tid && t.tid != 0 && c.Ref.Name != n.process.Program.Command {
					ref.Name = c.Ref.Name
				}
			}
		}
		refs[i] = ref
	}
	return refs
}
