package secrets

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:generate go run diagnose/reports/secrets/rulegen

// form is a rule that finds secrets by how they look.
type form struct {
	name string
	// keywords are in lower case; a text without any of them has no secret of this form.
	keywords []string
	// expr is in Go's syntax. Group group is the secret; 0: the first group that took
	// part, or else the whole.
	expr  string
	group int
	// reach is how far after a keyword a secret may end; 0 is usualReach.
	reach int

	compile  sync.Once
	compiled *regexp.Regexp
}

func (r *form) regexp() *regexp.Regexp {
	r.compile.Do(func() { r.compiled = regexp.MustCompile(r.expr) })
	return r.compiled
}

// lazily compiles an expression when it is first used: most commands need none, and
// compiling all would be a good part of a short one's time.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

const (
	// before is how far before its keyword a match may begin.
	before     = 128
	usualReach = 1 << 10
	// mostWork is how many bytes regular expressions read for one document, with what
	// comparisons cost.
	mostWork = 4 << 20
	// guessed is how much after a keyword is taken for a secret when that is used up.
	guessed = 128
)

// ownForms are those that gitleaks has not, or has only for whole secrets: reports cut
// long strings.
var ownForms = []form{
	{name: "aws-key", keywords: []string{"akia", "asia"}, expr: `\b((?:AKIA|ASIA)[0-9A-Z]{16})\b`},
	{name: "github-token", keywords: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, expr: `\b(gh[pousr]_[A-Za-z0-9]{20,})`},
	{name: "jwt", keywords: []string{"eyj"}, reach: 1 << 14, expr: `\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)`},
	{name: "private-key", keywords: []string{"-----begin"}, reach: 1 << 15,
		expr: `(-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,]|-[A-Za-z0-9])*)`},
	{name: "password-hash", keywords: []string{"$1$", "$5$", "$6$", "$y$", "$2a$", "$2b$", "$2y$", "$argon2"},
		expr: `\$(?:1|5|6|y|2[aby]|argon2i?d?)\$([./A-Za-z0-9$=,+]{20,})`},
	{name: "cut-token", keywords: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "sk_live_", "sk_test_", "akia", "asia", "aiza", "eyj", "npm_", "pypi-", "hvs."},
		expr: `\b((?:gh[pousr]_|github_pat_|glpat-|xox[a-z]-|sk_live_|sk_test_|AKIA|ASIA|AIza|eyJ|npm_|pypi-|hvs\.)[A-Za-z0-9_.-]*?)(?:\.\.\.|"\.\.\.)`},
}

// forms finds secrets by their form around the words that rules need.
func (f *Finder) forms(text string, hits []hit) (spans []Span) {
	t := table()
	windows := map[*form][]Span{}
	var order []*form
	for _, h := range hits {
		for _, r := range t.rules[h.word] {
			list := windows[r]
			if list == nil {
				order = append(order, r)
			}
			reach := r.reach
			if reach == 0 {
				reach = usualReach
			}
			w := Span{max(0, h.at-before), min(len(text), h.at+len(t.words[h.word])+reach)}
			if n := len(list); n > 0 && w.Start <= list[n-1].End {
				list[n-1].End = max(list[n-1].End, w.End)
			} else {
				list = append(list, w)
			}
			windows[r] = list
		}
	}
	for _, r := range order {
		for _, w := range windows[r] {
			if f.spent += w.End - w.Start; f.spent > mostWork {
				spans = append(spans, guess(text, hits, r)...)
				break
			}
			spans = append(spans, r.in(text, w)...)
		}
	}
	return spans
}

// in finds the secrets in a window of a text. Its ends are no ends of the text, so a word
// that a window cuts is none: it begins and ends where another character does.
func (r *form) in(text string, w Span) (spans []Span) {
	for w.Start > 0 && isToken(text[w.Start-1]) && w.Start < w.End && isToken(text[w.Start]) {
		w.Start++
	}
	for _, m := range r.regexp().FindAllStringSubmatchIndex(text[w.Start:w.End], -1) {
		s := Span{m[0], m[1]}
		if r.group > 0 {
			s = Span{m[2*r.group], m[2*r.group+1]}
		} else if i := slices.IndexFunc(m[2:], func(at int) bool { return at >= 0 }); i >= 0 {
			s = Span{m[2+i], m[2+i+1]}
		}
		if s.Start < 0 || tellsNothing(text[w.Start+s.Start:w.Start+s.End]) {
			continue
		}
		s = Span{w.Start + s.Start, w.Start + s.End}
		if s.End == w.End {
			for s.End < len(text) && isToken(text[s.End]) {
				s.End++
			}
		}
		spans = append(spans, s)
	}
	return spans
}

// guess takes for a secret what follows a rule's words: there was too much in the document
// that looks like secrets to look closer.
func guess(text string, hits []hit, r *form) (spans []Span) {
	for _, h := range hits {
		if slices.Contains(table().rules[h.word], r) {
			spans = append(spans, Span{h.at, min(len(text), h.at+guessed)})
		}
	}
	return spans
}

func isToken(c byte) bool {
	return isWord(c) || strings.IndexByte("+/=.-~", c) >= 0
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c|' ' >= 'a' && c|' ' <= 'z' || c == '_'
}
