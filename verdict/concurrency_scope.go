package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
	"diagnose/unwind"
	"diagnose/watchtrace"
)

// widest is the last scope that suspects are taken from. Short propagation is the
// rule and not the law (OS-level replay analysis, section 3.4): what the failing
// function itself touches comes first, then its callers, then what the other
// threads were at.
const widest = 2

// scope are the targets of a scope, those of the narrower ones first.
func (w *work) scope(level int) []watchtrace.Target {
	var list []watchtrace.Target
	add := func(targets []watchtrace.Target) {
		for _, t := range targets {
			same := func(o watchtrace.Target) bool { return o.Name == t.Name || o.Addr == t.Addr && o.Size == t.Size }
			if !stream[t.Name] && !slices.ContainsFunc(list, same) {
				list = append(list, t)
			}
		}
	}
	if w.Case.Scan != nil {
		add(watchtrace.Suspects(w.Case.Scan))
	}
	p := w.Process
	if level > 0 && p.Failing >= 0 && p.Failing < len(p.Threads) {
		add(w.pointedTo())
		add(w.scanned(&p.Threads[p.Failing], level))
	}
	if level > 1 {
		for i := range p.Threads {
			if i != p.Failing && i < mostThreadsScanned {
				add(w.scanned(&p.Threads[i], 1))
			}
		}
	}
	return list
}

// mostThreadsScanned bounds the other threads that are looked at.
const mostThreadsScanned = 16

// stream are variables of the C library that all programs report failures with.
var stream = map[string]bool{"stderr": true, "stdout": true, "stdin": true}

// scanned are the suspects of the code that a thread was at.
func (w *work) scanned(t *image.Thread, depth int) []watchtrace.Target {
	frames := unwind.New(w.Process).Walk(t, 64).Frames
	scan, _, err := staticscan.Run(staticscan.Input{Process: w.Process, Thread: t, Frames: frames}, staticscan.Options{Depth: depth})
	if err != nil {
		return nil // code without frames of the program's own has no suspects
	}
	return watchtrace.Suspects(&scan)
}

// pointedTo is the static memory that variables of the failing thread's frames
// point to.
func (w *work) pointedTo() []watchtrace.Target {
	const most = 8
	var list []watchtrace.Target
	for _, g := range w.Case.Stacks {
		if !g.Failing {
			continue
		}
		for i := range g.Stack.Frames {
			f := &g.Stack.Frames[i]
			for _, v := range slices.Concat(f.Args, f.Locals) {
				if a := v.Value.Address; a != nil && *a != 0 && *a != evidence.Addr(^uint64(0)) {
					list = append(list, watchtrace.Around(w.Process, *a, most)...)
				}
			}
		}
	}
	return list
}
