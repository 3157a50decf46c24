package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay/record"
	"diagnose/staticscan"
	"diagnose/watchtrace"
)

// widest is the last scope that suspects are taken from. Short propagation is the
// rule and not the law (OS-level replay analysis, section 3.4): what the failing
// function itself touches comes first, then what its callers do and the code that
// was seen to access those suspects, then what the other threads were at.
const widest = 2

// scope chooses the memory whose accesses are looked at, the more of it the wider it is.
type scope struct {
	in     *Input
	rec    *record.Recording
	exact  *exact
	stacks *stackVariables
	heap   *heapTargets
	early  *earlyReads
}

// targets are the targets of a scope, those of the narrower ones first. seen is code
// of the functions that accessed the suspects before.
func (s *scope) targets(level int, seen []evidence.Addr) []watchtrace.Target {
	var list []watchtrace.Target
	add := func(targets []watchtrace.Target) {
		for _, t := range targets {
			t = members(s.in.Process, s.static(t))
			same := func(o watchtrace.Target) bool { return o.Name == t.Name || o.Addr == t.Addr && o.Size == t.Size }
			if !stream[t.Name] && !foreign(s.in.Process, t) && !slices.ContainsFunc(list, same) {
				list = append(list, t)
			}
		}
	}
	add(s.handlerTargets())
	if s.in.Case.Scan != nil {
		add(watchtrace.Suspects(s.in.Case.Scan))
	}
	p := s.in.Process
	if level > 0 && p.Failing >= 0 && p.Failing < len(p.Threads) {
		t := &p.Threads[p.Failing]
		add(s.heap.static())
		if len(seen) > 0 {
			add(scanned(s.in.Process, t, staticscan.Options{At: seen, Handed: true}))
		}
		add(scanned(s.in.Process, t, staticscan.Options{Depth: level, Handed: true}))
		// What the callers called before: it may have handed over what was found wrong.
		if callers := callers(s.in.Case, level); len(callers) > 0 {
			add(scanned(s.in.Process, t, staticscan.Options{At: callers, Depth: 1, Handed: true}))
		}
		if s.in.Case.Scan != nil && len(s.in.Case.Scan.Functions) > 0 && len(list) == 0 {
			add(scanned(s.in.Process, t, staticscan.Options{Functions: s.in.Case.Scan.Functions, Handed: true}))
		}
		add(s.heap.pointedFrom(list))
	}
	if level > 0 {
		stack := s.stacks.parts()
		add(stack)
		// What containers have on the heap comes after the variable itself, which says more. A
		// run that passes has freed it: with one, orders of it are not to be compared.
		if level > 1 && len(s.in.Passing) == 0 {
			add(s.heap.pointedFrom(stack))
		}
	}
	if level > 1 {
		for i := range p.Threads {
			if i != p.Failing && i < mostThreadsScanned {
				add(scanned(s.in.Process, &p.Threads[i], staticscan.Options{Depth: 1}))
			}
		}
	}
	if level > 0 {
		add(s.flowing()) // what the code calls memory says more than the heap's name of it
	}
	if level == widest {
		add(s.early.overtaken)
	}
	if level == widest && s.heap.tidy(list) {
		add(s.heap.allocated())
	}
	return list
}

// flowing are the targets that a trace shows to have a part in the failing check, of which more than one thread made accesses.
func (s *scope) flowing() (list []watchtrace.Target) {
	const most = 16
	r := s.exact.reached()
	if r == nil {
		return nil
	}
	for _, l := range r.Shared[:min(len(r.Shared), most)] {
		list = append(list, targetsAt(s.in.Process, s.in.Object, l.Addr, l.Size, "")...)
	}
	return list[:min(len(list), most)]
}

// handlerTargets are what the handlers write of the signals that came to a program of one
// thread: nothing else can have come between its own accesses. A handler writes errno through
// the functions that it calls, so errno is one of them whatever the handler's own code is.
func (s *scope) handlerTargets() []watchtrace.Target {
	p := s.in.Process
	handlers := s.handlers()
	if len(handlers) == 0 || p.Failing < 0 || p.Failing >= len(p.Threads) {
		return nil
	}
	thread := &p.Threads[p.Failing]
	frames := unwind.New(p).Walk(thread, 64).Frames
	scan, _, err := staticscan.Run(staticscan.Input{Process: p, Thread: thread, Frames: frames},
		staticscan.Options{At: handlers, Depth: 1, Handed: true})
	var list []watchtrace.Target
	if err == nil { // code without frames of the program's own has no suspects
		scan.Suspects = slices.DeleteFunc(scan.Suspects, func(s evidence.Suspect) bool { return s.Access == evidence.Read })
		list = watchtrace.Suspects(&scan)
	}
	if at, ok := errnoAddress(p, thread); ok {
		list = append(list, watchtrace.Target{Name: errnoName, Type: "int", Addr: at, Size: errnoSize})
	}
	return list
}

