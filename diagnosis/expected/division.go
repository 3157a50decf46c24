package expected

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// Bounds of the text of a division and of the variables that are shown.
const (
	longestText  = 200
	mostOperands = 8
)

// Division adds what the source says of the division that failed: the line table names the line and the column of its
// operator.
func Division(in Input) {
	if !in.usable() || in.Failure.Division == nil {
		return
	}
	d := in.Failure.Division
	frame, level := in.siteFrame()
	list, i := in.code(in.Failure.Site)
	if frame != 0 {
		return
	}
	q, ok := quotientAt(list, i)
	if !ok { // the line table may have the start of the statement
		list, _ = statementAt(list, in.Failure.Site)
		q, ok = onlyQuotient(list)
	}
	if !ok {
		return
	}
	if q.divisor[0].text == "(" && closing(q.divisor, 0) == len(q.divisor)-1 {
		q.divisor = q.divisor[1 : len(q.divisor)-1]
	}
	whole, divisor := textOf(q.whole), textOf(q.divisor)
	if len(whole) > longestText || divisor == "" {
		return
	}
	d.Expression, d.DivisorText = whole, divisor
	if s := in.scopeAt(frame, level); s != nil {
		d.Operands = s.operands(q.whole)
	}
}

// onlyQuotient is the division of a statement that has one alone. The end of the statement may end the divisor.
func onlyQuotient(statement []token) (q quotient, ok bool) {
	found := -1
	for i := range statement {
		switch statement[i].text {
		case "/", "%", "/=", "%=":
			if found >= 0 {
				return q, false
			}
			found = i
		}
	}
	if found < 0 {
		return q, false
	}
	ended := append(append([]token{{text: ";", kind: sign}}, statement...), token{text: ";", kind: sign})
	return quotientAt(ended, found+1)
}

// operands are the variables of an expression that are numbers, each once.
func (s *scope) operands(list []token) (out []evidence.Variable) {
	for _, c := range chainsOf(list) {
		if len(out) == mostOperands || slices.ContainsFunc(out, func(v evidence.Variable) bool { return v.Name == c.text }) {
			continue
		}
		o, ok := s.read(&c)
		if !ok || !isNumber(o.typ) {
			continue
		}
		out = append(out, evidence.Variable{Name: c.text, Type: o.typ.Name(), Value: s.describe(o)})
	}
	return out
}

func isNumber(t debuginfo.Type) bool {
	switch t.Kind() {
	case debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindEnum, debuginfo.KindBool, debuginfo.KindChar:
		return true
	}
	return false
}
