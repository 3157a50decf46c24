package expression

import (
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Meaning is what a name that is no type stands for at a place. Exactly one of its parts is set.
type Meaning struct {
	// Variable is a variable's type. Local: it is of the function.
	Variable debuginfo.Type
	Local    bool
	// Constant is an enumerator's value.
	Constant *int64
	// Function is a function of the program with debug information.
	Function *debuginfo.Function
}

// Meaning looks a name up; ok is false if it stands for nothing, for a type, for a variable without a type, or for code that is not
// the program's own.
func (p *Place) Meaning(name string) (m Meaning, ok bool, err error) {
	if v, local := p.locals[name]; local {
		return Meaning{Variable: v.Type, Local: true}, v.Type != nil, nil
	}
	x, err := p.find(name)
	switch {
	case err != nil || x == nil:
		return m, false, err
	case x.constant != nil:
		n := int64(0)
		for i, b := range x.constant {
			n |= int64(b) << (8 * i)
		}
		if left := 64 - 8*len(x.constant); left > 0 {
			n = n << left >> left
		}
		return Meaning{Constant: &n}, true, nil
	case x.module != nil:
		return Meaning{Variable: x.variable.Type}, x.variable.Type != nil, nil
	}
	of := p.process.ModuleAt(x.code)
	if of == nil || image.RuntimeModule(of.Path) {
		return m, false, nil
	}
	info, err := of.Debug()
	if err != nil || info == nil {
		return m, false, nil
	}
	f, err := info.FunctionAt(of.LinkAddr(x.code))
	if err != nil || f == nil || f.Entry != of.LinkAddr(x.code) {
		return m, false, err
	}
	return Meaning{Function: f}, true, nil
}

// Unit describes the compilation unit of the place's code; nil if it is not known.
func (p *Place) Unit() *debuginfo.Unit {
	if p.level >= len(p.calls) {
		return nil
	}
	return p.calls[p.level].Function.Unit
}
