package probe_test

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/probe"
)

const rounds = 5

// values are those of the rows of a kind of place, an expression's of each row in a slice.
func values(log *probe.Log, kind probe.Kind, asked, name string) (list []string) {
	for i := range log.Rows {
		if p := &log.Places[log.Rows[i].Place]; p.Kind == kind && p.Asked == asked {
			list = append(list, text(&log.Rows[i], name))
		}
	}
	return list
}

// each makes the values of all rounds.
func each(value func(n int) any) (list []string) {
	for n := range rounds {
		list = append(list, fmt.Sprint(value(n)))
	}
	return list
}

// TestPassing: parameters in registers and on the stack, and results, as the program has them.
func TestPassing(t *testing.T) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, "../internal/testdata/probe/calls.c", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Calls: []string{"many", "doubles", "after", "make", "outer", "inner"},
				Returns: []string{"many", "doubles", "make", "pair", "outer", "inner", "factorial", "jumps", "odd", "named", "nothing"}})
			for _, x := range []struct {
				function, name string
				value          func(n int) any
			}{
				{"many", "b", func(n int) any { return -n }}, {"many", "c", func(n int) any { return n * 3 }}, {"many", "d", func(n int) any { return n - 1000000000000 }},
				{"many", "e", func(n int) any { return 4000000000 + n }}, {"many", "g", func(n int) any { return n - 1 }}, {"many", "h", func(n int) any { return float64(n) + 0.5 }},
				{"many", "i", func(n int) any { return float64(n) / 4 }}, {"many", "j", func(n int) any { return -n }},
				{"doubles", "a", func(int) any { return 1 }}, {"doubles", "h", func(n int) any { return float64(n) + 0.25 }}, {"doubles", "i", func(n int) any { return float64(n) - 0.5 }},
				{"doubles", "j", func(n int) any { return n }},
				{"after", "first", func(n int) any { return n }}, {"after", "last", func(n int) any { return n + 9 }},
				{"make", "n", func(n int) any { return n }}, {"make", "more", func(int) any { return 4 }}, {"outer", "x", func(n int) any { return n }}, {"inner", "x", func(n int) any { return n + 1 }},
			} {
				check(t, values(log, probe.KindCall, x.function, x.name), each(x.value), x.function+" "+x.name)
			}
			for _, x := range []struct {
				function string
				value    func(n int) any
			}{
				{"doubles", func(n int) any { return float64(n) - 0.5 + float64(n) }}, {"make", func(n int) any { return fmt.Sprintf("{a = %d, b = %d, c = %d}", n, n+4, n*10) }},
				{"pair", func(int) any { return "<not computed>" }}, {"outer", func(n int) any { return 2*n + 2 }}, {"inner", func(n int) any { return 2*n + 2 }},
				{"odd", func(n int) any { return n%2 == 1 }}, {"nothing", func(int) any { return "<missing>" }},
			} {
				check(t, values(log, probe.KindReturn, x.function, probe.Result), each(x.value), "return of "+x.function)
			}
			check(t, values(log, probe.KindReturn, "jumps", probe.Result), []string{"100", "102", "104"}, "return of jumps")
			for i, v := range values(log, probe.KindReturn, "named", probe.Result) {
				if want := []string{`"even"`, `"odd"`}[i%2]; !strings.HasSuffix(v, want) {
					t.Errorf("named returned %s, want %s", v, want)
				}
			}
			for i, v := range values(log, probe.KindCall, "many", "f") {
				if want := []string{`"yy"`, `"x"`}[i%2]; !strings.HasSuffix(v, want) {
					t.Errorf("f is %s, want %s", v, want)
				}
			}
			if b.level == "-O0" { // without a loop in its place
				results := values(log, probe.KindReturn, "factorial", probe.Result)
				if len(results) != 2+3+4+5+6 || results[1] != "2" || results[len(results)-1] != "720" {
					t.Errorf("factorial: %v", results)
				}
			}
		})
	}
}

// check compares values; those that the compiler did not keep, or whose place is not computed, say
// so.
func check(t *testing.T, got, want []string, what string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] && got[i] != "<optimized out>" && got[i] != "<not computed>" {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

// TestTemplates: all instances of a template, methods, references, and calls left by exceptions.
func TestTemplates(t *testing.T) {
	for _, b := range []struct{ compiler, level string }{{"g++", "-O0"}, {"g++", "-O2"}, {"clang++", "-O0"}, {"clang++", "-O2"}} {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, "../internal/testdata/probe/templates.cc", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Lines: []string{"templates.cc:26"}, Print: []string{"value", "sink"}})
			whole, real := map[string]bool{}, map[string]bool{}
			for i := range log.Rows {
				p := &log.Places[log.Rows[i].Place]
				switch {
				case strings.Contains(p.Site.Function, "<long>"):
					whole[text(&log.Rows[i], "value")] = true
				case strings.Contains(p.Site.Function, "<double>"):
					real[text(&log.Rows[i], "value")] = true
				default:
					t.Errorf("%+v", p)
				}
			}
			if b.level == "-O0" && (len(whole) != 6 || !whole["5"] || len(real) != 3 || !real["5.5"]) || len(whole) == 0 || len(real) == 0 {
				t.Errorf("%v and %v", whole, real)
			}
			log = ask(t, rec, probe.Question{Calls: []string{"article::total"}, Print: []string{"price", "count", "this->price * count", "made", "shop::article::made"}})
			if len(log.Rows) != 6 {
				t.Fatalf("%d rows", len(log.Rows))
			}
			for n := range log.Rows {
				row := &log.Rows[n]
				for name, want := range map[string]int{"price": n * 100, "count": n + 1, "this->price * count": n * 100 * (n + 1), "made": n + 1, "shop::article::made": n + 1} {
					// gcc makes a variant of the method without an object, of which its debug information says little.
					if got := text(row, name); got != fmt.Sprint(want) && !strings.HasPrefix(got, "<optimized out") && !(b.level == "-O2" && strings.HasPrefix(got, "<described by DWARF operation")) {
						t.Errorf("%s is %s in row %d, want %d", name, got, n, want)
					}
				}
			}
			log = ask(t, rec, probe.Question{Calls: []string{"shop::check"}, Returns: []string{"check"}})
			check(t, values(log, probe.KindCall, "shop::check", "n"), []string{"0", "1", "2", "3", "4", "5"}, "check")
			check(t, values(log, probe.KindReturn, "check", probe.Result), []string{"50", "51", "52"}, "return of check")
		})
	}
}
