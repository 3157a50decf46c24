package expression

import "strings"

// builtinWords are the keywords that make up the names of C's own types.
var builtinWords = map[string]bool{"void": true, "char": true, "short": true, "int": true, "long": true, "float": true, "double": true,
	"signed": true, "unsigned": true, "bool": true, "_Bool": true}

var qualifiers = map[string]bool{"const": true, "volatile": true, "restrict": true, "_Atomic": true}

var tagWords = map[string]bool{"struct": true, "union": true, "enum": true, "class": true}

// typeName is a type as an expression names it.
type typeName struct {
	name  string // without pointers, as debuginfo.Info.TypeNamed takes it
	stars int
	own   bool // it is one of C's own types
}

func (t *typeName) String() string {
	if t.stars == 0 {
		return t.name
	}
	return t.name + " " + strings.Repeat("*", t.stars)
}

// typeInParentheses takes a type in parentheses; ok is false if there is none.
func (p *parser) typeInParentheses() (t *typeName, ok bool, err error) {
	start := p.at
	if !p.take("(") {
		return nil, false, nil
	}
	t = p.typeName()
	if t == nil {
		p.at = start
		return nil, false, nil
	}
	if !p.take(")") {
		return nil, false, p.problem("a ')' is missing after a type")
	}
	return t, true, nil
}

// typeName takes a type; nil: there is none.
func (p *parser) typeName() *typeName {
	t := &typeName{}
	p.skipQualifiers()
	first := p.peek()
	switch {
	case first.kind != tokenName:
		return nil
	case tagWords[first.text]:
		if p.ahead(1).kind != tokenName {
			return nil
		}
		p.at++
		t.name = first.text + " " + p.qualified()
	case builtinWords[first.text]:
		var words []string
		for p.peek().kind == tokenName && (builtinWords[p.peek().text] || qualifiers[p.peek().text]) {
			if word := p.peek().text; builtinWords[word] {
				words = append(words, word)
			}
			p.at++
		}
		if t.name = ownName(words); t.name == "" {
			return nil
		}
		t.own = true
	default:
		before := p.at
		t.name = p.qualified()
		if p.isType == nil || !p.isType(t.name) {
			p.at = before
			return nil
		}
	}
	p.skipQualifiers()
	for p.take("*") {
		t.stars++
		p.skipQualifiers()
	}
	return t
}

func (p *parser) skipQualifiers() {
	for p.peek().kind == tokenName && qualifiers[p.peek().text] {
		p.at++
	}
}

// ownName returns the usual name of a type of C from its keywords in any order (C11, 6.7.2); ""
// if it is none.
func ownName(words []string) string {
	count := map[string]int{}
	for _, w := range words {
		count[w]++
	}
	sign := ""
	if count["unsigned"] > 0 {
		sign = "unsigned "
	}
	takes := func(allowed ...string) bool {
		n := 0
		for _, w := range append(allowed, "signed", "unsigned") {
			n += count[w]
		}
		return n == len(words) && count["signed"]+count["unsigned"] <= 1
	}
	alone := func(word string) bool { return len(words) == 1 && count[word] == 1 }
	switch {
	case alone("void"), alone("float"), alone("double"):
		return words[0]
	case alone("bool"), alone("_Bool"):
		return "bool"
	case len(words) == 2 && count["long"] == 1 && count["double"] == 1:
		return "long double"
	case count["char"] == 1 && takes("char"):
		if count["signed"] > 0 {
			return "signed char"
		}
		return sign + "char"
	case count["short"] == 1 && count["int"] <= 1 && takes("short", "int"):
		return sign + "short"
	case count["long"] >= 1 && count["long"] <= 2 && count["int"] <= 1 && takes("long", "int"):
		return sign + "long"
	case count["int"] <= 1 && len(words) > 0 && takes("int"):
		return sign + "int"
	}
	return ""
}
