package secrets

import "strings"

// container is an object or array that a name of a secret is given. Its keys are kept, and its
// values are secrets.
type container struct {
	name name
	// json: keys are quoted, and its numbers are values. The other form is that of debuggers,
	// where numbers are evidence, and of YAML and Go.
	json bool
	// bare: words without quotes after a colon are values, as in {user: bob}.
	bare bool
	// quoted: the name is in quotes, so that it is none of a parser's variables.
	quoted bool
	// brackets are those that are counted.
	brackets string
}

// opened begins a container, after the address that a debugger may write.
var opened = lazily(`^(?:0x[0-9a-f]+[ \t]*(?:<[^<>"\n]{0,200}>[ \t]*)?(?:->[ \t]*)?)?([{\[(])[ \t\r\n]*`)

// quotedKey is the first key of an object of JSON, Python or Ruby.
var quotedKey = lazily(`^(?:"[^"\n]{0,200}"|'[^'\n]{0,200}')[ \t]*(?::|=>)`)

// containerAt is the container that begins at a place, and where its content begins. Outside of
// JSON a square bracket or a parenthesis is one only if a string or a container is first in it.
func containerAt(text string, n name, at int, by byte, inQuotes bool) (c container, begin int, ok bool) {
	window := text[at:min(len(text), at+512)]
	m := opened().FindStringSubmatchIndex(window)
	if m == nil {
		return c, 0, false
	}
	first := window[m[1]:]
	c = container{name: n, json: inQuotes && by == ':' || quotedKey().MatchString(first), bare: by == ':', quoted: inQuotes, brackets: "{[(}])"}
	switch window[m[2]] {
	case '{':
		if !c.json {
			c.brackets = "{}"
		}
		ok = true
	case '[':
		ok = inQuotes || first != "" && strings.IndexByte("\"'{[", first[0]) >= 0
	default:
		ok = first != "" && strings.IndexByte("\"'", first[0]) >= 0
	}
	return c, at + m[3], ok
}

// class numbers the ways in which containers are read.
func (c *container) class() int {
	n := 0
	switch {
	case c.name.strength == faint:
		n = 1
	case c.name.strength == weak && !c.quoted:
		n = 2
	case c.name.strength == weak:
		n = 3
	}
	if c.json {
		n += classes / 2
	}
	return n
}

const classes = 8

// hides says that a value is a secret, as one that the name is given itself.
func (c *container) hides(value string, number bool) bool {
	digits := strings.Trim(value, "0123456789.eE+-") == "" && value != ""
	switch {
	case c.name.strength == faint:
		return looksLikeKey(value)
	case c.name.strength == weak && (!c.quoted || number):
		return looksRandom(value)
	}
	return c.json && digits || !tellsNothing(value)
}

// nextVariable is what a debugger writes after a string that was cut within a container.
var nextVariable = lazily(`^[,;})\] \n]*[A-Za-z_][\w.]* = `)

// values are the values from a place up to the bracket that closes the last of depth, or up to
// the limit. end is where the reading ended, and left how many brackets are open there.
func (c *container) values(text string, at, depth, limit int) (spans []Span, end, left int) {
	i := at
	for ; i < limit && depth > 0; i++ {
		b := text[i]
		switch {
		case strings.IndexByte(c.brackets, b) >= 0:
			depth++
			if strings.IndexByte("}])", b) >= 0 {
				depth -= 2
			}
		case b == '"', b == '\'' && c.opensString(text, i):
			s := Span{i + 1, endOfQuoted(text, i)}
			if isCut(text, i) || nextVariable().MatchString(text[s.Start:min(s.End, s.Start+128)]) {
				return spans, i, 0
			}
			if !isKey(text, s.End+1) && c.hides(text[s.Start:s.End], false) {
				spans = append(spans, nonEmpty(s)...)
			}
			if isCut(text, s.End) || b == '"' && s.End+1 < len(text) && text[s.End+1] == '"' {
				return spans, min(len(text), s.End+1), 0 // the string that the container is in ends
			}
			i = s.End
		case b == '\'':
			i += max(1, len(character().FindString(text[i:min(len(text), i+12)]))) - 1 // it may be a brace
		case (isWord(b) || b == '-') && (c.json || c.bare):
			s := Span{i, endOfBare(text, i, limit)}
			if c.json && assigns(text, s.End) {
				return spans, i, 0 // JSON has no such keys: it was cut
			}
			if c.hidesBare(text, s) {
				spans = append(spans, s)
			}
			i = s.End - 1
		}
	}
	return spans, min(len(text), i), depth
}

// opensString says that a single quote begins a string: Python and JavaScript have such. In what
// a debugger writes it begins a character.
func (c *container) opensString(text string, at int) bool {
	if c.json {
		return true
	}
	if character().MatchString(text[at:min(len(text), at+12)]) || at == 0 || strings.IndexByte(" :=[{(,", text[at-1]) < 0 {
		return false
	}
	end := endOfQuoted(text, at)
	return end < len(text) && text[end] == '\'' && strings.IndexByte(text[at:end], '\n') < 0
}

func (c *container) hidesBare(text string, s Span) bool {
	word := text[s.Start:s.End]
	if strings.Trim(word, "0123456789.eE+-") == "" && c.json {
		return !isKey(text, s.End) && c.hides(word, true)
	}
	before := strings.TrimRight(text[max(0, s.Start-8):s.Start], " \t")
	return strings.HasSuffix(before, ":") && !strings.HasSuffix(before, "::") && !isKey(text, s.End) && !assigns(text, s.End) &&
		!isCode(word) && !sentenceWords[strings.ToLower(word)] && (s.End == len(text) || text[s.End] != '(') && c.hides(word, false)
}

// endOfBare is where a word without quotes ends.
func endOfBare(text string, at, limit int) int {
	for at < limit && text[at] > ' ' && strings.IndexByte("\"'`,:{}[]()=<>\\", text[at]) < 0 {
		at++
	}
	return at
}

// isKey says that what ends before a place is a key: a colon or an arrow follows it.
func isKey(text string, at int) bool {
	rest := strings.TrimLeft(text[min(at, len(text)):min(len(text), at+16)], " \t")
	if strings.HasPrefix(rest, "]") {
		rest = strings.TrimLeft(rest[1:], " \t")
		return strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ":")
	}
	return strings.HasPrefix(rest, "=>") || strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "::")
}

// assigns says that an equals sign comes next.
func assigns(text string, at int) bool {
	rest := strings.TrimLeft(text[at:min(len(text), at+8)], " \t")
	return strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "=>")
}

// isCut says that the quote at a place ends a string that a report shows only a part of.
func isCut(text string, at int) bool {
	return at < len(text) && text[at] == '"' && strings.HasPrefix(text[at+1:], "...")
}
