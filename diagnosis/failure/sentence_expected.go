package failure

import (
	"fmt"
	"strings"

	"diagnose/evidence"
)

// divisorText is what the program calls the divisor: the variable, or else the text of the source.
func divisorText(f *evidence.Failure, names Names) string {
	if f.Division != nil && f.Division.DivisorText != "" && (names.Pointer == "" || isRegister(f, names.Pointer)) {
		return f.Division.DivisorText
	}
	return names.Pointer
}

// overflowingText says which quotient does not fit.
func overflowingText(d *evidence.Division) string {
	if d == nil {
		return "the quotient does not fit"
	}
	text := fmt.Sprintf("%s / %s does not fit into %d bits", d.Dividend, d.Divisor, d.Bits)
	if d.Signed && d.Divisor == "-1" {
		text += ", the smallest integer has no negative"
	}
	return text
}

// likelyNull has the candidates for the null pointer: the one that is accessed, if there is one only, and the tail of the
// sentence.
func likelyNull(f *evidence.Failure) (accessed, tail string) {
	var names []string
	for i := range f.LikelyNull {
		names = append(names, f.LikelyNull[i].Pointer)
	}
	if len(names) == 1 {
		accessed = f.LikelyNull[0].Accessed
	}
	return accessed, strings.Join(names, " or ") + " is likely null"
}

// classText names the class of the object and the expected one.
func classText(o *evidence.ObjectClass) string {
	what := fmt.Sprintf("the object at %v", o.Object)
	if o.Variable != "" {
		what = "the object of " + o.Variable
	}
	text := fmt.Sprintf("%s is of class %s", what, evidence.ShortName(o.Class))
	switch {
	case o.Expected != "":
		text += fmt.Sprintf(", and %s was expected", evidence.ShortName(o.Expected))
	case o.Slot != nil:
		text += fmt.Sprintf(", whose virtual table has no entry %d", *o.Slot)
	}
	return text
}

// formatText says that a format is no constant.
func formatText(f *evidence.Format) string {
	const longest = 60
	text := f.Text
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return fmt.Sprintf("the format %q is no constant", text)
}

// unexpected is the tail of a sentence where the operands are others than the code expects: that says more than what came of it.
func unexpected(f *evidence.Failure, names Names, tail string) string {
	switch {
	case names.Heap != nil:
		return tail
	case f.Class != nil:
		return classText(f.Class)
	case f.Format != nil:
		return formatText(f.Format)
	}
	return tail
}
