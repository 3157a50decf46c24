package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"

	"diagnose/evidence"
	"diagnose/reports/secrets"
)

// RedactHelp describes the values that ParseRedaction takes.
const RedactHelp = "home, environment, /REGEXP/, or @FILE with one of these a line"

// Redaction is the text that is replaced in reports in addition to secrets. A nil one replaces
// nothing.
type Redaction struct{ rules []redactionRule }

// redactionRule replaces the group of its expression, or, without a group, the whole match.
type redactionRule struct {
	text []*regexp.Regexp
	// bytes are for memory, where the end of a string is the end of a line; source
	// for lines of source code.
	bytes, source []*regexp.Regexp
}

// maxRules bounds the rules of a file.
const maxRules = 1000

// ParseRedaction parses the user's redaction rules. Its errors show no pattern from a file, as the
// pattern may be a secret itself.
func ParseRedaction(list []string) (*Redaction, error) {
	if len(list) == 0 {
		return nil, nil
	}
	r := &Redaction{}
	for _, text := range list {
		name, file := strings.CutPrefix(text, "@")
		if !file {
			if err := r.addRule(text); err != nil {
				return nil, fmt.Errorf("%q: %w", text, err)
			}
			continue
		}
		lines, err := redactionFile(name)
		if err != nil {
			return nil, err
		}
		for i, line := range lines {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if err := r.addRule(line); err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", name, i+1, err)
			}
		}
	}
	return r, nil
}

func redactionFile(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s has more than a MiB", name)
	}
	return strings.Split(string(text), "\n"), err
}

func (r *Redaction) addRule(text string) error {
	if len(r.rules) >= maxRules {
		return fmt.Errorf("there are more than %d", maxRules)
	}
	switch {
	case text == "home":
		p := homePatterns()
		r.rules = append(r.rules, redactionRule{p, p, p})
	case text == "environment":
		r.rules = append(r.rules, redactionRule{text: environmentText, bytes: environmentBytes, source: environmentText[:1]})
	case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
		pattern, err := regexp.Compile(text[1 : len(text)-1])
		if err != nil {
			return errors.New("it is no regular expression that Go has (https://go.dev/s/re2syntax)")
		}
		if pattern.MatchString("") || pattern.NumSubexp() > 1 {
			return errors.New("it fits the empty text, or has more than one group")
		}
		p := []*regexp.Regexp{pattern}
		r.rules = append(r.rules, redactionRule{p, p, p})
	default:
		return fmt.Errorf("it is none of %s", RedactHelp)
	}
	return nil
}

// environmentText matches variables of an environment as reports show them: alone, or as a string,
// which may have spaces. environmentBytes matches them as they are stored in memory.
var (
	environmentText = []*regexp.Regexp{
		regexp.MustCompile(`"[A-Z_][A-Z0-9_]*=((?:[^"\\]|\\.)+)`),
		regexp.MustCompile(`(?:^|[\s'{,(\[])[A-Z_][A-Z0-9_]*=((?:[^"\\\s]|\\.)+)`),
	}
	environmentBytes = []*regexp.Regexp{regexp.MustCompile(`(?m)^[A-Z_][A-Z0-9_]*=([^\n]+)`)}
)

// homePatterns match the names of users in paths: below /home and /Users, and in this user's home
// directory wherever it is.
func homePatterns() []*regexp.Regexp {
	list := []*regexp.Regexp{regexp.MustCompile(`/(?:home|Users)/([^/\s"'` + "`" + `:;,<>()\[\]{}|&*]+)`)}
	homes := []string{os.Getenv("HOME")}
	if u, err := user.Current(); err == nil {
		homes = append(homes, u.HomeDir)
	}
	for _, dir := range homes {
		parent, name := filepath.Split(filepath.Clean(dir))
		if filepath.IsAbs(dir) && name != "" && name != "root" {
			list = append(list, regexp.MustCompile(regexp.QuoteMeta(parent)+`(`+regexp.QuoteMeta(name)+`)(?:[^\w.-]|$)`))
		}
	}
	return list
}

// group is the part of a pattern's match that is replaced.
func group(m []int) [2]int {
	if len(m) > 2 {
		return [2]int{m[2], m[3]}
	}
	return [2]int{m[0], m[1]}
}

