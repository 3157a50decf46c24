package eventlog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// lineReader parses a line. It keeps the first error, and the rest of the line is then empty.
type lineReader struct {
	rest string
	err  error
}

func (r *lineReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.rest = ""
	}
}

// accept removes text from the front of the line if the line begins with it.
func (r *lineReader) accept(text string) bool {
	rest, ok := strings.CutPrefix(r.rest, text)
	r.rest = rest
	return ok
}

func (r *lineReader) expect(text string) {
	if !r.accept(text) {
		r.fail("%.40q where %q is expected", r.rest, text)
	}
}

// word takes the text before any of the characters.
func (r *lineReader) word(before string) string {
	end := strings.IndexAny(r.rest, before)
	if end < 0 {
		end = len(r.rest)
	}
	word := r.rest[:end]
	if word == "" {
		r.fail("%.40q where a word is expected", r.rest)
	}
	r.rest = r.rest[end:]
	return word
}

func (r *lineReader) number(before string) uint64 {
	word := r.word(before)
	if r.err != nil {
		return 0
	}
	var v uint64
	var err error
	if strings.HasPrefix(word, "-") {
		var s int64
		s, err = strconv.ParseInt(word, 0, 64)
		v = uint64(s)
	} else {
		v, err = strconv.ParseUint(word, 0, 64)
	}
	if err != nil {
		r.fail("%.40q is no number", word)
	}
	return v
}

// ParseEvent parses a line of the text form. It does not set Ordinal and Offset.
func ParseEvent(line string) (*Event, error) {
	r := &lineReader{rest: line}
	e := new(Event)
	e.Ticket = r.number(" ")
	r.expect(" t")
	thread := r.number(" ")
	if r.err == nil && (thread == 0 || thread >= MostThreads) {
		r.fail("thread %d", thread)
	}
	e.Thread = uint32(thread)
	r.expect(" ")
	e.Kind = named(r, kindNames, r.word(" "), "kind of event")
	r.expect(" ")
	e.Object = r.object(e.Kind)
	r.arguments(e)
	r.expect(" = ")
	e.Result = int64(r.number(" ("))
	if r.accept("(") {
		r.word(")") // the error's name
		r.expect(")")
	}
	for r.err == nil && r.rest != "" {
		r.expect(" ")
		r.part(e)
	}
	if r.err == nil && len(e.Payloads) > 255 {
		r.fail("%d payloads", len(e.Payloads))
	}
	return e, r.err
}

// named returns the value with the name.
func named[K ~uint8 | ~uint32 | ~uint64](r *lineReader, names map[K]string, word, what string) K {
	for k, name := range names {
		if name == word {
			return k
		}
	}
	r.fail("%.40q is no %s", word, what)
	return 0
}

func (r *lineReader) object(k Kind) uint64 {
	if r.rest == "" || r.rest[0] >= '0' && r.rest[0] <= '9' || r.rest[0] == '-' {
		return r.number("(")
	}
	word := r.word("(")
	if k == KindLimit {
		return uint64(named(r, limitNames, word, "limit"))
	}
	number, ok := SyscallNumber(word)
	if k != KindSyscall || !ok {
		r.fail("%.40q is no object of %v", word, k)
	}
	return number
}

func (r *lineReader) arguments(e *Event) {
	r.expect("(")
	for i := 0; r.err == nil && !r.accept(")"); i++ {
		if i > 0 {
			r.expect(" ")
		}
		if i == 255 {
			r.fail("more than 255 arguments")
		}
		e.Args = append(e.Args, r.argument(e.Kind, i))
	}
}

func (r *lineReader) argument(k Kind, i int) uint64 {
	if i > 0 || r.rest == "" || r.rest[0] < 'a' || r.rest[0] > 'z' {
		return r.number(" )")
	}
	word := r.word(" )")
	switch {
	case k == KindSignal:
		return uint64(named(r, placeNames, word, "place"))
	case k.operations() != nil:
		return uint64(named(r, syncNames, word, "operation"))
	}
	r.fail("%.40q is no number", word)
	return 0
}

// part parses a part after the result.
func (r *lineReader) part(e *Event) {
	word := r.word(" ")
	switch word {
	case "interrupted":
		e.Flags |= FlagInterrupted
		return
	case "soft":
		e.Flags |= FlagSoft
		return
	case "arrived":
		e.Flags |= FlagArrived
		return
	}
	r.expect(" ")
	switch word {
	case "at":
		e.Site = evidence.Addr(r.number(" "))
	case "skipped":
		e.Skipped = r.number(" ")
	case "flags":
		flags := r.number(" ")
		if flags > 255 {
			r.fail("flags %d", flags)
		}
		e.Flags |= EventFlags(flags)
	default:
		p := Payload{Kind: named(r, payloadNames, word, "part of an event")}
		p.Addr = evidence.Addr(r.number(":"))
		r.expect(":")
		p.Data = r.data(p.Kind)
		e.Payloads = append(e.Payloads, p)
	}
}

func (r *lineReader) data(k PayloadKind) []byte {
	if k == PayloadFile && r.accept("{") {
		return r.mapped()
	}
	var data []byte
	if r.accept("x") {
		digits := r.rest
		if end := strings.IndexAny(digits, " +."); end >= 0 {
			digits = digits[:end]
		}
		r.rest = r.rest[len(digits):]
		var err error
		if data, err = hex.DecodeString(digits); err != nil {
			r.fail("%.40q: %v", digits, err)
		}
	} else {
		data = []byte(r.quoted())
	}
	if r.accept("...") {
		r.err = errShortened
		return nil
	}
	if r.accept("+") {
		zeros := r.number(" ")
		if zeros > mostZeros {
			r.fail("%d zeros", zeros)
			return nil
		}
		data = append(data, make([]byte, zeros)...)
	}
	return data
}

var errShortened = errors.New("a shortened payload cannot be read again")

func (r *lineReader) quoted() string {
	quoted, err := strconv.QuotedPrefix(r.rest)
	if err != nil || quoted[0] != '"' {
		r.fail("%.40q is no quoted string", r.rest)
		return ""
	}
	r.rest = r.rest[len(quoted):]
	text, err := strconv.Unquote(quoted)
	if err != nil {
		r.fail("%.40q: %v", quoted, err)
	}
	return text
}

func (r *lineReader) mapped() []byte {
	var m Mapped
	for i, into := range m.numbers() {
		r.expect(mappedNames[i] + " ")
		*into = r.number(" ")
		r.expect(" ")
	}
	r.expect("path ")
	m.Path = r.quoted()
	r.expect("}")
	if r.err == nil && (8*mappedNumbers+len(m.Path) >= MappedSize || strings.IndexByte(m.Path, 0) >= 0) {
		r.fail("a path of %d bytes", len(m.Path))
	}
	return m.Encode()
}
