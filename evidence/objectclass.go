package evidence

import "fmt"

// ObjectClass is an object of another class than the failing code expects, by the object's virtual table (Itanium C++ ABI, 2.5).
type ObjectClass struct {
	// Object is the address that the code has, Offset how far that is inside the whole object, in bytes.
	Object Addr  `json:"object"`
	Offset int64 `json:"offset,omitempty"`
	// Variable leads to the object ("disk", "this"); empty: no variable does.
	Variable string `json:"variable,omitempty"`
	// Class is the object's, Expected that of the code: the type of Variable, or else the class that declares the
	// function called; empty: it is not known.
	Class    string `json:"class"`
	Expected string `json:"expected,omitempty"`
	// Base: Class is a base of Expected, so the object may also be what a destructor of an Expected left.
	Base bool `json:"base,omitempty"`
	// Called is the function that the code calls, Slot its index in the virtual table, from 0; nil: the code calls none.
	// Slots is how many the table has; 0: it is not known.
	Called string `json:"called,omitempty"`
	Slot   *int   `json:"slot,omitempty"`
	Slots  int    `json:"slots,omitempty"`
	Proof  Proof  `json:"proof"`
}

func (o *ObjectClass) check() error {
	if o == nil {
		return nil
	}
	if o.Class == "" || o.Expected == "" && o.Slot == nil || o.Class == o.Expected || !o.Proof.Valid() {
		return fmt.Errorf("the object at %v is a %q and a %q was expected, with the proof level %q", o.Object, o.Class, o.Expected, o.Proof)
	}
	return nil
}
