package suppress

import (
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
)

const file = `
[[suppress]]
reason = "the driver frees twice, issue 12"
until = 2027-03-01
kind = "double-free"
module = "*/libdriver.so*"

[[suppress]]
reason = "known"
until = 2026-01-01
function = "Queue::p?sh*"

[[suppress]]
reason = "known"
until = 2027-01-01
signature = "0123456789ab"
`

func subject() *Subject {
	return &Subject{Signatures: []string{"fedcba9876543210"}, Kinds: []string{"heap-corruption", "double-free"},
		Frames: []Frame{{"abort", "/lib/libc.so.6"}, {"close_all", "/usr/lib/libdriver.so.2"}, {"main", "/srv/bin/server"}}}
}

func TestMatch(t *testing.T) {
	l, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change        func(*Subject)
		now           time.Time
		rule, expired int
	}{
		"kind and module":    {func(*Subject) {}, now, 1, 0},
		"the last day":       {func(*Subject) {}, time.Date(2027, 3, 1, 23, 59, 0, 0, time.UTC), 1, 0},
		"the day after":      {func(*Subject) {}, time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC), 0, 1},
		"another kind":       {func(s *Subject) { s.Kinds = []string{"null-pointer"} }, now, 0, 0},
		"another module":     {func(s *Subject) { s.Frames[1].Module = "/usr/lib/libdriver2.so" }, now, 0, 0},
		"expired function":   {func(s *Subject) { s.Kinds = nil; s.Frames[2].Function = "Queue::push(int)" }, now, 0, 2},
		"function elsewhere": {func(s *Subject) { s.Kinds = nil; s.Frames[2].Function = "my::Queue::push" }, now, 0, 0},
		"signature":          {func(s *Subject) { s.Kinds, s.Signatures = nil, []string{"", "0123456789abcdef"} }, now, 3, 0},
		"nothing known":      {func(s *Subject) { *s = Subject{} }, now, 0, 0},
	} {
		s := subject()
		c.change(s)
		rule, expired := l.Match(s, c.now)
		number := func(r *Rule) int {
			if r == nil {
				return 0
			}
			return r.Number
		}
		if number(rule) != c.rule || number(expired) != c.expired {
			t.Errorf("%s: rule %d, expired %d, want %d and %d", name, number(rule), number(expired), c.rule, c.expired)
		}
	}
	var none *List
	if rule, expired := none.Match(subject(), now); rule != nil || expired != nil {
		t.Error("no list suppresses something")
	}
}

func TestRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":        "[[suppress]]\nuntil = 2027-01-01\nkind = \"abort\"",
		"no day":           "[[suppress]]\nreason = \"x\"\nkind = \"abort\"",
		"no pattern":       "[[suppress]]\nreason = \"x\"\nuntil = 2027-01-01",
		"misspelt":         "[[suppress]]\nreason = \"x\"\nuntil = 2027-01-01\nfuntion = \"f\"",
		"short signature":  "[[suppress]]\nreason = \"x\"\nuntil = 2027-01-01\nsignature = \"01\"",
		"the day a string": "[[suppress]]\nreason = \"x\"\nuntil = \"soon\"\nkind = \"abort\"",
		"controls":         "[[suppress]]\nreason = \"x\\u001b\"\nuntil = 2027-01-01\nkind = \"abort\"",
		"too many":         strings.Repeat("[[suppress]]\nreason = \"x\"\nuntil = 2027-01-01\nkind = \"abort\"\n", mostRules+1),
		"no TOML":          "suppress: yes",
	} {
		if l, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestLabel(t *testing.T) {
	r, err := ParseLabel("2027-03-01 the disk of ci-7 is broken")
	if err != nil || r.Reason != "the disk of ci-7 is broken" || r.Until.Format(day) != "2027-03-01" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, text := range []string{"", "2027-03-01", "2027-03-01  ", "soon broken", "2027-13-01 x"} {
		if r, err := ParseLabel(text); err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

// A case is told which entry suppresses it, or which one has expired.
func TestSuppress(t *testing.T) {
	l, err := Parse([]byte("[[suppress]]\nreason = \"known\"\nuntil = 2027-01-01\nkind = \"abort\""))
	if err != nil {
		t.Fatal(err)
	}
	for year, expired := range map[int]bool{2026: false, 2028: true} {
		c := &evidence.Case{Failure: evidence.Failure{Kind: evidence.Abort}}
		l.Suppress(c, time.Date(year, 5, 1, 0, 0, 0, 0, time.UTC))
		if s := c.Suppression; s == nil || s.Expired != expired || s.Entry != 1 || s.Until != "2027-01-01" {
			t.Errorf("in %d: %+v", year, s)
		}
	}
	c := &evidence.Case{Failure: evidence.Failure{Kind: evidence.NullPointer}}
	if l.Suppress(c, time.Now()); c.Suppression != nil {
		t.Errorf("%+v", c.Suppression)
	}
}

// FuzzParse reads any file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(file))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		if rule, _ := l.Match(&Subject{}, time.Time{}); rule != nil {
			t.Errorf("entry %d suppresses a failure of which nothing is known", rule.Number)
		}
		l.Match(subject(), time.Now())
	})
}
