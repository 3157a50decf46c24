package secrets

import (
	"slices"
	"strings"
)

// Span is a part of a text, in bytes.
type Span struct{ Start, End int }

// Finder finds the secrets of one document. What one text shows as a secret is found in
// those that are asked for after it as well, so a document is best shown to it twice: once
// with the results left out. The zero value is ready. It is for one goroutine.
type Finder struct {
	known known
	// spent is the work of regular expressions so far, in bytes, and of comparisons with
	// known values.
	spent int
	// found remembers the answers for texts, without those that known adds.
	found map[question][]Span
	kept  int
}

type question struct {
	kind kind
	text string
}

// kind says what a text is.
type kind int

const (
	plain        kind = iota // text of a report, in which strings are quoted
	named                    // the value of a variable with a secret's name
	namedWeakly              // the value of a variable with a name that parsers use, too
	namedFaintly             // the value of a variable with a name like key
	source                   // lines of source
	memory
)

// mostKept bounds the bytes of texts whose answers are remembered.
const mostKept = 16 << 20

// Text finds the secrets in a text of a report.
func (f *Finder) Text(text string) []Span { return f.spansOf(plain, text) }

// Value returns what finds the secrets in the value of a variable of that name: of a
// secret's name all of its strings, of a name like "token" those that look random, of one like "key" those that look like keys.
// Addresses and numbers are evidence. It is nil for other names.
func (f *Finder) Value(name string) func(text string) []Span {
	s, ok := nameStrength(name)
	switch {
	case !ok:
		return nil
	case s == weak:
		return func(text string) []Span { return f.spansOf(namedWeakly, text) }
	case s == faint:
		return func(text string) []Span { return f.spansOf(namedFaintly, text) }
	}
	return func(text string) []Span { return f.spansOf(named, text) }
}

// Source finds the secrets in lines of source: in strings, in comments, and in strings that
// are given to a secret's name. Other code is left alone.
func (f *Finder) Source(text string) []Span { return f.spansOf(source, text) }

// Memory finds the secrets in bytes of a program's memory.
func (f *Finder) Memory(data []byte) []Span { return f.spansOf(memory, string(data)) }

func (f *Finder) spansOf(k kind, text string) []Span {
	if len(text) < 2 {
		return nil
	}
	q := question{k, text}
	spans, again := f.found[q]
	if again && len(f.known.values) == 0 {
		return slices.Clone(spans)
	}
	views := viewsOf(k, text)
	if !again {
		for i := range views {
			v := &views[i]
			for _, s := range f.inView(k, v) {
				f.known.learn(v.text[s.Start:s.End])
				spans = append(spans, v.original(s)...)
			}
		}
		if k == named || k == namedWeakly || k == namedFaintly {
			spans = append(spans, f.literals(text, k)...)
		}
		spans = merged(spans)
		f.keep(q, spans)
	}
	spans = slices.Clone(spans)
	for i := range views {
		for _, s := range f.knownIn(&views[i], k) {
			spans = append(spans, views[i].original(s)...)
		}
	}
	return merged(spans)
}

func (f *Finder) keep(q question, spans []Span) {
	if f.kept += len(q.text) + 64; f.kept > mostKept {
		return
	}
	if f.found == nil {
		f.found = map[question][]Span{}
	}
	f.found[q] = spans
}

// inView finds secrets by form and by name.
func (f *Finder) inView(k kind, v *view) []Span {
	hits := scan(v.text)
	spans := f.forms(v.text, hits)
	spans = append(spans, keyLines(v.text)...)
	spans = append(spans, urlPasswords(v.text, hits)...)
	if k == source && !v.literal {
		return append(spans, givenLiterals(v.text, hits)...)
	}
	return append(spans, namedValues(v.text, hits)...)
}

// literals are the contents of the strings in the value of a secret's name.
func (f *Finder) literals(text string, k kind) (spans []Span) {
	for _, l := range quotedIn(text) {
		if content := plainContent(text[l.Start:l.End]); content != "" && !tellsNothing(content) &&
			(k == named || k == namedWeakly && looksRandom(content) || k == namedFaintly && looksLikeKey(content)) {
			f.known.learn(content)
			spans = append(spans, l)
		}
	}
	if k == named {
		spans = append(spans, numberedCharacters(text)...)
	}
	return spans
}

// numberedCharacters are the bytes of a key that is no text, as reports have them, 83 'S',
// and the codes of wide characters.
func numberedCharacters(text string) (spans []Span) {
	if v, any := ofCodes(text); any {
		spans = v.original(Span{0, len(v.text)})
	}
	if strings.IndexByte(text, '\'') < 0 {
		return spans
	}
	for _, m := range numbered().FindAllStringIndex(text, -1) {
		spans = append(spans, Span{m[0], m[1]})
	}
	return spans
}

var numbered = lazily(`-?\b\d{1,3} '(?:[^'\\]|\\'|\\[^']{1,3})'`)

// merged are the spans in order, those that touch or overlap as one.
func merged(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	out := spans[:0]
	for _, s := range spans {
		if s.Start >= s.End {
			continue
		}
		if n := len(out); n > 0 && s.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}
