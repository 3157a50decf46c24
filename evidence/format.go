package evidence

import "fmt"

// Format is the format of a call of the printf family, in memory that can be written.
type Format struct {
	// Function is the function called ("fprintf"), Argument the index of the format among its arguments, from 0.
	Function string `json:"function"`
	Argument int    `json:"argument"`
	Addr     Addr   `json:"addr"`
	// Text is the format, or the first bytes of it; Whole: it is all of it. Conversions counts those in Text that take
	// an argument, Writes those of them that are %n.
	Text        string `json:"text"`
	Whole       bool   `json:"whole"`
	Conversions int    `json:"conversions,omitempty"`
	Writes      int    `json:"writes,omitempty"`
	// Place describes Addr, Variable is the variable that leads there ("s"); empty: it is not known.
	Place    Place  `json:"place"`
	Variable string `json:"variable,omitempty"`
	// Site is the call.
	Site  *Site `json:"site,omitempty"`
	Proof Proof `json:"proof"`
}

func (f *Format) check() error {
	if f == nil {
		return nil
	}
	if f.Function == "" || f.Addr == 0 || !f.Proof.Valid() {
		return fmt.Errorf("a format at %v of %q with the proof level %q", f.Addr, f.Function, f.Proof)
	}
	return nil
}
