package secrets

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// view is a text in another form, for example without the escapes of a quoted string.
type view struct {
	text string
	// from and to are where each byte of text begins and ends in the original; nil for
	// the original itself.
	from, to []int
	// literal says that the text is what strings and comments of source hold.
	literal bool
}

func (v *view) place(i int) (from, to int) {
	if v.from == nil {
		return i, i + 1
	}
	return v.from[i], v.to[i]
}

// addByte appends a byte of the text that is at a place of the original.
func (v *view) addByte(text []byte, c byte, from, to int) []byte {
	v.from, v.to = append(v.from, from), append(v.to, to)
	return append(text, c)
}

// original are the parts of the original that a part of the text was made of. What was
// left out between them, as the quotes of two literals in a row, is not of them.
func (v *view) original(s Span) (spans []Span) {
	if v.from == nil {
		return []Span{s}
	}
	for i := s.Start; i < s.End; i++ {
		from, to := v.place(i)
		if n := len(spans); n > 0 && spans[n-1].End >= from {
			spans[n-1].End = max(spans[n-1].End, to)
			continue
		}
		spans = append(spans, Span{from, to})
	}
	return spans
}

// mostEscaped is how often a string may have been quoted: JSON in JSON in a C string.
const mostEscaped = 4

func viewsOf(k kind, text string) []view {
	first := view{text: text}
	var list []view
	switch k {
	case memory:
		first.text = memoryText(text)
		for _, width := range []int{2, 4} {
			if v, any := narrowed(text, width); any {
				list = append(list, v)
			}
		}
	case source:
		list = append(list, first)
		first, _ = sourceLiterals(text)
	}
	if v, any := ofCodes(text); any && k != source && k != memory {
		list = append(list, v)
	}
	for range mostEscaped {
		list = append(list, first)
		list = appendPercent(list, &first)
		next, any := unescaped(&first)
		if !any {
			break
		}
		first = next
	}
	return list
}

// ofCodes are the texts in arrays of which a report shows the characters' codes, as of
// wchar_t: {[0] = 112, [1] = 97} or {112, 97}; false if there are none.
func ofCodes(text string) (view, bool) {
	const shortest = 4
	var v view
	if !strings.Contains(text, "] = ") && strings.IndexByte(text, '{') < 0 {
		return v, false
	}
	var out []byte
	last, start := 0, 0
	separate := func(at int) {
		if len(out)-start < shortest {
			out, v.from, v.to = out[:start], v.from[:start], v.to[:start]
		} else {
			out = v.addByte(out, '\n', at, at)
		}
		start = len(out)
	}
	for _, m := range elementCode().FindAllStringSubmatchIndex(text, -1) {
		code, err := strconv.Atoi(text[m[2]:m[3]])
		if strings.Trim(text[last:m[0]], ", ") != "" || err != nil || code < ' ' || code > '~' {
			separate(m[0])
		}
		if last = m[5]; err == nil && code >= ' ' && code <= '~' {
			out = v.addByte(out, byte(code), m[2], m[5])
		}
	}
	separate(last)
	v.text = string(out)
	return v, len(out) > 0
}

// elementCode is an element of an array, with its character if the report has it.
var elementCode = lazily(`(?:\[\d+(?:\.\.\d+)?\] = |[{ ])(\d{1,3})((?: '(?:[^'\\]|\\'|\\[^']{1,3})')?)(?:[,}]|$)`)

// memoryText has a line feed in place of bytes that are no text: it ends a value, as the zero
// byte after a string does.
func memoryText(data string) string {
	text := []byte(data)
	for i, c := range text {
		if c < ' ' || c > '~' {
			text[i] = '\n'
		}
	}
	return string(text)
}

// narrowed are the strings of wide characters (2 bytes: UTF-16, 4: wchar_t) in memory,
// those of other characters left out; false if there are none.
func narrowed(data string, width int) (view, bool) {
	const shortest = 4
	var v view
	var text []byte
	for i := 0; i+width <= len(data); {
		start := len(text)
		for ; i+width <= len(data) && data[i] >= ' ' && data[i] <= '~' && strings.Trim(data[i+1:i+width], "\x00") == ""; i += width {
			text = v.addByte(text, data[i], i, i+width)
		}
		if len(text)-start < shortest {
			text, v.from, v.to = text[:start], v.from[:start], v.to[:start]
			i++
			continue
		}
		text = v.addByte(text, '\n', i, i)
	}
	v.text = string(text)
	return v, len(text) > 0
}

