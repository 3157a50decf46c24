package debuginfo

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"sort"
)

// GlobalAt returns the variable with static storage that starts at addr (a
// link-time address, as in the symbol table); hint is a pc whose unit is tried
// first. ok is false when the DWARF has none.
func (i *Info) GlobalAt(addr, hint uint64) (v Variable, ok bool, err error) {
	if addr == 0 {
		return Variable{}, false, nil
	}
	statics := func(t *unitTable) []static { return t.statics }
	if v, ok, err := i.hinted(statics, addr, hint); ok || err != nil {
		return v, ok, err
	}
	// The units of the stacks are already read; all others have to be searched
	// for.
	if v, ok, err := firstStatic(i.main.found(), statics, addr); ok || err != nil {
		return v, ok, err
	}
	candidates, err := i.staticCandidates(addr)
	if err != nil {
		return Variable{}, false, err
	}
	return firstStatic(candidates, statics, addr)
}

// ThreadLocalAt returns the thread-local variable at an offset from the start
// of the object's thread-local block (its PT_TLS segment).
func (i *Info) ThreadLocalAt(offset, hint uint64) (v Variable, ok bool, err error) {
	locals := func(t *unitTable) []static { return t.locals }
	if v, ok, err := i.hinted(locals, offset, hint); ok || err != nil {
		return v, ok, err
	}
	data, err := i.main.section(secInfo)
	if err != nil {
		return Variable{}, false, err
	}
	var candidates []*unit
	pattern := binary.LittleEndian.AppendUint64([]byte{10, opConst8u}, offset)
	for at := 0; len(candidates) < maxOverlap; at++ {
		k := bytes.Index(data[at:], pattern)
		if k < 0 {
			break
		}
		at += k
		u, err := i.main.unitAt(uint64(at))
		if err != nil {
			return Variable{}, false, err
		}
		if u != nil {
			candidates = append(candidates, u)
		}
	}
	return firstStatic(candidates, locals, offset)
}

// GlobalNamed returns the variable with static storage that has this name:
// a symbol's, or a source name, qualified in C++ and Rust.
func (i *Info) GlobalNamed(name string, hint uint64) (v Variable, ok bool, err error) {
	if symbol, has := i.main.file.SymbolNamed(name); has {
		if v, ok, err := i.GlobalAt(symbol.Value, hint); ok || err != nil {
			return v, ok, err
		}
	}
	var unit *unit
	if p, err := i.placeAt(hint); err == nil {
		unit = p.unit
	}
	err = i.searchFrom(unit, unqualified(name), func(e *entry) bool {
		if e.tag() == dwarf.TagVariable && !ok {
			v, ok = i.globalOf(e, name)
		}
		return ok
	})
	return v, ok, err
}

// globalOf returns the variable of a DIE if it has the name: the DIE's own, or,
// if that is a declaration in a namespace or class, the variable that it
// declares.
func (i *Info) globalOf(e *entry, name string) (Variable, bool) {
	full, err := e.displayName(e.unit.describe().Language)
	if err != nil || full != name {
		return Variable{}, false
	}
	location, has := e.attr(dwarf.AttrLocation)
	if _, _, fixed := staticAddress(location); has && fixed {
		v, ok, err := e.global()
		return v, ok && err == nil
	}
	if linkage, err := e.linkageName(); err == nil && linkage != "" {
		if symbol, has := i.main.file.SymbolNamed(linkage); has {
			v, ok, err := i.GlobalAt(symbol.Value, 0)
			return v, ok && err == nil
		}
	}
	return e.unit.globalNamed(name)
}

// globalNamed searches the unit's own variables with static storage.
func (u *unit) globalNamed(name string) (Variable, bool) {
	table, err := u.table()
	if err != nil {
		return Variable{}, false
	}
	for _, s := range table.statics {
		if v, ok, err := u.globalAt(s.die); ok && err == nil && v.Name == name {
			return v, true
		}
	}
	return Variable{}, false
}

// GlobalsAt returns the variables with static storage that the unit covering
// pc defines, by address; those local to functions are among them.
func (i *Info) GlobalsAt(pc uint64) ([]Variable, error) {
	p, err := i.placeAt(pc)
	if err != nil || p.unit == nil {
		return nil, err
	}
	table, err := p.unit.table()
	if err != nil {
		return nil, err
	}
	var list []Variable
	for _, s := range table.statics {
		v, ok, err := p.unit.globalAt(s.die)
		if err != nil {
			return list, err
		}
		if ok {
			list = append(list, v)
		}
	}
	return list, nil
}

// hinted looks up a static in the unit that covers the hint.
func (i *Info) hinted(list func(*unitTable) []static, addr, hint uint64) (Variable, bool, error) {
	p, err := i.placeAt(hint)
	if err != nil || p.unit == nil {
		return Variable{}, false, nil // the hint may be wrong
	}
	return firstStatic([]*unit{p.unit}, list, addr)
}

