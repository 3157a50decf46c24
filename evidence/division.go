package evidence

import "fmt"

// Division is an integer division that the processor refused (Intel SDM volume 2, DIV and IDIV).
type Division struct {
	// Dividend and Divisor are decimal numbers, read as Signed says. Bits is the width of the divisor and the quotient.
	Dividend string `json:"dividend"`
	Divisor  string `json:"divisor"`
	Bits     int    `json:"bits"`
	Signed   bool   `json:"signed,omitempty"`
	// Expression is the division in the source, DivisorText its right side; empty: the source does not show it. Both follow
	// from the column in the line table, so they are inferred.
	Expression  string `json:"expression,omitempty"`
	DivisorText string `json:"divisor_text,omitempty"`
	// Operands are the variables in Expression, as they were when the process stopped.
	Operands []Variable `json:"operands,omitempty"`
}

// check reports what makes the facts unusable.
func (d *Division) check() error {
	if d == nil {
		return nil
	}
	if d.Dividend == "" || d.Divisor == "" || d.Bits <= 0 {
		return fmt.Errorf("a division without its numbers: %q by %q, %d bits", d.Dividend, d.Divisor, d.Bits)
	}
	if (d.Expression == "") != (d.DivisorText == "") {
		return fmt.Errorf("a division with a part of its text: %q, %q", d.Expression, d.DivisorText)
	}
	return nil
}
