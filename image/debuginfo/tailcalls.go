package debuginfo

import "debug/dwarf"

const (
	attrGNUTailCall           dwarf.Attr = 0x2115
	attrGNUAllTailCallSites   dwarf.Attr = 0x2116
	attrGNUAllCallSites       dwarf.Attr = 0x2117
	attrGNUAllSourceCallSites dwarf.Attr = 0x2118
)

// TailCalls are the jumps by which a function calls others as its last action: call
// sites with DW_AT_call_tail_call (DWARF 5 section 3.4.1), and GNU's forms of these in
// older versions.
type TailCalls struct {
	// Complete says that the compiler claims to describe every tail call of the
	// function (DW_AT_call_all_calls and the like, section 3.3.1.3). It is true of gcc
	// only: clang leaves out calls through memory and of functions that it has no
	// description of.
	Complete bool
	// After holds link-time addresses after jumps (DW_AT_call_return_pc), At those of
	// jumps (DW_AT_call_pc). A jump is in one of them at least.
	After, At []uint64
}

// TailCalls returns the tail calls that the function covering pc describes.
func (i *Info) TailCalls(pc uint64) (TailCalls, error) {
	p, err := i.placeAt(pc)
	if err != nil || !p.found {
		return TailCalls{}, err
	}
	w, err := p.unit.walk(p.function)
	if err != nil {
		return TailCalls{}, err
	}
	var t TailCalls
	var e entry
	for depth := 0; w.next(&e); {
		switch {
		case e.abbrev == nil:
			depth--
		case e.tag() == dwarf.TagSubprogram && depth > 0: // a nested function has its own
			if !w.skipChildren(&e) {
				return t, w.err
			}
		default:
			if err := t.add(&e, depth == 0); err != nil {
				return t, err
			}
			if e.abbrev.children {
				depth++
			}
		}
		if depth <= 0 {
			break
		}
	}
	return t, w.err
}

// add enters what a DIE of the function says of tail calls.
func (t *TailCalls) add(e *entry, outermost bool) error {
	switch e.tag() {
	case dwarf.TagSubprogram:
		t.Complete = outermost && e.anyFlag(dwarf.AttrCallAllCalls, dwarf.AttrCallAllTailCalls, dwarf.AttrCallAllSourceCalls,
			attrGNUAllCallSites, attrGNUAllTailCallSites, attrGNUAllSourceCallSites)
		return nil
	case dwarf.TagCallSite, tagGNUCallSite:
	default:
		return nil
	}
	if !e.anyFlag(dwarf.AttrCallTailCall, attrGNUTailCall) {
		return nil
	}
	after, hasAfter, err := e.address(dwarf.AttrCallReturnPC, dwarf.AttrLowpc)
	if err != nil {
		return err
	}
	at, hasAt, err := e.address(dwarf.AttrCallPC)
	if err != nil {
		return err
	}
	switch {
	case hasAfter:
		t.After = append(t.After, after)
	case hasAt:
		t.At = append(t.At, at)
	default:
		return e.unit.src.bad(e.unit.section, e.off, "tail call without an address")
	}
	return nil
}

// anyFlag reports whether one of the entry's own flags is set.
func (e *entry) anyFlag(attrs ...dwarf.Attr) bool {
	for _, a := range attrs {
		if e.flag(a) {
			return true
		}
	}
	return false
}

// address returns the first of the entry's own attributes that it has, an address.
func (e *entry) address(attrs ...dwarf.Attr) (addr uint64, ok bool, err error) {
	for _, a := range attrs {
		if v, has := e.attr(a); has {
			addr, err = v.addr()
			return addr, err == nil, err
		}
	}
	return 0, false, nil
}