func firstStatic(units []*unit, list func(*unitTable) []static, addr uint64) (Variable, bool, error) {
	for _, u := range units {
		table, err := u.table()
		if err != nil {
			u.src.info.problem(err)
			continue
		}
		if die, ok := find(list(table), addr); ok {
			if v, ok, err := u.globalAt(die); ok || err != nil {
				return v, ok, err
			}
		}
	}
	return Variable{}, false, nil
}

func (u *unit) globalAt(die uint64) (Variable, bool, error) {
	e, err := u.entryAt(die)
	if err != nil {
		return Variable{}, false, err
	}
	return e.global()
}

// global reads a variable with static storage.
func (e *entry) global() (Variable, bool, error) {
	language := e.unit.describe().Language
	v, ok, err := e.variable(0, language)
	if err != nil || !ok {
		return v, false, err
	}
	if v.Name, err = e.displayName(language); err != nil {
		return v, false, err
	}
	if v.OfFunction, err = e.inFunction(); err != nil {
		return v, false, err
	}
	v.Linkage, err = e.linkageName()
	return v, err == nil, err
}

// inFunction reports whether a DIE's declaration is within a function.
func (e *entry) inFunction() (bool, error) {
	at, err := e.declared()
	if err != nil {
		return false, err
	}
	table, err := at.unit.table()
	if err != nil {
		return false, err
	}
	for i, n := table.scopeAt(at.off), 0; i >= 0 && n < maxHops; i, n = table.scopes[i].parent, n+1 {
		around, err := at.unit.entryAt(table.scopes[i].die)
		if err != nil || around.tag() == dwarf.TagSubprogram {
			return err == nil, err
		}
	}
	return false, nil
}

// rawStatic is a place in .debug_info that reads like an expression with a
// static address.
type rawStatic struct{ addr, at uint64 }

// staticCandidates returns the units that may have a variable at addr.
func (i *Info) staticCandidates(addr uint64) ([]*unit, error) {
	index, err := i.rawStatics()
	if err != nil {
		return nil, err
	}
	var list []*unit
	n := sort.Search(len(index), func(n int) bool { return index[n].addr >= addr })
	for ; n < len(index) && index[n].addr == addr && len(list) < maxOverlap; n++ {
		u, err := i.main.unitAt(index[n].at)
		if err != nil {
			return nil, err
		}
		if u != nil && u.locates(index[n].at) {
			list = append(list, u)
		}
	}
	data, err := i.main.section(secAddr)
	if err != nil {
		return nil, err
	}
	pattern := binary.LittleEndian.AppendUint64(nil, addr)
	for at := 0; len(list) < maxOverlap; at++ {
		k := bytes.Index(data[at:], pattern)
		if k < 0 {
			break
		}
		at += k
		units, err := i.main.unitsByBase(uint64(at), func(u *unit) uint64 { return u.root.addrBase })
		if err != nil {
			return nil, err
		}
		for _, u := range units {
			full, err := u.splitUnit()
			if err != nil {
				i.problem(err)
			}
			if full == nil {
				full = u
			}
			list = append(list, full)
		}
	}
	return list, nil
}

// locates reports whether an expression is the location of a variable, and not
// another one that contains an address, such as the value of a call's
// parameter.
func (u *unit) locates(at uint64) bool {
	const reach = 64 // of the location from the start of its DIE
	_, ok := u.entryWith(dwarf.AttrLocation, at, reach, func(tag dwarf.Tag, f form) bool {
		return tag == dwarf.TagVariable && (f == formExprloc || f == formBlock1)
	})
	return ok && u.broken == nil
}

// maxRawStatics bounds the index of raw places.
const maxRawStatics = 1 << 22

// scanStatics looks for every expression of nine bytes that is DW_OP_addr
// with an address of the object. One pass over the raw section costs a tenth
// of a second for 250 MB, and spares parsing the units.
func (i *Info) scanStatics() ([]rawStatic, error) {
	data, err := i.main.section(secInfo)
	if err != nil {
		return nil, err
	}
	low, high := i.extent()
	var list []rawStatic
	pattern := []byte{9, opAddr}
	for at := 0; len(list) < maxRawStatics; at++ {
		k := bytes.Index(data[at:], pattern)
		if k < 0 {
			break
		}
		at += k
		if len(data)-at < 10 {
			break
		}
		addr := binary.LittleEndian.Uint64(data[at+2:])
		if addr >= low && addr < high {
			list = append(list, rawStatic{addr, uint64(at)})
		}
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].addr < list[b].addr })
	return list, nil
}

// extent returns the range of the object's link-time addresses.
func (i *Info) extent() (low, high uint64) {
	low = ^uint64(0)
	for _, s := range i.main.file.Segments() {
		if s.Memsz == 0 { // its tools did not keep what a debug file has to
			return 1, ^uint64(0)
		}
		low = min(low, s.Vaddr)
		high = max(high, s.Vaddr+s.Memsz)
	}
	if high == 0 { // no program headers to go by
		return 1, ^uint64(0)
	}
	return max(low, 1), high
}
