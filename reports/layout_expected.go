package reports

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// expectedFacts are the lines on operands that are others than the failing code expects.
func expectedFacts(f *evidence.Failure) facts {
	list := divisionFacts(f.Division)
	for i := range f.LikelyNull {
		list = append(list, fact{"likely null", say(name, f.LikelyNull[i].Pointer).and(plain, likelyNullText(&f.LikelyNull[i])).and(faint, proofMark(f.LikelyNull[i].Proof))})
	}
	return append(append(list, classFacts(f.Class)...), formatFacts(f.Format)...)
}

func divisionFacts(d *evidence.Division) facts {
	if d == nil {
		return nil
	}
	numbers := fmt.Sprintf("%s / %s, %d bits", d.Dividend, d.Divisor, d.Bits)
	if !d.Signed {
		numbers += ", unsigned"
	}
	list := facts{{"division", say(plain, numbers).and(faint, proofMark(evidence.FromCore))}}
	if d.Expression == "" {
		return list
	}
	text := say(name, d.Expression)
	var values []string
	for i := range d.Operands {
		if v := &d.Operands[i]; v.Value.Unavailable == "" {
			values = append(values, v.Name+" = "+v.Value.Text)
		}
	}
	if len(values) > 0 {
		text = text.and(plain, ", with "+strings.Join(values, ", "))
	}
	return append(list, fact{"expression", text.and(faint, proofMark(evidence.Inferred))})
}

func likelyNullText(l *evidence.LikelyNull) string {
	text := fmt.Sprintf(" (%s), of which the statement uses %s at offset %d", l.Type, l.Accessed, l.Offset)
	if !l.Null {
		text += "; its value is not kept there"
	}
	return text
}

func classFacts(o *evidence.ObjectClass) facts {
	if o == nil {
		return nil
	}
	text := say(name, evidence.ShortName(o.Class)).and(plain, fmt.Sprintf(", by the virtual table of the object at %v", o.Object))
	if o.Offset > 0 {
		text = text.and(plain, fmt.Sprintf(", %s inside the whole one", wording.Count(uint64(o.Offset), "byte")))
	}
	list := facts{{"class", text.and(faint, proofMark(evidence.FromCore))}}
	if o.Expected != "" {
		text := say(name, evidence.ShortName(o.Expected))
		if o.Variable != "" {
			text = text.and(plain, ", the type of "+o.Variable)
		} else {
			text = text.and(plain, fmt.Sprintf(", which declares %s", o.Called))
		}
		if o.Base {
			text = text.and(plain, fmt.Sprintf("; %s is a base of it, so a destructor may have left the object, too", evidence.ShortName(o.Class)))
		}
		list = append(list, fact{"expected", text.and(faint, proofMark(o.Proof))})
	}
	if o.Slot != nil {
		text := fmt.Sprintf("entry %d of the virtual table", *o.Slot)
		if o.Called != "" {
			text += fmt.Sprintf(" (%s)", o.Called)
		}
		if o.Slots > 0 {
			text += fmt.Sprintf("; it has %s, from 0 on", wording.Count(o.Slots, "entry"))
		}
		list = append(list, fact{"called", say(plain, text).and(faint, proofMark(evidence.FromCore))})
	}
	return list
}

func formatFacts(f *evidence.Format) facts {
	if f == nil {
		return nil
	}
	text := fmt.Sprintf("%q", f.Text)
	if !f.Whole {
		text += "..."
	}
	where := fmt.Sprintf(", %s of %s, at %v in memory that can be written", argumentName(f), f.Function, f.Addr)
	if f.Place.Text != "" {
		where += ": " + f.Place.Text
	}
	list := facts{{"format", say(strong, text).and(plain, where).and(faint, proofMark(f.Proof))}}
	if f.Conversions > 0 {
		uses := wording.Count(uint64(f.Conversions), "argument")
		if f.Writes > 0 {
			uses += fmt.Sprintf(", %d of them to write to (%%n)", f.Writes)
		}
		list = append(list, fact{"format takes", say(plain, uses)})
	}
	return list
}

func argumentName(f *evidence.Format) string {
	if f.Variable != "" {
		return f.Variable + ", the " + wording.Ordinal(f.Argument+1) + " argument"
	}
	return "the " + wording.Ordinal(f.Argument+1) + " argument"
}