// handlers are the functions that ran for signals which no instruction raised, in any of the
// recordings; none if there are several threads.
func (s *scope) handlers() []evidence.Addr {
	const most = 8
	var list []evidence.Addr
	for _, rec := range append([]*record.Recording{s.rec}, s.in.Passing...) {
		if !slices.Equal(rec.Log.Threads(), []uint32{1}) {
			return nil
		}
		for e, err := range rec.Log.Events(1) {
			if err != nil {
				break // those until then are enough
			}
			if !sent(e) || len(e.Args) <= argHandler || len(list) == most {
				continue
			}
			at := evidence.Addr(e.Args[argHandler])
			if _, ok := s.in.Process.SymbolAt(at); ok && !slices.Contains(list, at) {
				list = append(list, at)
			}
		}
	}
	return list
}

// argHandler is where the event of a signal has the handler: dg_signal_log.
const argHandler = 6

// static gives a target that was reached through a pointer the name of the variable
// that it is a part of: other code has other pointers to it. What lies before where
// the pointer points is no element of that: the heap knows what it is.
func (s *scope) static(t watchtrace.Target) watchtrace.Target {
	// So it does of what only an operand names.
	if (strings.Contains(t.Name, "[-") || strings.HasPrefix(t.Name, "[")) && s.in.Object != nil {
		if o := s.in.Object(t.Addr); o != nil && t.Addr >= o.Addr {
			t.Group = objectName(o)
			offset := fmt.Sprintf("+%#x", uint64(t.Addr-o.Addr))
			t.Name, t.Identity = t.Group+offset, objectIdentity(o).At(offset)
		}
		return t
	}
	if !strings.Contains(t.Name, "->") && !strings.HasPrefix(t.Name, "*") {
		return t
	}
	if found := watchtrace.Around(s.in.Process, t.Addr, 1); len(found) == 1 && found[0].Addr == t.Addr && found[0].Size == t.Size {
		return found[0]
	}
	return t
}

// members leaves of an array, of whose elements one member is meant and the index is not
// known, that member of each: the others are other variables.
func members(p *image.Process, t watchtrace.Target) watchtrace.Target {
	array, member, vague := strings.Cut(t.Name, "[...]")
	if !vague || member == "" || strings.Contains(member, "[...]") {
		return t
	}
	const most = 64 // members of two elements
	var first *watchtrace.Target
	for _, x := range watchtrace.Around(p, t.Addr, most) {
		_, same, element := strings.Cut(strings.TrimPrefix(x.Name, array), "]")
		if !element || !strings.HasPrefix(x.Name, array+"[") || same != member {
			continue
		}
		if first == nil {
			first = &x
			continue
		}
		if first.Addr == t.Addr && int(x.Addr-first.Addr) < t.Size {
			t.Stride, t.Part = int(x.Addr-first.Addr), x.Size
		}
		break
	}
	return t
}

// mostThreadsScanned bounds the other threads that are looked at.
const mostThreadsScanned = 16

// stream are variables of the C library that all programs report failures with.
var stream = map[string]bool{"stderr": true, "stdout": true, "stdin": true}

// functions is code of those of the program's own that access what was traced, so many at most. What the code
// of a runtime accesses besides is its own.
func (r *race) functions() (list []evidence.Addr) {
	const most = 12
	known := map[string]bool{"": true, "main": true}
	for _, t := range slices.Concat(r.failing, r.passing) {
		for i := range t.log.Contexts {
			s := &t.log.Contexts[i].Site
			physical := cmp.Or(t.log.Contexts[i].Caller.Function, s.Function) // code that was inlined is its caller's
			if !known[physical] && s.File != "" && !image.LibraryCode(s) && len(list) < most {
				known[physical] = true
				list = append(list, s.PC)
			}
		}
	}
	return list
}

// callers is code of the functions of the program's own that the failing thread was in, without
// main, which calls everything, unless the scope is the widest.
func callers(c *evidence.Case, level int) []evidence.Addr {
	const most = 4
	var list []evidence.Addr
	known := map[string]bool{}
	for _, g := range c.Stacks {
		if !g.Failing {
			continue
		}
		for i := range g.Stack.Frames {
			s := &g.Stack.Frames[i].Site
			if s.Function == "" || s.File == "" || image.LibraryCode(s) || len(list) == most || s.Function == "main" && level < widest {
				continue
			}
			if !known[s.Function] {
				known[s.Function] = true
				list = append(list, s.PC)
			}
		}
	}
	return list
}

// scanned are the suspects of the code that a thread was at, or of the functions
// of the options.
func scanned(p *image.Process, t *image.Thread, opts staticscan.Options) []watchtrace.Target {
	frames := unwind.New(p).Walk(t, 64).Frames
	scan, _, err := staticscan.Run(staticscan.Input{Process: p, Thread: t, Frames: frames}, opts)
	if err != nil {
		return nil // code without frames of the program's own has no suspects
	}
	return watchtrace.Suspects(&scan)
}

// static is the static memory that variables of the failing thread's frames
// point to.
func (h *heapTargets) static() []watchtrace.Target {
	const most = 8
	var list []watchtrace.Target
	for _, p := range h.pointers() {
		list = append(list, watchtrace.Around(h.in.Process, p.to, most)...)
	}
	return list
}
