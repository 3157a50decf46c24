package value

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/image"
)

// quote writes a string of the target as a C literal. It escapes characters
// that could move a terminal's cursor or reorder text, and bytes that are not
// UTF-8.
func quote(s []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		writeRune(&b, r, s[:n], '"')
		s = s[n:]
	}
	b.WriteByte('"')
	return b.String()
}

func quoteChar(r rune) string {
	var b strings.Builder
	b.WriteByte('\'')
	if utf8.ValidRune(r) {
		writeRune(&b, r, utf8.AppendRune(nil, r), '\'')
	} else {
		fmt.Fprintf(&b, `\x{%x}`, uint32(r))
	}
	b.WriteByte('\'')
	return b.String()
}

var escapes = map[rune]string{'\n': `\n`, '\t': `\t`, '\r': `\r`, '\a': `\a`, '\b': `\b`,
	'\f': `\f`, '\v': `\v`, 0: `\0`, '\\': `\\`, 0x1b: `\e`}

func writeRune(b *strings.Builder, r rune, raw []byte, delimiter rune) {
	switch text, named := escapes[r]; {
	case named:
		b.WriteString(text)
	case r == delimiter:
		b.WriteByte('\\')
		b.WriteRune(r)
	case r == utf8.RuneError && len(raw) == 1, r < 0x20, r == 0x7f:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case !unicode.IsPrint(r):
		if r > 0xffff {
			fmt.Fprintf(b, `\U%08x`, r)
		} else {
			fmt.Fprintf(b, `\u%04x`, r)
		}
	default:
		b.WriteRune(r)
	}
}

// cString reads and quotes the NUL-terminated string at addr. It is cut at the
// bound.
func (w *formatter) cString(addr evidence.Addr) (text string, err error) {
	if w.memory == nil {
		return "", unavailable("there is no memory to read")
	}
	s, whole, err := image.CString(w.memory, addr, w.opts.StringBytes)
	if err != nil && len(s) == 0 {
		return "", err
	}
	text = quote([]byte(s))
	switch {
	case err != nil:
		text += "... (" + reason(err) + ")"
	case !whole:
		text += "..."
	}
	return text, nil
}

// counted reads and quotes a string of a given length.
func (w *formatter) counted(addr evidence.Addr, length uint64) evidence.Value {
	if length == 0 {
		return evidence.Value{Text: `""`}
	}
	shown := min(length, uint64(w.opts.StringBytes))
	data, err := memorySource{w.memory, addr}.read(0, int64(shown))
	if err != nil {
		return evidence.NoValueBecause(fmt.Sprintf("a string of %d bytes", length), reason(err))
	}
	text := quote(data)
	if shown < length {
		text += fmt.Sprintf("... (%d bytes)", length)
	}
	return evidence.Value{Text: text}
}
