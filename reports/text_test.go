package reports

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWrapped(t *testing.T) {
	for _, x := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"a bb ccc", 8, []string{"a bb ccc"}},
		{"a bb ccc", 4, []string{"a bb", "ccc"}},
		{"abcdefgh ij", 3, []string{"abc", "def", "gh", "ij"}},
		{"a bcdefg", 3, []string{"a", "bcd", "efg"}},
		{"äöü ß", 3, []string{"äöü", "ß"}},
	} {
		if got := wrapped(x.text, x.width); !slices.Equal(got, x.want) {
			t.Errorf("%q in %d: %q, want %q", x.text, x.width, got, x.want)
		}
	}
}

// On a terminal of 80 columns no row is longer, whatever the cells hold.
func TestGridFitsTheTerminal(t *testing.T) {
	long := strings.Repeat("std::vector<int> ", 6)
	g := grid{header: []string{"#", "variable", "address", "at"}, rows: [][]string{
		{"1", long, "0x7fffffffe648", "bank.c:31 " + long}, {"2", "x", "0x555555558100", strings.Repeat("q", 90)}}}
	var b strings.Builder
	if err := writeText(&b, []block{g}, Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(l, "\n")); n > 80 {
			t.Errorf("%d characters: %q", n, l)
		}
	}
	for _, want := range []string{"0x7fffffffe648", "0x555555558100"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is broken:\n%s", want, b.String())
		}
	}
	if got := strings.Join(strings.Fields(b.String()), ""); strings.Count(got, "q") != 90 {
		t.Errorf("something is lost:\n%s", b.String())
	}
	// If there is no terminal a row is one line, so that grep(1) finds it.
	b.Reset()
	if err := writeText(&b, []block{g}, Options{}); err != nil || strings.Count(b.String(), "\n") != 3 {
		t.Errorf("%v:\n%s", err, b.String())
	}
}
