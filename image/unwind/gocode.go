package unwind

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/gotable"
)

// addGo adds what the Go function table says of the frame's pc. done is true
// when nothing else needs to be asked.
//
// The table's frame sizes are what the runtime unwinds by (pcsp in
// runtime/traceback.go), so they count as call frame information.
func (p *place) addGo(f *Frame, module *image.Module) (done bool) {
	if module == nil {
		return false
	}
	pc := f.LookupPC()
	table, fn, ok, err := module.GoFunctionAt(pc)
	if !ok || !table.HasFrames() {
		if len(p.ways) == 0 && p.problem == nil {
			p.problem = err
		}
		return false
	}
	p.injected = fn.Injected()
	switch {
	case fn.ChangesStack && f.Lookup == image.ReturnAddress && fn.Name != "runtime.cgocallback": // which copies its frame
		// The caller is on another stack. The frame pointer leads there where the
		// runtime kept it, as runtime.systemstack does. runtime.mcall sets it to 0.
		p.ways = []way{{row: framePointerRow(), trust: evidence.TrustFramePointer, source: "frame pointer", switches: true}}
		p.otherStack = fn.Name + " switched stacks"
		return true
	case fn.TopFrame && fn.Name != "runtime.sigtramp": // which returns to the kernel's trampoline
		p.ways = []way{{row: row{cfa: returnRow(8).cfa, ra: image.RIP, outermost: true}, trust: evidence.TrustCFI, source: "Go function table"}}
		return true
	}
	size, err := table.FrameSize(&fn, pc)
	if err != nil {
		if len(p.ways) == 0 {
			p.problem = err
		}
		return false
	}
	// The Go linker's DWARF has the same size, but not the frame pointer.
	p.problem = nil
	p.ways = append(p.ways[:0], way{row: goRow(&fn, size), trust: evidence.TrustCFI, source: "Go function table"})
	return false
}

// goRow is the row of Go code whose return address is size bytes above the
// stack pointer. Go code preserves no register but the frame pointer, which the
// compiler saves next to the return address (cmd/internal/obj/x86, preprocess).
func goRow(fn *gotable.Function, size int64) row {
	r := returnRow(size + 8)
	for _, n := range []image.Register{image.RBX, image.R12, image.R13, image.R14, image.R15} {
		r.rules = append(r.rules, rule{of: n, kind: ruleUndefined})
	}
	switch {
	case size == 0:
		r.rules = append(r.rules, rule{of: image.RBP, kind: ruleSame})
	case fn.Assembly:
		r.rules = append(r.rules, rule{of: image.RBP, kind: ruleUndefined})
	default:
		r.rules = append(r.rules, rule{of: image.RBP, kind: ruleOffset, offset: -16})
	}
	return r
}
