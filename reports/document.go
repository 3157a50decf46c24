package reports

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is the meaning of a piece of text; a format decides how it looks.
type style uint8

const (
	plain style = iota
	strong
	alarm  // the failure itself
	name   // functions and variables
	place  // files and lines
	faint  // what matters least
	caveat // guesses and limits
)

// span is a piece of text of one style. Its text is clean: no control
// characters, whatever the target held.
type span struct {
	text  string
	style style
}

type line []span

// say starts a line with a span of the given style.
func say(s style, text string) line { return line{{Clean(text), s}} }

// and appends a span.
func (l line) and(s style, text string) line {
	if text == "" {
		return l
	}
	return append(l, span{Clean(text), s})
}

func (l line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// block is a part of the document: heading, prose, facts, verbatim, grid, gap.
type block any

// heading begins a section. of is what it is of, which lists of sections leave out.
type heading struct{ text, of string }

func (h heading) String() string {
	if h.of == "" {
		return h.text
	}
	return h.text + ": " + h.of
}

// prose is one paragraph.
type prose struct{ line line }

// fact is a named line. Facts are aligned in one column.
type fact struct {
	name string
	text line
}

type facts []fact

// verbatim lines keep their layout.
type verbatim []line

// gap is an empty line where the format has none by itself.
type gap struct{}

// grid is a table. With fit, the text form breaks the cells so that no row is longer than a line:
// for columns that are read side by side.
type grid struct {
	header []string
	rows   [][]string
	fit    bool
	// numbers are the columns that are aligned to the right; nil: none.
	numbers []bool
}

// Clean makes text from the target fit for a terminal and for one line:
// control characters, bidirectional overrides and invalid UTF-8 become escapes.
func Clean(text string) string {
	if !needsCleaning(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(escapeByte(text[0]))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case hostile(r):
			for _, c := range []byte(text[:size]) {
				b.WriteString(escapeByte(c))
			}
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

func needsCleaning(text string) bool {
	if !utf8.ValidString(text) {
		return true
	}
	return strings.IndexFunc(text, hostile) >= 0
}

// hostile runes move the cursor, hide text or reorder it.
func hostile(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

func escapeByte(c byte) string {
	const digits = "0123456789abcdef"
	return `\x` + string(digits[c>>4]) + string(digits[c&15])
}
