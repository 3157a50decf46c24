package debuginfo

import "debug/dwarf"

// CallSiteParameter returns the DWARF expression, to be evaluated in the
// caller's frame, for the value that register reg held when the call
// returning to returnPC was made (DW_TAG_call_site_parameter,
// DW_AT_call_value).
func (i *Info) CallSiteParameter(returnPC uint64, reg int) (expr []byte, ok bool, err error) {
	e, ok, err := i.callSite(returnPC)
	if err != nil || !ok {
		return nil, false, err
	}
	return e.parameterValue(reg)
}

// HasCallSite reports whether the call that returns to returnPC is described
// (DW_TAG_call_site). Code that was compiled without optimisation has no such descriptions.
func (i *Info) HasCallSite(returnPC uint64) (bool, error) {
	_, ok, err := i.callSite(returnPC)
	return ok, err
}

func (i *Info) callSite(returnPC uint64) (e entry, ok bool, err error) {
	// a call that never returns may be the function's last instruction
	p, err := i.placeAt(returnPC - 1)
	if err != nil || !p.found {
		return entry{}, false, err
	}
	w, err := p.unit.walk(p.function)
	if err != nil {
		return entry{}, false, err
	}
	for depth := 0; w.next(&e); {
		if e.abbrev == nil {
			depth--
		} else {
			if e.isCallSite(returnPC) {
				return e, true, nil
			}
			if e.abbrev.children {
				depth++
			}
		}
		if depth <= 0 {
			break
		}
	}
	return entry{}, false, w.err
}

func (e *entry) isCallSite(returnPC uint64) bool {
	var attr dwarf.Attr
	switch e.tag() {
	case dwarf.TagCallSite:
		attr = dwarf.AttrCallReturnPC
	case tagGNUCallSite:
		attr = dwarf.AttrLowpc
	default:
		return false
	}
	v, ok := e.attr(attr)
	if !ok {
		return false
	}
	addr, err := v.addr()
	return err == nil && addr == returnPC
}

func (e *entry) parameterValue(reg int) (expr []byte, ok bool, err error) {
	var found value
	childErr := e.children(func(child *entry) bool {
		if child.tag() != dwarf.TagCallSiteParameter && child.tag() != tagGNUCallSiteParameter {
			return true
		}
		location, has := child.attr(dwarf.AttrLocation)
		if !has || !namesRegister(location.block, reg) {
			return true
		}
		for _, attr := range []dwarf.Attr{dwarf.AttrCallValue, attrGNUCallSiteValue} {
			if v, has := child.attr(attr); has {
				found = v
			}
		}
		return false
	})
	if childErr != nil || len(found.block) == 0 {
		return nil, false, childErr
	}
	expr, err = found.unit.portable(found.block)
	return expr, err == nil, err
}

func namesRegister(expr []byte, reg int) bool {
	if len(expr) == 1 && reg < 32 {
		return int(expr[0]) == opReg0+reg
	}
	if len(expr) > 1 && expr[0] == opRegx {
		r := reader{data: expr, pos: 1}
		return r.uleb() == uint64(reg) && !r.bad
	}
	return false
}
