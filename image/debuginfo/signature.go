package debuginfo

import "debug/dwarf"

// mostParameters bounds the parameters that are read of one function.
const mostParameters = 64

// Signature reads what a function returns, and the types of its parameters in their order: nil stands for void, or for a type that the
// DWARF does not have. Parameters of C++ that the compiler made, such as this, are among them (DWARF 5, 3.3.2 and 4.1).
func (f *Function) Signature() (result Type, parameters []Type, err error) {
	e, err := f.unit.entryAt(f.offset)
	if err != nil {
		return nil, nil, err
	}
	language := f.Unit.Language
	if result, err = e.typeOf(language); err != nil {
		return nil, nil, err
	}
	var failed error
	err = e.children(func(child *entry) bool {
		if child.tag() != dwarf.TagFormalParameter {
			return true
		}
		var t Type
		if t, failed = child.typeOf(language); failed == nil {
			parameters = append(parameters, t)
		}
		return failed == nil && len(parameters) < mostParameters
	})
	if failed != nil {
		err = failed
	}
	return result, parameters, err
}