func replaceAll(patterns []*regexp.Regexp, text string) string {
	for _, p := range patterns {
		var b strings.Builder
		last := 0
		for _, m := range p.FindAllStringSubmatchIndex(text, -1) {
			at := group(m)
			if at[0] < last || at[0] >= at[1] { // a group that took no part, or nothing
				continue
			}
			b.WriteString(text[last:at[0]] + redactedMark)
			last = at[1]
		}
		text = b.String() + text[last:]
	}
	return text
}

// Text replaces secrets, and what r says, in a text of one line or more.
func (r *Redaction) Text(text string) string { return r.Redactor().Text(text) }

// Message is a text as one line for standard error: without secrets and without control
// characters.
func Message(text string) string { return Clean((*Redaction)(nil).Text(text)) }

// MessageLines are the lines of a text, each as Message has it.
func MessageLines(text string) []string {
	lines := strings.Split((*Redaction)(nil).Text(text), "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return lines
}

// Redactor returns what replaces the same in the texts of one document.
func (r *Redaction) Redactor() *Redactor { return &Redactor{redaction: r} }

// Redactor replaces secrets, and what a Redaction says, in the texts of one document. What
// one of them shows to be a secret is replaced in those after it.
type Redactor struct {
	redaction *Redaction
	finder    secrets.Finder
}

// Learn reads a text for the secrets that it shows.
func (d *Redactor) Learn(text string) { d.finder.Text(text) }

// LearnSource does so with lines of source code.
func (d *Redactor) LearnSource(text string) { d.finder.Source(text) }

// Text replaces secrets in a text of one line or more.
func (d *Redactor) Text(text string) string {
	return d.redaction.over(redacting(&d.finder)).text(text)
}

// Source is the same for a line of source code, where names of secrets are followed by
// code.
func (d *Redactor) Source(text string) string {
	return d.redaction.over(redacting(&d.finder)).source(text)
}

// Bytes is a copy of what a program read or wrote, in which secrets are asterisks.
func (d *Redactor) Bytes(data []byte) []byte {
	out, hidden := bytes.Clone(data), make([]bool, len(data))
	secretBytes(&d.finder)(data, hidden)
	if d.redaction != nil {
		d.redaction.bytes(data, hidden)
	}
	for i := range out {
		if hidden[i] {
			out[i] = hiddenCharacter
		}
	}
	return out
}

// Case returns a copy in which what r says is replaced, but not secrets.
func (r *Redaction) Case(c *evidence.Case) *evidence.Case {
	if r == nil {
		return c
	}
	return copied(c, r.over(asIs))
}

// over are the edits that do what base does, and then what r says. Were it the other way
// round, a part of a secret that r replaces would hide the rest from base.
func (r *Redaction) over(base edits) edits {
	if r == nil {
		return base
	}
	then := func(first func(string) string, patterns func(*redactionRule) []*regexp.Regexp) func(string) string {
		return func(text string) string {
			text = first(text)
			for i := range r.rules {
				text = replaceAll(patterns(&r.rules[i]), text)
			}
			return text
		}
	}
	text := func(x *redactionRule) []*regexp.Regexp { return x.text }
	source := then(same[string], func(x *redactionRule) []*regexp.Regexp { return x.source })
	out := edits{text: then(base.text, text), bytes: base.bytes,
		source: func(lines string) string {
			list := strings.Split(base.source(lines), "\n")
			for i := range list {
				list[i] = source(list[i])
			}
			return strings.Join(list, "\n")
		},
		damage: func(d evidence.Damage) evidence.Damage { return hideDamage(d, base.bytes, r.bytes) }}
	if base.named != nil {
		out.named = func(name string) func(string) string {
			if edit := base.named(name); edit != nil {
				return then(edit, text)
			}
			return nil
		}
	}
	return out
}

// bytes marks what r says to replace in memory.
func (r *Redaction) bytes(data []byte, hidden []bool) {
	text := memoryText(data)
	for i := range r.rules {
		for _, p := range r.rules[i].bytes {
			for _, m := range p.FindAllStringSubmatchIndex(text, -1) {
				at := group(m)
				for k := max(0, at[0]); k < at[1]; k++ {
					hidden[k] = true
				}
			}
		}
	}
}
