package expected

import (
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Folded reports whether the compiler computed a value that an instruction at a place of optimised code has in itself: the statement
// there takes it from something else. A computation that was made before the run left no instructions, so the run does not show
// from what the value was made. A source that is newer than the program tells nothing.
func Folded(p *image.Process, source func(*evidence.Site, int) *evidence.Source, site *evidence.Site, value uint64) bool {
	if p == nil || site == nil || !optimised(p, site) {
		return false
	}
	in := Input{Process: p, Source: source}
	known := names{
		constant: func(name string) bool { return isConstant(p, site, name) },
		size:     func(name string, inner int) (uint64, bool) { return sizeOf(p, site, name, inner) },
		mapped:   func(addr uint64) bool { return p.MappingAt(evidence.Addr(addr)) != nil },
	}
	for i, call := range p.Symbolize(site.PC, image.AtInstruction) {
		list, _ := in.code(&call.Site)
		statement, braced := statementAt(list, &call.Site)
		// An inlined function's argument is in the statement that calls it. An initialiser's list makes zeros that it does not have.
		if (braced || !takes(statement, value, known)) && (i == 0 || len(statement) > 0) {
			return false
		}
		if !call.Inlined {
			break
		}
	}
	return true
}

// optimised reports whether the compiler optimised the code at a place, whose line is that of the innermost function there: it put a
// function into another, or a variable has several locations, or none.
func optimised(p *image.Process, site *evidence.Site) bool {
	info, pc := debugAt(p, site)
	if info == nil {
		return false
	}
	if inner := p.Symbolize(site.PC, image.AtInstruction); len(inner) == 0 || inner[0].Site.Line != site.Line || inner[0].Site.File != site.File {
		return false // an inlined function of a library has the constant
	}
	calls, err := info.CallsAt(pc)
	if err != nil || len(calls) == 0 {
		return false
	}
	if len(calls) > 1 {
		return true
	}
	variables, err := info.VariablesAt(calls[0], pc)
	return err == nil && slices.ContainsFunc(variables, func(v debuginfo.Variable) bool { return v.Listed || len(v.Location) == 0 })
}

func debugAt(p *image.Process, site *evidence.Site) (*debuginfo.Info, uint64) {
	m := p.ModuleAt(site.PC)
	if m == nil {
		return nil, 0
	}
	info, err := m.Debug()
	if err != nil {
		return nil, 0
	}
	return info, m.LinkAddr(site.PC)
}

// isConstant reports whether a name may stand for a value: an enumerator, or a variable that never changes.
func isConstant(p *image.Process, site *evidence.Site, name string) bool {
	info, pc := debugAt(p, site)
	if info == nil {
		return true
	}
	if _, _, ok, err := info.Enumerator(name, pc); ok || err != nil {
		return true
	}
	v, ok, err := info.UnitVariable(name, pc)
	return err != nil || ok && len(v.Const) > 0
}

// sizeOf is the size of a variable that is in scope at a place; of its elements, or of what it points to, if inner is 1, and so on.
func sizeOf(p *image.Process, site *evidence.Site, name string, inner int) (size uint64, ok bool) {
	info, pc := debugAt(p, site)
	if info == nil {
		return 0, false
	}
	calls, err := info.CallsAt(pc)
	if err != nil {
		return 0, false
	}
	for _, call := range calls {
		locals, err := localsOf(info, call, pc)
		if err != nil {
			return 0, false
		}
		for _, v := range locals {
			if v.Name != name {
				continue
			}
			t := v.Type
			for ; inner > 0 && t != nil; inner-- {
				t = t.Elem()
			}
			return sizeOfType(t)
		}
	}
	return 0, false
}

func sizeOfType(t debuginfo.Type) (size uint64, ok bool) {
	if t == nil || t.Size() <= 0 {
		return 0, false
	}
	return uint64(t.Size()), true
}

// names says what a program means by names in a statement.
type names struct {
	// constant: the name may stand for a value.
	constant func(name string) bool
	// size is that of a variable in bytes, or of an element or what it points to if inner is 1, and so on; ok is false if it is not known.
	size func(name string, inner int) (size uint64, ok bool)
	// mapped: there is memory at an address.
	mapped func(addr uint64) bool
}

// made are words by which a statement may make a value that it does not name.
var made = []string{"sizeof", "alignof", "_Alignof", "offsetof", "new", "NULL", "nullptr", "true", "false", "None", "this", "operator"}

// decides are operators whose results are 0 and 1.
var decides = []string{"!", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "<=>"}

// takes reports whether a statement hands a value on, and has neither the value nor anything that it may make it of.
func takes(statement []token, value uint64, known names) bool {
	moves := false
	index := indexed(statement)
	for i := 0; i < len(statement); i++ {
		t := &statement[i]
		if slices.Contains(index, i) {
			if number, ok := numberOf(t); ok && equal(number, value) {
				return false // the index itself may be bad
			}
			continue
		}
		if size, end, ok := known.sizeAt(statement, i); ok {
			if meansNumber(statement, i, end, size, value) {
				return false
			}
			i = end - 1
			continue
		}
		switch {
		case t.kind == literal && means(statement, i, value, known):
			return false
		case t.kind == word && (slices.Contains(made, t.text) || t.text == strings.ToUpper(t.text) || known.constant(t.text)):
			return false
		case t.text == "return" || t.text == "=" || t.text == "(":
			moves = true
		case t.text == "++" || t.text == "--" || value <= 1 && slices.Contains(decides, t.text):
			return false
		}
	}
	return moves
}

// indexed are the tokens of indices on the left side of an assignment: they are no part of the value.
func indexed(statement []token) (list []int) {
	depth, brackets := 0, 0
	for i := range statement {
		switch t := statement[i].text; {
		case t == "=" && depth == 0:
			return list
		case t == "(" || t == "[":
			depth++
		case t == ")" || t == "]":
			depth--
		}
		if statement[i].text == "[" {
			brackets++
		}
		if brackets > 0 {
			list = append(list, i)
		}
		if statement[i].text == "]" {
			brackets--
		}
	}
	return nil // nothing is assigned
}

// numberOf is the number that a literal is.
func numberOf(t *token) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimRight(t.text, "uUlLzZ"), "'", ""), 0, 64)
	return number, err == nil
}

