package debuginfo

import "debug/dwarf"

// DWARF language codes (DWARF 5 table 7.17).
const (
	langCxx98 = 0x04
	langCxx03 = 0x19
	langCxx11 = 0x1a
	langRust  = 0x1c
	langCxx14 = 0x21
	langCxx17 = 0x2a
	langCxx20 = 0x2b
)

// qualifies reports whether names of the language are qualified by their
// scopes.
func qualifies(language int64) bool {
	switch language {
	case langCxx98, langCxx03, langCxx11, langCxx14, langCxx17, langCxx20, langRust:
		return true
	}
	return false
}

// qualifiedName returns a DIE's name within its namespaces and classes.
func (e *entry) qualifiedName() (string, error) { return e.qualified(0) }

// qualified bounds the nesting of scopes that are completions of others.
func (e *entry) qualified(nesting int) (string, error) {
	name, err := e.name()
	if err != nil || name == "" {
		return "", err
	}
	prefix, err := e.scopeName(nesting)
	if err != nil || prefix == "" {
		return name, err
	}
	return prefix + "::" + name, nil
}

// declared returns the DIE at the end of the chain of origins: the one within
// the scope of its declaration.
func (e *entry) declared() (entry, error) {
	at := *e
	for range maxHops {
		next, ok, err := at.origin()
		if !ok || err != nil {
			return at, err
		}
		at = next
	}
	return at, e.unit.src.bad(e.unit.section, e.off, "endless chain of origins")
}

// scopeName joins the names of the scopes around a DIE's declaration.
// Functions do not count: the names of local types and variables are not
// qualified by them.
func (e *entry) scopeName(nesting int) (string, error) {
	if nesting > 16 {
		return "", e.unit.src.bad(e.unit.section, e.off, "scopes refer to each other in a circle")
	}
	at, err := e.declared()
	if err != nil {
		return "", err
	}
	table, err := at.unit.table()
	if err != nil {
		return "", err
	}
	name := ""
	for i, n := table.scopeAt(at.off), 0; i >= 0 && n < maxHops; i, n = table.scopes[i].parent, n+1 {
		around, err := at.unit.entryAt(table.scopes[i].die)
		if err != nil {
			return "", err
		}
		if around.tag() == dwarf.TagSubprogram {
			continue
		}
		if _, ok := around.attr(dwarf.AttrSpecification); ok {
			whole, err := around.qualified(nesting + 1)
			return joinScope(whole, name), err
		}
		part, err := around.name()
		if err != nil {
			return "", err
		}
		if part == "" && around.tag() == dwarf.TagNamespace {
			part = "(anonymous namespace)"
		}
		name = joinScope(part, name)
	}
	return name, nil
}

func joinScope(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "::" + inner
}

// linkageName returns the mangled name, "" when there is none.
func (e *entry) linkageName() (string, error) {
	for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, attrMIPSLinkageName} {
		v, ok, err := e.inherited(attr)
		if err != nil {
			return "", err
		}
		if ok {
			return v.str()
		}
	}
	return "", nil
}

// attrMIPSLinkageName is the attribute that producers of DWARF 2 and 3 used.
const attrMIPSLinkageName dwarf.Attr = 0x2007
