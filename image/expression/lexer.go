package expression

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// mostText bounds the length of an expression in bytes.
const mostText = 4096

// SyntaxError says where a text is no expression.
type SyntaxError struct {
	Text string
	// Offset is in bytes from the start of Text.
	Offset  int
	Problem string
}

func (e *SyntaxError) Error() string {
	if e.Offset >= len(e.Text) {
		return e.Problem + " at its end"
	}
	return fmt.Sprintf("%s at %q", e.Problem, shorten(e.Text[e.Offset:]))
}

// shorten cuts a text for an error.
func shorten(s string) string {
	const most = 24
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenChar
	tokenString
	tokenSign
)

// token is a token; text is as written, without quotes for characters and strings.
type token struct {
	kind tokenKind
	text string
	at   int // offset in bytes
}

// signs are the operators, longer ones first.
var signs = []string{"->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "::",
	"(", ")", "[", "]", ".", "*", "&", "-", "+", "!", "~", "/", "%", "<", ">", "^", "|", "?", ":"}

// scan splits a text into tokens. The last one is tokenEnd.
func scan(text string) ([]token, error) {
	if len(text) > mostText {
		return nil, &SyntaxError{text, mostText, fmt.Sprintf("more than %d bytes", mostText)}
	}
	var list []token
	for at := 0; at < len(text); {
		c := text[at]
		if c == ' ' || c == '\t' || c == '\n' {
			at++
			continue
		}
		t, err := scanOne(text, at)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
		at = t.at + len(t.text)
		if t.kind == tokenChar || t.kind == tokenString {
			at += 2
		}
	}
	return append(list, token{kind: tokenEnd, at: len(text)}), nil
}

func scanOne(text string, at int) (token, error) {
	c := text[at]
	switch {
	case isDigit(c) || c == '.' && at+1 < len(text) && isDigit(text[at+1]):
		return token{tokenNumber, text[at : at+numberLength(text[at:])], at}, nil
	case isLetter(c):
		n := 1
		for at+n < len(text) && (isLetter(text[at+n]) || isDigit(text[at+n])) {
			n++
		}
		return token{tokenName, text[at : at+n], at}, nil
	case c == '\'' || c == '"':
		return scanQuoted(text, at)
	}
	for _, s := range signs {
		if strings.HasPrefix(text[at:], s) {
			return token{tokenSign, s, at}, nil
		}
	}
	return token{}, &SyntaxError{text, at, "a character that is in no expression"}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c >= utf8.RuneSelf
}

// numberLength is the length of a preprocessing number (C11, 6.4.8).
func numberLength(s string) int {
	n := 0
	for n < len(s) {
		c := s[n]
		sign := (c == '+' || c == '-') && n > 0 && (s[n-1]|0x20 == 'e' && !hexadecimal(s) || s[n-1]|0x20 == 'p')
		if !sign && !isDigit(c) && !isLetter(c) && c != '.' {
			break
		}
		n++
	}
	return n
}

func hexadecimal(s string) bool { return len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x' }

func scanQuoted(text string, at int) (token, error) {
	quote, kind := text[at], tokenString
	if quote == '\'' {
		kind = tokenChar
	}
	for n := at + 1; n < len(text); n++ {
		switch text[n] {
		case '\\':
			n++
		case quote:
			return token{kind, text[at+1 : n], at}, nil
		}
	}
	return token{}, &SyntaxError{text, at, "a quote that is not closed"}
}
