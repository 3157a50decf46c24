package corestream

import (
	"bytes"
	"slices"
	"strings"

	"diagnose/reports/secrets"
)

const (
	// shortestElsewhere is the least length, in bytes, of a secret that is looked for outside of the
	// environment: a shorter one is also in memory that has nothing to do with it.
	shortestElsewhere = 8
	// longestElsewhere is the length up to which a secret is searched. It is bounded so that a secret that is in
	// two reads of the stream is found.
	longestElsewhere = pageSize
	// mostElsewhere bounds the secrets that are searched in all of the memory, which costs a search
	// for each.
	mostElsewhere = 64
	// mostNames bounds the names that are told.
	mostNames = 256
	// blank replaces each byte of a secret: addresses, and the lengths of strings, stay.
	blank = '*'
)

// Redactor blanks secrets of a process's environment and arguments, by the rules of reports. It is
// for one core.
type Redactor struct {
	finder secrets.Finder
	names  []string
	values [][]byte // secrets, searched in all of the memory
	places int
}

// Learn takes the strings of an environment or of a command line, each with a NUL after it, so that
// their secrets are blanked wherever they are in the memory that is rewritten later.
func (r *Redactor) Learn(text []byte) {
	for len(text) > 0 {
		one, rest, _ := bytes.Cut(text, []byte{0})
		text = rest
		for _, s := range r.secretsOf(one) {
			r.remember(one[s.Start:s.End])
		}
	}
}

func (r *Redactor) remember(value []byte) {
	value = value[:min(len(value), longestElsewhere)]
	if len(value) < shortestElsewhere || len(r.values) == mostElsewhere ||
		slices.ContainsFunc(r.values, func(v []byte) bool { return bytes.Equal(v, value) }) {
		return
	}
	r.values = append(r.values, bytes.Clone(value))
}

// Redacted describes the secrets that were blanked.
type Redacted struct {
	// Names are those of the variables of the environment whose values, or parts of them, were blanked.
	Names []string
	// Places counts the strings and copies that were blanked.
	Places int
}

// Redacted returns the secrets that were blanked until now.
func (r *Redactor) Redacted() Redacted { return Redacted{slices.Clone(r.names), r.places} }

// secretsOf finds the secrets of an argument or of a variable of the environment: all of the value
// if the variable's name is that of a secret.
func (r *Redactor) secretsOf(text []byte) []secrets.Span {
	for _, directory := range []string{"PWD=", "OLDPWD="} { // of the shell (POSIX, cd), and not passwords
		if bytes.HasPrefix(text, []byte(directory)) {
			return nil
		}
	}
	spans := r.finder.Text(string(text))
	name, value, assigned := strings.Cut(string(text), "=")
	if !assigned || !isName(name) || value == "" {
		return spans
	}
	all := secrets.Span{Start: len(name) + 1, End: len(text)}
	if find := r.finder.Value(name); find != nil && len(find(`"`+value+`"`)) > 0 {
		spans = []secrets.Span{all}
	} else if len(spans) > 0 && spans[0].Start == all.Start {
		spans = []secrets.Span{all}
	}
	if len(spans) > 0 && len(r.names) < mostNames && !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
	return spans
}

// isName reports whether a variable of the environment may have that name.
func isName(name string) bool {
	const longest = 128
	return name != "" && len(name) <= longest && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && c != '.' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

// strings blanks the secrets of strings that end with NUL, and returns how many bytes of b are whole
// strings.
func (r *Redactor) strings(b []byte) int {
	done := 0
	for {
		n := bytes.IndexByte(b[done:], 0)
		if n < 0 {
			return done
		}
		one := b[done : done+n]
		done += n + 1
		for _, s := range r.secretsOf(one) {
			r.remember(one[s.Start:s.End])
			r.blank(one[s.Start:s.End])
		}
	}
}

// copies blanks the values that were learnt, wherever they are in b.
func (r *Redactor) copies(b []byte) {
	for _, v := range r.values {
		for at := 0; ; {
			n := bytes.Index(b[at:], v)
			if n < 0 {
				break
			}
			at += n
			r.blank(b[at : at+len(v)])
			at += len(v)
		}
	}
}

func (r *Redactor) blank(b []byte) {
	r.places++
	for i := range b {
		b[i] = blank
	}
}
