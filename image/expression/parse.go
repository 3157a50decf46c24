package expression

import "fmt"

// mostNesting bounds how deep operators and parentheses nest.
const mostNesting = 64

// Expr is a parsed expression. It may be evaluated at any number of places.
type Expr struct {
	text string
	root node
}

// String returns the text that was parsed.
func (e *Expr) String() string { return e.text }

// node is a part of an expression.
type node interface {
	eval(*evaluation) (operand, error)
}

// Parse parses an expression. isType reports whether a name is a type and no variable where the
// expression will be evaluated, which decides what (name)*x means; nil: none is. The error is a
// *SyntaxError.
func Parse(text string, isType func(name string) bool) (*Expr, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, isType: isType}
	if p.peek().kind == tokenEnd {
		return nil, p.problem("no expression")
	}
	root, err := p.conditional()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
		return nil, p.problem("an operator is missing")
	}
	return &Expr{text, root}, nil
}

type parser struct {
	text    string
	tokens  []token
	at      int
	nesting int
	isType  func(string) bool
}

func (p *parser) peek() token { return p.tokens[p.at] }

// ahead returns the n-th token from the next one on.
func (p *parser) ahead(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

func (p *parser) take(sign string) bool {
	if t := p.peek(); t.kind != tokenSign || t.text != sign {
		return false
	}
	p.at++
	return true
}

func (p *parser) problem(text string) error {
	return &SyntaxError{p.text, p.peek().at, text}
}

// enter counts a level of nesting; the caller calls leave.
func (p *parser) enter() error {
	if p.nesting++; p.nesting > mostNesting {
		return p.problem(fmt.Sprintf("more than %d levels", mostNesting))
	}
	return nil
}

func (p *parser) leave() { p.nesting-- }

func (p *parser) conditional() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	condition, err := p.binary(0)
	if err != nil || !p.take("?") {
		return condition, err
	}
	yes, err := p.conditional()
	if err != nil {
		return nil, err
	}
	if !p.take(":") {
		return nil, p.problem("a ':' is missing")
	}
	no, err := p.conditional()
	return &choice{condition, yes, no}, err
}

// precedence has the binary operators, those that bind least first (C11, 6.5.5 to 6.5.14).
var precedence = []map[string]bool{
	{"||": true}, {"&&": true}, {"|": true}, {"^": true}, {"&": true}, {"==": true, "!=": true},
	{"<": true, ">": true, "<=": true, ">=": true}, {"<<": true, ">>": true}, {"+": true, "-": true}, {"*": true, "/": true, "%": true},
}

func (p *parser) binary(level int) (node, error) {
	if level == len(precedence) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for chain := 0; err == nil; chain++ {
		t := p.peek()
		if t.kind != tokenSign || !precedence[level][t.text] {
			return left, nil
		}
		if chain == mostNesting { // evaluation nests as deep as the chain is long
			return nil, p.problem(fmt.Sprintf("more than %d operators in a row", mostNesting))
		}
		p.at++
		var right node
		if right, err = p.binary(level + 1); err != nil {
			break
		}
		if level < 2 {
			left = &logic{or: level == 0, left: left, right: right}
		} else {
			left = &binaryNode{t.text, left, right}
		}
	}
	return nil, err
}

func (p *parser) unary() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.peek()
	if t.kind == tokenName && t.text == "sizeof" {
		p.at++
		return p.sizeOf()
	}
	if t.kind == tokenSign {
		switch t.text {
		case "*", "&", "-", "+", "!", "~":
			p.at++
			x, err := p.unary()
			return &unary{t.text, x}, err
		case "(":
			if to, ok, err := p.typeInParentheses(); err != nil {
				return nil, err
			} else if ok {
				x, err := p.unary()
				return &cast{*to, x}, err
			}
		}
	}
	return p.postfix()
}

func (p *parser) sizeOf() (node, error) {
	if to, ok, err := p.typeInParentheses(); err != nil || ok {
		return &typeSize{to}, err
	}
	x, err := p.unary()
	return &operandSize{x}, err
}

func (p *parser) postfix() (node, error) {
	x, err := p.primary()
	for chain := 0; err == nil; chain++ {
		if chain == mostNesting {
			return nil, p.problem(fmt.Sprintf("more than %d operators in a row", mostNesting))
		}
		switch {
		case p.take("->"):
			x, err = p.member(x, true)
		case p.take("."):
			x, err = p.member(x, false)
		case p.take("["):
			var index node
			if index, err = p.conditional(); err == nil && !p.take("]") {
				err = p.problem("a ']' is missing")
			}
			x = &element{x, index}
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) member(of node, arrow bool) (node, error) {
	t := p.peek()
	if t.kind != tokenName {
		return nil, p.problem("a member's name is missing")
	}
	p.at++
	return &member{of, t.text, arrow}, nil
}

func (p *parser) primary() (node, error) {
	t := p.peek()
	switch t.kind {
	case tokenNumber, tokenChar, tokenString:
		p.at++
		x, problem := literalOf(t)
		if problem != "" {
			return nil, &SyntaxError{p.text, t.at, problem}
		}
		return x, nil
	case tokenName:
		if builtinWords[t.text] {
			return nil, p.problem("a type where a value is expected")
		}
		return &name{p.qualified()}, nil
	case tokenSign:
		if t.text == "::" && p.ahead(1).kind == tokenName {
			return &name{p.qualified()}, nil
		}
		if p.take("(") {
			x, err := p.conditional()
			if err == nil && !p.take(")") {
				err = p.problem("a ')' is missing")
			}
			return x, err
		}
	}
	return nil, p.problem("an operand is missing")
}

// qualified takes a name with its namespaces and classes.
func (p *parser) qualified() string {
	p.take("::")
	text := p.peek().text
	p.at++
	for p.peek().text == "::" && p.peek().kind == tokenSign && p.ahead(1).kind == tokenName {
		text += "::" + p.ahead(1).text
		p.at += 2
	}
	return text
}
