package evidence

// Variable is a named, typed value of the program.
type Variable struct {
	// Name is "[3]" for an element of an array and "[3..9]" for equal ones in a
	// row; Type is as the program writes it.
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	// Location is where the value was read: "rbx", "0x7ffe3c10",
	// "2 pieces", or empty when it has none.
	Location string `json:"location,omitempty"`
	Value    Value  `json:"value"`
}

// Value is a value as a person reads it, and its parts.
type Value struct {
	// Text is the whole of a scalar ("42", "0x0", `"abc"`, "RED (1)") or a
	// short form of an aggregate ("{...}"). Empty when Unavailable is set.
	Text string `json:"text,omitempty"`
	// Unavailable says why there is no value: "optimized out", "memory at
	// 0x10 is not in the core". A failed read is never shown as a zero.
	Unavailable string `json:"unavailable,omitempty"`
	// Details are those of Unavailable ("rdi is not kept across the call"); may be empty.
	Details string `json:"unavailable_details,omitempty"`
	// Fields are the members or elements that were followed.
	Fields []Variable `json:"fields,omitempty"`
	// Elided counts members or elements beyond Fields.
	Elided int `json:"elided,omitempty"`
	// Address is the value of a pointer, so that tools need not parse Text.
	Address *Addr `json:"address,omitempty"`
}

// NoValue is a value that is not known. why says so in words.
func NoValue(why string) Value { return Value{Unavailable: Say(why)} }

// NoValueBecause is NoValue with details, which a short form leaves out.
func NoValueBecause(why, details string) Value {
	return Value{Unavailable: Say(why), Details: Say(details)}
}

// Why is why the value is not known, with the details; empty if it is known.
func (v *Value) Why() string {
	if v.Details == "" {
		return v.Unavailable
	}
	return v.Unavailable + ": " + v.Details
}