// sizeAt is the size that a statement asks for with sizeof of a variable, of its elements or of what it points to, and the token after that.
func (n *names) sizeAt(statement []token, i int) (size uint64, end int, ok bool) {
	if statement[i].text != "sizeof" {
		return 0, 0, false
	}
	is := func(k int, text string) bool { return k < len(statement) && statement[k].text == text }
	end = i + 1
	bracket := is(end, "(")
	if bracket {
		end++
	}
	inner := 0
	for ; is(end, "*"); end++ {
		inner++
	}
	if end >= len(statement) || statement[end].kind != word {
		return 0, 0, false
	}
	name := statement[end].text
	for end++; is(end, "["); end++ {
		inner++
		for ; end < len(statement) && statement[end].text != "]"; end++ {
			if end+1 < len(statement) && statement[end+1].text == "[" {
				return 0, 0, false
			}
		}
	}
	if bracket {
		if !is(end, ")") {
			return 0, 0, false
		}
		end++
	} else if is(end, ".") || is(end, "->") || is(end, "(") {
		return 0, 0, false
	}
	size, ok = n.size(name, inner)
	return size, end, ok
}

// means reports whether a literal may be, or be a part of, a value.
func means(statement []token, i int, value uint64, known names) bool {
	t := &statement[i]
	if t.text[0] == '"' {
		return known.mapped(value)
	}
	number, ok := numberOf(t)
	return !ok || meansNumber(statement, i, i+1, number, value) // else it is a character, or a number with a fraction
}

// equal reports whether a number, or what it is below 0, is a value of some size.
func equal(number, value uint64) bool {
	for bits := 8; bits <= 64; bits *= 2 {
		if same := ^uint64(0) >> (64 - bits); value&same == value && (number&same == value || -number&same == value) {
			return true
		}
	}
	return false
}

// meansNumber reports whether a number, which tokens of a statement stand for, may be, or be a part of, a value. Each number beside an
// operator may be, unless that only compares.
func meansNumber(statement []token, start, end int, number, value uint64) bool {
	if equal(number, value) {
		return true
	}
	beside := func(k int) bool {
		return k >= 0 && k < len(statement) && statement[k].kind == sign && !strings.Contains("()[],;:?=", statement[k].text) && !slices.Contains(decides, statement[k].text)
	}
	return beside(start-1) || beside(end)
}
