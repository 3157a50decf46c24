package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// maxLibraryFrames bounds the frames of one call into library code that was
// compiled into the program.
const maxLibraryFrames = 8

// ownFrames returns the indices of the frames that belong to the program,
// innermost first. Templates and generics of the standard libraries that
// stand on them belong to them and are not counted.
func (in *Input) ownFrames(limit int) []int {
	var own []int
	library := 0
	for i := range in.Frames {
		if limit == 0 || library > maxLibraryFrames {
			break
		}
		if !in.isOwn(&in.Frames[i]) {
			continue
		}
		own = append(own, i)
		calls := in.calls(&in.Frames[i])
		if len(calls) > 0 && image.LibraryCode(&calls[len(calls)-1].Site) {
			library++
			continue
		}
		limit--
	}
	return own
}

func (in *Input) isOwn(f *unwind.Frame) bool {
	if f.Kind == evidence.SignalFrame {
		return false
	}
	m := in.Process.ModuleAt(f.LookupPC())
	if m == nil {
		return false
	}
	site := evidence.Site{Module: m.Path}
	if calls := in.calls(f); len(calls) > 0 {
		site = calls[len(calls)-1].Site
		site.Module = m.Path
	}
	return !image.Machinery(&site)
}

// callee follows a call's target through a PLT stub, whose jump goes through
// a GOT slot, to the function.
func (w *processView) callee(target evidence.Addr) evidence.Addr {
	code, err := readCode(w.memory, w.process.ModuleAt(target), target, 16)
	if err != nil {
		return target
	}
	for n := 0; n < 2 && len(code) > 0; n++ {
		in, err := x86.Decode(code, uint64(target))
		if err != nil {
			return target
		}
		op, ok := explicit(&in, 0)
		if in.Flow == x86.FlowJump && ok && op.IsMemory && op.Memory.Base == x86.RIP {
			if to, err := image.Uint64(w.memory, evidence.Addr(op.Memory.Target)); err == nil {
				return evidence.Addr(to)
			}
			return target
		}
		if in.Op != "endbr64" {
			return target
		}
		code = code[in.Len:]
		target += evidence.Addr(in.Len)
	}
	return target
}

// callees are the entries of the program's own functions that a function
// calls directly, in code order.
func (w *processView) callees(a *analysis) []evidence.Addr {
	var list []evidence.Addr
	seen := map[evidence.Addr]bool{}
	for i := range a.flow.insts {
		in := &a.flow.insts[i]
		tail := in.Flow == x86.FlowJump && in.HasTarget && !a.function.contains(evidence.Addr(in.Target))
		if in.Flow != x86.FlowCall && !tail || !in.HasTarget {
			continue
		}
		to := w.callee(evidence.Addr(in.Target))
		if seen[to] || a.function.contains(to) {
			continue
		}
		seen[to] = true
		m := w.process.ModuleAt(to)
		if m == nil {
			continue
		}
		s, _ := w.process.SymbolAt(to)
		if !image.Machinery(&evidence.Site{Module: m.Path, Function: s.Name}) {
			list = append(list, to)
		}
	}
	return list
}
