package expected

import (
	"strconv"
	"strings"
	"testing"

	"diagnose/evidence"
)

func lines(text string) (list []evidence.SourceLine) {
	for i, l := range strings.Split(text, "\n") {
		list = append(list, evidence.SourceLine{Number: i + 1, Text: l})
	}
	return list
}

// The operands of a division are those of C's grammar; a text whose ends are not there gives none. The operator is
// marked by an @ before it.
func TestQuotient(t *testing.T) {
	for _, c := range []struct{ source, whole, divisor string }{
		{"return s->total * 100 @/ (s->count - s->skipped);", "s->total * 100 / (s->count - s->skipped)", "(s->count - s->skipped)"},
		{"x = a + b * c @/ d - e;", "b * c / d", "d"},
		{"x = a / b @/ c;", "a / b / c", "c"},
		{"; r @/= by;", "r /= by", "by"},
		{"{ p->sum[i] @%= n + 1;", "p->sum[i] %= n + 1", "n + 1"},
		{"if (v) x @%= n;", "x %= n", "n"},
		{"f(a, (int)b @% -c, d);", "(int)b % -c", "-c"},
		{"return (double)n @/ (unsigned)m->size;", "(double)n / (unsigned)m->size", "(unsigned)m->size"},
		{"x = -a @/ b;", "-a / b", "b"},
		{"x = y - a @/ b;", "a / b", "b"},
		{"x = sum(a)[2] @/ count(b, c).n;", "sum(a)[2] / count(b, c).n", "count(b, c).n"},
		{"x = ns::total @/ ns::count;", "ns::total / ns::count", "ns::count"},
		{"x = a /* the sum */ @/ b; // a comment", "a / b", "b"},
		{"x = a\n    @/ (b\n    + c);", "a / (b + c)", "(b + c)"},
		{"case 4 @/ n:", "4 / n", "n"},
		{"x = max<int>(a, b) @/ c;", "", ""},
		{"x = a @/ (b", "", ""},
		{"x = a @/ max<int>(b);", "", ""},
		{"@/ b;", "", ""},
		{"x = a @+ b;", "", ""},
		{"@", "", ""},
	} {
		before, _, _ := strings.Cut(c.source, "@")
		line := strings.Count(before, "\n") + 1
		column := len(before) - (strings.LastIndex(before, "\n") + 1) + 1
		list := tokens(lines(strings.Replace(c.source, "@", "", 1)))
		q, ok := quotientAt(list, at(list, line, column))
		if textOf(q.whole) != c.whole || textOf(q.divisor) != c.divisor || ok != (c.whole != "") {
			t.Errorf("%s: %q, %q, %v", c.source, textOf(q.whole), textOf(q.divisor), ok)
		}
	}
}

