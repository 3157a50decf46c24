package mi

import (
	"errors"
	"strings"
)

// Record is a line of gdb's output.
type Record struct {
	// Token is that of the command that a result is for; empty: none.
	Token string
	// Kind is '^' for a result, '*' for a change of the program's state, '=' for another event, '~', '@' and '&' for text of
	// gdb, of the program and of gdb's log.
	Kind byte
	// Class is the class of a result or event, as in done, error, stopped. Text is that of text.
	Class string
	Text  string
	// Results are its values.
	Results Tuple
}

// Tuple has values by name: strings, Tuples and Lists.
type Tuple map[string]any

// List has strings, Tuples and Lists. The names of its elements, where they have any, are always the same, and left out.
type List []any

// Text returns a string of the tuple; empty: it has none.
func (t Tuple) Text(name string) string {
	s, _ := t[name].(string)
	return s
}

// Tuple returns a tuple of the tuple; nil: it has none.
func (t Tuple) Tuple(name string) Tuple {
	x, _ := t[name].(Tuple)
	return x
}

// Tuples returns the tuples of a list of the tuple.
func (t Tuple) Tuples(name string) []Tuple {
	list, _ := t[name].(List)
	var tuples []Tuple
	for _, x := range list {
		if y, is := x.(Tuple); is {
			tuples = append(tuples, y)
		}
	}
	return tuples
}

var errSyntax = errors.New("mi: gdb's output is not as its manual says")

// ParseRecord reads a line. A line that has none of the kinds, as "(gdb)", is a Record without a Kind.
func ParseRecord(line string) (Record, error) {
	digits := 0
	for digits < len(line) && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	r := Record{Token: line[:digits]}
	if digits == len(line) {
		return Record{}, nil
	}
	p := &parser{rest: line[digits+1:]}
	switch r.Kind = line[digits]; r.Kind {
	case '~', '@', '&':
		text, err := p.text()
		r.Text = text
		return r, err
	case '^', '*', '=':
	default:
		return Record{}, nil
	}
	r.Class, p.rest = p.word(","), strings.TrimPrefix(p.rest[len(p.word(",")):], ",")
	var err error
	r.Results, err = p.results(0)
	if err == nil && p.rest != "" {
		err = errSyntax
	}
	return r, err
}

// parser reads values from the rest of a line.
type parser struct{ rest string }

// deepest bounds how deep values are in others.
const deepest = 64

// word is the text up to one of the bytes.
func (p *parser) word(ends string) string {
	if i := strings.IndexAny(p.rest, ends); i >= 0 {
		return p.rest[:i]
	}
	return p.rest
}

// results reads NAME=VALUE, ....
func (p *parser) results(depth int) (Tuple, error) {
	t := Tuple{}
	for p.rest != "" && p.rest[0] != '}' {
		name := p.word("=,]}")
		p.rest = p.rest[len(name):]
		if name == "" || !p.skip('=') {
			return nil, errSyntax
		}
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		t[name] = v
		if !p.skip(',') {
			break
		}
	}
	return t, nil
}

func (p *parser) skip(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) value(depth int) (any, error) {
	switch {
	case depth > deepest || p.rest == "":
		return nil, errSyntax
	case p.rest[0] == '"':
		return p.text()
	case p.skip('{'):
		t, err := p.results(depth + 1)
		if err == nil && !p.skip('}') {
			err = errSyntax
		}
		return t, err
	case p.skip('['):
		return p.list(depth + 1)
	}
	return nil, errSyntax
}

func (p *parser) list(depth int) (List, error) {
	list := List{}
	for !p.skip(']') {
		if len(list) > 0 && !p.skip(',') || p.rest == "" {
			return nil, errSyntax
		}
		if c := p.rest[0]; c != '"' && c != '{' && c != '[' {
			name := p.word("=,]}")
			if p.rest = p.rest[len(name):]; !p.skip('=') {
				return nil, errSyntax
			}
		}
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// text reads a string of C.
func (p *parser) text() (string, error) {
	if !p.skip('"') {
		return "", errSyntax
	}
	var b strings.Builder
	for {
		if p.rest == "" {
			return "", errSyntax
		}
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case c == '"':
			return b.String(), nil
		case c == '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
		}
	}
}

// escape reads the rest of an escape after its backslash: a letter, or the three octal digits of a byte.
func (p *parser) escape(b *strings.Builder) error {
	if p.rest == "" {
		return errSyntax
	}
	c := p.rest[0]
	if c >= '0' && c <= '3' && len(p.rest) >= 3 {
		b.WriteByte((c-'0')<<6 | (p.rest[1]-'0')&7<<3 | (p.rest[2]-'0')&7)
		p.rest = p.rest[3:]
		return nil
	}
	p.rest = p.rest[1:]
	const letters, bytes = "abfnrtve", "\a\b\f\n\r\t\v\x1b"
	if i := strings.IndexByte(letters, c); i >= 0 {
		c = bytes[i]
	}
	b.WriteByte(c)
	return nil
}
