package expected

import "slices"

// quotient is a division in the source.
type quotient struct{ whole, divisor []token }

// quotientAt is the division whose operator is token i; false if that is none, or if its ends are not in the tokens.
func quotientAt(list []token, i int) (q quotient, ok bool) {
	if i <= 0 || i+1 >= len(list) {
		return q, false
	}
	start, end := -1, -1
	switch list[i].text {
	case "/", "%":
		start, end = leftOf(list, i), unaryEnd(list, i+1)
	case "/=", "%=":
		start, end = leftOf(list, i), statementEnd(list, i+1)
	}
	if start < 0 || start >= i || end <= i+1 {
		return q, false
	}
	return quotient{list[start:end], list[i+1 : end]}, true
}

// endsOperand reports whether an operand may end with a token.
func endsOperand(t *token) bool {
	return t.kind != sign && !slices.Contains(notOperands, t.text) || t.text == ")" || t.text == "]"
}

// notOperands are keywords before an expression.
var notOperands = []string{"return", "case", "co_return", "co_yield", "co_await", "throw", "else", "do", "sizeof", "goto"}

// headers are keywords before a group in parentheses that is no operand.
var headers = []string{"if", "while", "for", "switch"}

// leftOf is where the left operand of the operator at i begins: at the same level all that binds at least as strongly
// (ISO C 6.5.5 groups from the left); -1: it is not in the tokens.
func leftOf(list []token, i int) int {
	at := i
	for at > 0 {
		t := &list[at-1]
		switch {
		case t.text == ")" || t.text == "]":
			open := opening(list, at-1)
			if open < 0 || open > 0 && slices.Contains(headers, list[open-1].text) {
				return endOfLeft(at, i, open < 0)
			}
			at = open
		case t.kind != sign && !slices.Contains(notOperands, t.text):
			at--
		case t.text == "." || t.text == "->" || t.text == "::" || t.text == "++" || t.text == "--" || t.text == "~" || t.text == "!":
			at--
		case t.text == "*" || t.text == "/" || t.text == "%":
			at--
		case t.text == ">" || t.text == "}":
			return -1 // the arguments of a template, or an initialiser
		case (t.text == "-" || t.text == "+" || t.text == "&") && at >= 2 && !endsOperand(&list[at-2]):
			at-- // a sign, or an address
		default:
			return endOfLeft(at, i, false)
		}
	}
	return -1
}

func endOfLeft(at, i int, unknown bool) int {
	if unknown || at == i {
		return -1
	}
	return at
}

// unaryEnd is the end of the operand that begins at i (ISO C 6.5.3); -1: it is not in the tokens.
func unaryEnd(list []token, i int) int {
	for i < len(list) {
		switch t := &list[i]; {
		case t.text == "(":
			end := closing(list, i)
			if end < 0 {
				return -1
			}
			if end+1 < len(list) && (list[end+1].kind != sign || list[end+1].text == "(") {
				i = end + 1 // a conversion
				continue
			}
			return postfixEnd(list, end+1)
		case t.text == "sizeof":
			i++
		case t.kind != sign:
			return postfixEnd(list, i+1)
		case t.text == "-" || t.text == "+" || t.text == "*" || t.text == "&" || t.text == "~" || t.text == "!" || t.text == "++" || t.text == "--" || t.text == "::":
			i++
		default:
			return -1
		}
	}
	return -1
}

// postfixEnd is the end of what follows a primary expression: members, elements, calls (ISO C 6.5.2).
func postfixEnd(list []token, i int) int {
	for i < len(list) {
		switch list[i].text {
		case ".", "->", "::":
			i += 2
		case "[", "(":
			end := closing(list, i)
			if end < 0 {
				return -1
			}
			i = end + 1
		case "++", "--":
			i++
		case "<":
			return -1 // it may begin the arguments of a template
		default:
			return i
		}
	}
	return -1
}

// statementEnd is the end of an expression that a statement, an argument or a group ends with; -1: it is not in the tokens.
func statementEnd(list []token, i int) int {
	for i < len(list) {
		switch list[i].text {
		case "(", "[", "{":
			if i = closing(list, i); i < 0 {
				return -1
			}
		case ";", ",", ")", "]", "}":
			return i
		}
		i++
	}
	return -1
}
