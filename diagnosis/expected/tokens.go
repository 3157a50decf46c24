package expected

import (
	"strings"

	"diagnose/evidence"
)

// token is a token of C or C++ (ISO C 6.4, without the preprocessor's).
type token struct {
	text string
	kind tokenKind
	// line and column count from 1, the column in bytes, as in DWARF's line tables.
	line, column int
}

type tokenKind uint8

const (
	word tokenKind = iota // an identifier or a keyword
	literal
	sign
)

// mostTokens bounds the tokens of the lines around a place.
const mostTokens = 4096

// operators of more than one character, the longest first.
var operators = []string{"<<=", ">>=", "...", "->*", "<=>", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::"}

// tokens are those of lines of source in a row. A comment or a text that begins before the first line is taken as code.
func tokens(lines []evidence.SourceLine) []token {
	var list []token
	comment := false
	for _, l := range lines {
		text := l.Text
		for i := 0; i < len(text) && len(list) < mostTokens; {
			rest := text[i:]
			switch {
			case comment:
				end := strings.Index(rest, "*/")
				if end < 0 {
					i = len(text)
					continue
				}
				comment, i = false, i+end+len("*/")
				continue
			case strings.HasPrefix(rest, "/*"):
				comment, i = true, i+len("/*")
				continue
			case strings.HasPrefix(rest, "//"):
				i = len(text)
				continue
			case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\\':
				i++
				continue
			}
			t := nextToken(rest)
			t.line, t.column = l.Number, i+1
			list = append(list, t)
			i += len(t.text)
		}
	}
	return list
}

// nextToken is the first token of a text that does not begin with a space.
func nextToken(text string) token {
	c := text[0]
	switch {
	case isLetter(c):
		return token{text: text[:span(text, 0, isWordByte)], kind: word}
	case isDigit(c) || c == '.' && len(text) > 1 && isDigit(text[1]):
		return token{text: text[:span(text, 0, func(c byte) bool { return isWordByte(c) || c == '.' || c == '\'' })], kind: literal}
	case c == '"' || c == '\'':
		return token{text: text[:quoted(text)], kind: literal}
	}
	for _, op := range operators {
		if strings.HasPrefix(text, op) {
			return token{text: op, kind: sign}
		}
	}
	return token{text: text[:1], kind: sign}
}

// quoted is the length of a text or character in quotes, of the whole rest if it does not end.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

// span is the end of the bytes from i on that are wanted.
func span(text string, i int, wanted func(byte) bool) int {
	for i < len(text) && wanted(text[i]) {
		i++
	}
	return i
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' }

// at is the index of the token that begins at a place; -1: none does.
func at(list []token, line, column int) int {
	for i := range list {
		if list[i].line == line && list[i].column == column {
			return i
		}
	}
	return -1
}

// textOf writes tokens with one space where the source had some.
func textOf(list []token) string {
	var b strings.Builder
	for i := range list {
		t := &list[i]
		if i > 0 {
			if last := &list[i-1]; last.line != t.line || last.column+len(last.text) < t.column {
				b.WriteByte(' ')
			}
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// closing is the index of the bracket that closes the one at i; -1: none does.
func closing(list []token, i int) int {
	depth := 0
	for ; i < len(list); i++ {
		switch list[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// opening is the index of the bracket that the one at i closes; -1: none is there.
func opening(list []token, i int) int {
	depth := 0
	for ; i >= 0; i-- {
		switch list[i].text {
		case ")", "]", "}":
			depth++
		case "(", "[", "{":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
