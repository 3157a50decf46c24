package secrets

import "strings"

var (
	// formField is the rest of the head of a form's field (RFC 7578): name="password" and an
	// empty line. In memory each end of a line is two line feeds.
	formField = lazily(`^"(?:;[^\r\n]{0,128})?(?:[\r\n]{1,4}[A-Za-z-]{1,40}:[^\r\n]{0,128}){0,4}[\r\n]{2,4}`)
	// nextElement ends an element that has the name, and begins the one that has its value:
	// <key>password</key><string>x</string> of property lists.
	nextElement = lazily(`^</[A-Za-z]{1,20}>[ \t\r\n]*<[A-Za-z]{1,20}>`)
	// elementBegin is what may be before the name in an element: <name>db.password</name>.
	elementBegin = lazily(`>[\w.-]*$`)
)

// elsewhere are values that no separator of programs is before, but the layout of a message.
func elsewhere(text string, n name, rest string) []Span {
	before := text[max(0, n.Start-32):n.Start]
	switch {
	case n.strength < ordinary || rest == "":
	case rest[0] == '"' && strings.HasSuffix(strings.ToLower(before), `name="`):
		if m := formField().FindString(rest); m != "" {
			return formValue(text, n.End+len(m))
		}
	case rest[0] == '<' && elementBegin().MatchString(before):
		if m := nextElement().FindString(rest); m != "" {
			return upTo(text, n.End+len(m), "<")
		}
	case rest[0] == '\t' && n.strength == strong && beginsText(text, n.Start):
		return tabbedValue(text, n.End+len(rest)-len(strings.TrimLeft(rest, "\t")))
	case rest[0] == ' ' && text[n.Start:n.End] == "PASS" && beginsText(text, n.Start): // of POP3 (RFC 1939) and FTP (RFC 959)
		s := Span{n.End + 1, endOfWord(text, n.End+1, `"`)}
		if s.Start < s.End && endsLine(text, s.End) && !isTest(text[s.Start:s.End]) {
			return []Span{s}
		}
	}
	return nil
}

// beginsText says that a line, or the string that a report shows, begins at a place.
func beginsText(text string, at int) bool { return at == 0 || text[at-1] == '\n' || text[at-1] == '"' }

// endsLine says that a line ends at a place, also as source has it, or the string that a report
// shows.
func endsLine(text string, at int) bool {
	return at == len(text) || strings.IndexByte("\r\n\"\\", text[at]) >= 0
}

// formValue is a field's value: up to the boundary, or to the end of its line if that is not
// there.
func formValue(text string, at int) []Span {
	window := text[at:min(len(text), at+longestValue)]
	for i := 0; i < len(window); i++ {
		if window[i] == '\n' || window[i] == '\r' {
			if strings.HasPrefix(strings.TrimLeft(window[i:min(len(window), i+6)], "\r\n"), "--") {
				return nonEmpty(Span{at, at + i})
			}
		}
	}
	return upTo(text, at, "\"\r\n\x00")
}

// upTo is the value that ends before one of the characters, or where the text, or the string that a
// report shows of it, was cut.
func upTo(text string, at int, ends string) []Span {
	end := at
	for end < len(text) && end < at+longestValue && strings.IndexByte(ends, text[end]) < 0 && !isCut(text, end) {
		end++
	}
	if strings.TrimSpace(text[at:end]) == "" || tellsNothing(text[at:end]) {
		return nil
	}
	return []Span{{at, end}}
}

// tabbedValue is the value after a tab, if it is no word of a sentence, and no head of a column:
// that is a word, and more columns follow it.
func tabbedValue(text string, at int) []Span {
	s := Span{at, endOfWord(text, at, "\"'")}
	value := text[s.Start:s.End]
	more := s.End < len(text) && text[s.End] == '\t'
	if value == "" || !more && !endsLine(text, s.End) || more && !looksRandom(value) || tellsNothing(value) || isPath(value) ||
		sentenceWords[strings.ToLower(strings.Trim(value, ".,:;!?"))] {
		return nil
	}
	return []Span{s}
}

// isTest says that the word after PASS is the name of a test, or begins a sentence.
func isTest(word string) bool {
	return tellsNothing(word) || isPlainWord(word) && sentenceWords[strings.ToLower(word)] || strings.ContainsAny(word, "/()") || strings.Contains(word, "::") ||
		strings.Contains(strings.ToLower(word), "test") || fileName().MatchString(word)
}

// fileName is a name with the usual end of one.
var fileName = lazily(`\w\.[a-z]{1,4}\d?$`)
