package value

import (
	"errors"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// implicitPointer is the error for a pointer that the compiler removed, but
// whose target it describes (DW_OP_implicit_pointer, DWARF 5 section
// 2.6.1.1.4). target is the offset of the variable pointed to, offset the
// distance from its start.
type implicitPointer struct {
	target uint64
	offset int64
}

func (*implicitPointer) Error() string {
	return "optimized out: a pointer to a variable that is not in memory"
}

// throughImplicit shows the variable that a removed pointer points to.
func throughImplicit(f *Frame, v *debuginfo.Variable, err error, opts Options) (evidence.Value, bool) {
	var p *implicitPointer
	if !errors.As(err, &p) || p.offset != 0 || f.Module == nil {
		return evidence.Value{}, false
	}
	target, ok, err := v.ImplicitPointer(p.target, f.lookupPC())
	if err != nil || !ok || target.Type == nil {
		return evidence.Value{}, false
	}
	loc, err := Lives(f, target)
	if err != nil {
		return evidence.Value{}, false
	}
	obj, err := loc.object(f, target.Type.Size())
	if err != nil {
		return evidence.Value{}, false
	}
	w := newFormatter(f.readable(), opts)
	shown := w.value(obj, target.Type, 1)
	if shown.Unavailable != "" {
		return evidence.Value{}, false
	}
	out := evidence.Value{Text: "(optimized out) -> " + shown.Text, Fields: shown.Fields, Elided: shown.Elided}
	return out, true
}