// unescaped has the characters that escapes stand for in place of them, as C, Rust, Go,
// Python and JSON have them; false if there are none.
func unescaped(v *view) (view, bool) {
	if strings.IndexByte(v.text, '\\') < 0 {
		return view{}, false
	}
	out := view{literal: v.literal, from: make([]int, 0, len(v.text)), to: make([]int, 0, len(v.text))}
	text := make([]byte, 0, len(v.text))
	for i := 0; i < len(v.text); {
		c, n := v.text[i:i+1], 1
		if v.text[i] == '\\' {
			c, n = escape(v.text[i:])
		}
		from, _ := v.place(i)
		_, to := v.place(i + n - 1)
		for k := range len(c) {
			text = out.addByte(text, c[k], from, to)
		}
		i += n
	}
	out.text = string(text)
	return out, true
}

// mostPercent is how often a text of a URL may have been encoded: a URL in a URL.
const mostPercent = 2

// appendPercent appends the views of a text without the percent-encoding of URLs (RFC 3986,
// section 2.1), if it has encoded separators: password%3Dx.
func appendPercent(list []view, v *view) []view {
	for range mostPercent {
		if !separators().MatchString(v.text) {
			break
		}
		out := view{literal: v.literal, from: make([]int, 0, len(v.text)), to: make([]int, 0, len(v.text))}
		text := make([]byte, 0, len(v.text))
		for i := 0; i < len(v.text); {
			c, n := v.text[i], 1
			if decoded, ok := percent(v.text, i); ok {
				c, n = decoded, 3
			}
			from, _ := v.place(i)
			_, to := v.place(i + n - 1)
			text = out.addByte(text, c, from, to)
			i += n
		}
		out.text = string(text)
		list, v = append(list, out), &out
	}
	return list
}

// separators are the encoded characters that come between a name and its value.
var separators = lazily(`%(?:25)*(?i:3d|3a|22)`)

// percent is the punctuation that a code stands for. A blank stays encoded: it is part of a value.
// %3d of a format is no code: no value follows it directly.
func percent(text string, at int) (byte, bool) {
	if at+3 > len(text) || text[at] != '%' || !isDigit(text[at+1], 16) || !isDigit(text[at+2], 16) {
		return 0, false
	}
	if text[at+2] == 'd' && (at == 0 || text[at-1] == ' ' || at+3 == len(text) || !isWord(text[at+3]) && text[at+3] != '%') {
		return 0, false
	}
	n, err := strconv.ParseUint(text[at+1:at+3], 16, 8)
	return byte(n), err == nil && n > ' ' && n <= '~' && !isWord(byte(n))
}

var simpleEscapes = map[byte]string{'n': "\n", 'r': "\r", 't': "\t", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", 'e': "\x1b",
	'"': `"`, '\'': `'`, '\\': `\`, '/': "/", '?': "?", '\n': ""}

// escape is what the escape that a text begins with stands for, and its length.
func escape(text string) (string, int) {
	if len(text) < 2 {
		return text, len(text)
	}
	if c, found := simpleEscapes[text[1]]; found {
		return c, 2
	}
	digits, base := 0, 16
	switch text[1] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	start := 2
	if digits == 0 {
		if text[1] < '0' || text[1] > '7' {
			return text[:1], 1
		}
		start, digits, base = 1, 3, 8
	}
	end := start
	for end < len(text) && end < start+digits && isDigit(text[end], base) {
		end++
	}
	n, err := strconv.ParseUint(text[start:end], base, 32)
	switch {
	case err != nil:
		return text[:1], 1
	case digits <= 3:
		return string([]byte{byte(n)}), end
	case n > utf8.MaxRune:
		return "?", end
	}
	return string(rune(n)), end
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c|' ' >= 'a' && c|' ' <= 'f'
}

// quotedIn are the contents of the strings in double quotes that a text has; one that does
// not end goes up to the end.
func quotedIn(text string) (list []Span) {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		end := i + 1
		for ; end < len(text) && text[end] != '"'; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		end = min(end, len(text))
		list = append(list, Span{i + 1, end})
		i = end
	}
	return list
}

// plainContent is a string's content without escapes.
func plainContent(text string) string {
	v, any := unescaped(&view{text: text})
	if !any {
		return text
	}
	return v.text
}

// Replace returns a text with a mark in place of each span.
func Replace(text string, spans []Span, mark string) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	last := 0
	for _, s := range spans {
		b.WriteString(text[last:s.Start] + mark)
		last = s.End
	}
	return b.String() + text[last:]
}

// Lines cuts spans where lines end, so that Replace leaves as many lines.
func Lines(text string, spans []Span) (out []Span) {
	for _, s := range spans {
		for start := s.Start; start < s.End; {
			end := s.End
			if i := strings.IndexByte(text[start:end], '\n'); i >= 0 {
				end = start + i
			}
			if start < end {
				out = append(out, Span{start, end})
			}
			start = end + 1
		}
	}
	return out
}
