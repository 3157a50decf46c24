package reports

import (
	"fmt"

	"diagnose/evidence"
)

// check is the comparison by which the program reached the call that ended it.
func check(c *evidence.Check) []block {
	if c == nil {
		return nil
	}
	l := say(plain, checkText(c))
	if c.Site.File != "" {
		l = l.and(plain, "  at ").and(place, position(c.Site))
	}
	lines := verbatim{l.and(faint, "  ("+c.Instruction+")").and(faint, proofMark(c.Proof))}
	blocks := []block{heading{text: "The check that led there"}}
	for _, o := range []*evidence.CheckedOperand{&c.Left, &c.Right} {
		if o.Constant {
			continue
		}
		text := operandName(o) + " had a value that the core does not tell any more"
		switch {
		case o.Proof == evidence.FromCore:
			text = operandName(o) + " was " + o.Value
		case o.Value != "":
			text = operandName(o) + " is " + o.Value + " by what memory holds now"
		}
		lines = append(lines, say(plain, text))
		for _, step := range originLines(o.Origin) {
			lines = append(lines, append(say(plain, "  "), step...))
		}
	}
	return append(blocks, lines)
}

// checkText is the comparison as a condition of the program's.
func checkText(c *evidence.Check) string {
	return fmt.Sprintf("%s %s %s", operandName(&c.Left), c.Relation, operandName(&c.Right))
}

// operandName is what a side of a comparison is called.
func operandName(o *evidence.CheckedOperand) string {
	name := o.Name
	switch {
	case o.Constant:
		return o.Value
	case name == "" && o.Register != "":
		name = o.Register
	case name == "":
		name = "a value"
	}
	if o.Mask != 0 {
		return fmt.Sprintf("(%s & %#x)", name, o.Mask)
	}
	return name
}