func TestChains(t *testing.T) {
	for source, want := range map[string]string{
		"s->users[3].name = *p + f(q->r) + g()->x + a.b;": "s->users[3].name|p|*p|q->r|a.b",
		"int *x = y * *z[i];":                             "x|y|z[i]|*z[i]|i",
		"list->next->run(1); std::size(v);":               "list->next|v",
		"static int use(Box<long> *b) { return *b->t; }":  "Box|b|b->t|*b->t",
	} {
		var texts []string
		for _, c := range chainsOf(tokens(lines(source))) {
			text := c.text
			if n := len(c.links); n > 0 && c.links[n-1].star {
				text = "*" + text
			}
			texts = append(texts, text)
		}
		if got := strings.Join(texts, "|"); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

func TestConversions(t *testing.T) {
	for format, want := range map[string][2]int{"": {0, 0}, "plain": {0, 0}, "%": {0, 0}, "%d%%%s": {2, 0}, "%-*.*f|%n": {4, 1}, "%5$hhn %m %ld": {2, 1}, "%l": {0, 0}} {
		if list, writes := conversions(format); list != want[0] || writes != want[1] {
			t.Errorf("%q: %d, %d", format, list, writes)
		}
	}
}

// Names of one class in the forms of DWARF and of the demangler.
func TestSameClass(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"File", "File", true}, {"File", "AsciiArt", false}, {"Box<unsigned long>", "Box<long unsigned int>", true},
		{"(anonymous namespace)::Hidden", "Hidden", true}, {"main::Local", "Local", true}, {"main::{lambda(int)#1}", "main", true},
		{"io::File", "net::File", false}, {"XFile", "File", false},
	} {
		if sameClass(c.a, c.b) != c.same {
			t.Errorf("%s and %s", c.a, c.b)
		}
	}
	for name, want := range map[string]bool{"File::File(int)": true, "io::File::~File()": true, "File::close()": false, "main": false, "Box<int>::Box()": true} {
		if isStructor(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func FuzzSource(f *testing.F) {
	f.Add("return s->total * 100 / (s->count - s->skipped);", 1, 24)
	f.Add("x = *p[3].q / (a\n+ b) % \"t\\\"", 2, 1)
	f.Add("))(/", 1, 4)
	f.Fuzz(func(t *testing.T, source string, line, column int) {
		list := tokens(lines(source))
		for i := range list {
			if q, ok := quotientAt(list, i); ok && (len(q.divisor) == 0 || len(q.whole) <= len(q.divisor)) {
				t.Errorf("%q: %q by %q", source, textOf(q.whole), textOf(q.divisor))
			}
		}
		chainsOf(list)
		statementAt(list, &evidence.Site{Line: line, Column: column})
		conversions(source)
		sameClass(source, source)
		isStructor(source)
	})
}

// A statement hands a value on that it does not have, and cannot make. The value is 0 unless it is said.
func TestTakes(t *testing.T) {
	known := names{
		constant: func(name string) bool { return name == "kNone" },
		size:     func(name string, inner int) (uint64, bool) { return []uint64{40, 4}[inner], name == "line" },
		mapped:   func(addr uint64) bool { return addr == 93824992235520 },
	}
	for source, want := range map[string]bool{
		"basket.before = desk->clerk;":              true,
		"return p;":                                 true,
		"printf(\"%d\\n\", cost(wagon->next));":     true,
		"int share = tally.seats; @2147483647":      true,
		"at[3] = limit; @240":                       true,
		"desk->clerk = NULL;":                       false,
		"l->value = 0;":                             false,
		"l->value = -1; @4294967295":                false,
		"l->value = 0x10UL; @16":                    false,
		"size = count * 4; @240":                    false,
		"size = 4 * count; @240":                    false,
		"kept = EMPTY;":                             false,
		"kept = kNone;":                             false,
		"bool good = a == b;":                       false,
		"left = a < b; @7":                          true,
		"if (length(name->text) > 11) @24":          true,
		"n++;":                                      false,
		"Item *i = new Item();":                     false,
		"name = \"empty\"; @93824992235520":         false,
		"text[n] = '\\0';":                          false,
		"size_t n = sizeof(x); @24":                 false,
		"size_t n = sizeof line; @40":               false,
		"slots[tail++ % 7] = v; @17895697":          true,
		"slots[tail++ % 7] = v; @7":                 false,
		"slots[tail % 7] += 4 * v; @17895697":       false,
		"wire[8 + i] = ((char *)&x)[i]; @144":       true,
		"n = slots[tail % 7]; @6":                   false,
		"size_t n = 3 * sizeof(line); @120":         false,
		"fill(line, sizeof(line), end); @17895697":  true,
		"fill(line, sizeof line, end); @17895697":   true,
		"fill(line, sizeof line[0], end); @4":       false,
		"fill(line, sizeof line[i[0]], end); @1":    false,
		"sort(line, 9, sizeof(line[0])); @17895697": true,
		"sort(line, 9, sizeof(*line)); @17895697":   true,
		"sort(line, 9, sizeof(line->x)); @17895697": false,
		"print(\"n=%d\", limit); @17895697":         true,
		"std::vector<int> list":                     false,
		"struct item first":                         false,
		"reading = scale(offset(raw)); @4294967295": true,
	} {
		text, number, _ := strings.Cut(source, " @")
		value, _ := strconv.ParseUint(number, 10, 64)
		if got := takes(tokens(lines(text)), value, known); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}

// TestClause: a condition is no part of what depends on it.
func TestClause(t *testing.T) {
	for source, want := range map[string]string{
		"{ if (length(@name) > 11) exit(4); }":     "if ( length ( name ) > 11 )",
		"{ if (length(name) > 11) exit(@4); }":     "exit ( 4 )",
		"{ while (a) if (b(@1)) c(2); }":           "if ( b ( 1 ) )",
		"{ if (a) b(); else c(@3); }":              "c ( 3 )",
		"{ do a(@1); while (b); }":                 "a ( 1 )",
		"{ x = (a) ? f(@1) : g(2); }":              "x = ( a ) ? f ( 1 ) : g ( 2 )",
		"{ for (i = 0; i < 3; i++) a(@i); b(2); }": "i ++ ) a ( i )",
		"{ if (unfinished(@1":                      "if ( unfinished ( 1",
	} {
		text := strings.Replace(source, "@", "", 1)
		statement, _ := statementAt(tokens(lines(text)), &evidence.Site{Line: 1, Column: strings.Index(source, "@") + 1})
		var words []string
		for _, x := range statement {
			words = append(words, x.text)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s", source, got)
		}
	}
}
