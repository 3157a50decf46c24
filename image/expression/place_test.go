package expression_test

import (
	"errors"
	"strings"
	"testing"

	"diagnose/image"
	"diagnose/image/expression"
	"diagnose/image/value"
	"diagnose/internal/crashtest"
)

// show evaluates and formats an expression; an error is its text in < >.
func show(p *expression.Place, s expression.Scope, text string) string {
	o, err := eval(p, s, text)
	if err != nil {
		return "<" + err.Error() + ">"
	}
	v := o.Format(value.Defaults)
	if v.Unavailable != "" {
		return "<" + v.Why() + ">"
	}
	return v.Text
}

func TestScopes(t *testing.T) {
	for _, compiler := range []string{"g++", "clang++"} {
		t.Run(compiler, func(t *testing.T) {
			place, scope := crashed(t, crashtest.Program{Source: "testdata/places.cc", Compiler: compiler, Flags: []string{"-O0"}}, "pool::worker::self")
			for text, want := range map[string]string{
				"local":                    "100", // the inner block's
				"count":                    "105", // the function's, not pool's nor the file's
				"::pool::count":            "4",
				"pool::count":              "4",
				"by":                       "30", // a reference stands for its object
				"by * 2":                   "60",
				"other.id":                 "22",
				"id":                       "11", // this->id, of the base class
				"this->id":                 "11",
				"made":                     "6",
				"pool::worker::made":       "6",
				"now":                      "busy (7)",
				"now == pool::state::busy": "1",
				"now == state::busy":       "1",
				"at == high":               "1",
				"at == pool::low":          "0",
				"at == level::high":        "1",
				"held.value":               "12",
				"held":                     "{value = 12}",
				`name == "worker"`:         "1",
				`name != "worker"`:         "0",
				`"work" == name`:           "0",
				`name == "workers"`:        "0",
				"sizeof(pool::worker)":     "24",
				"sizeof(worker)":           "24",
				"(worker *)0 == nullptr":   "1",
				"((worker *)this)->id":     "11",
				"only_there":               "<check: there is no variable only_there>", // another function's
				"nowhere":                  "<check: there is no variable nowhere>",
				"this->idd":                "<check: struct pool::worker has no member idd>",
				"this.id":                  "<check: struct pool::worker * const is a pointer: its members are taken by ->>",
			} {
				got := show(place, scope, text)
				if strings.HasPrefix(want, "<check") {
					if !strings.HasPrefix(got, "<check") {
						t.Errorf("%s: %s, want %s", text, got, want)
					}
					continue
				}
				if got != want {
					t.Errorf("%s: %s, want %s", text, got, want)
				}
			}
		})
	}
}

// TestOptimised: a value that is not there says so, and is never a zero.
func TestOptimised(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			p := crashtest.Program{Source: "testdata/optimised.c", Compiler: compiler, Flags: []string{"-O2"}}
			place, scope := crashed(t, p, "inner")
			for text, want := range map[string]string{"sink": "110", "list->key": "50", "list->text": `"abc"`, `list->text == "abc"`: "1", "list->next": "0x0",
				"list->next->key": "<memory at 0x10 is not mapped>", "*list->next": "<memory at 0x0 is not mapped>"} {
				if got := show(place, scope, text); got != want {
					t.Errorf("%s: %s, want %s", text, got, want)
				}
			}
			for _, text := range []string{"by", "key"} {
				if got := show(place, scope, text); got != map[string]string{"by": "60", "key": "110"}[text] && !strings.HasPrefix(got, "<optimized out") {
					t.Errorf("%s: %s", text, got)
				}
			}
			if got := show(place, scope, "total"); got != "<check: there is no variable total>" {
				t.Errorf("the caller's variable: %s", got)
			}
			place, scope = crashed(t, p, "outer")
			if got := show(place, scope, "gone"); got != "1" && !strings.HasPrefix(got, "<optimized out") {
				t.Errorf("gone: %s", got)
			}
		})
	}
}

// TestErrors: errors of the text, of types and of values are told apart.
func TestErrors(t *testing.T) {
	place, scope := crashed(t, crashtest.Program{Source: "testdata/expressions.c", Flags: []string{"-O0", "-w"}}, "work")
	var (
		syntax *expression.SyntaxError
		types  *expression.TypeError
		names  *expression.NameError
		values *expression.ValueError
		memory *image.MemoryError
	)
	for text, want := range map[string]any{
		"": &syntax, "1 +": &syntax, "n n": &syntax, "(n": &syntax, "a[1": &syntax, "n ?1": &syntax, "'ab'": &syntax, `"abc`: &syntax, "n = 1": &syntax, "n++": &syntax,
		"work(1)": &syntax, "1x": &syntax, "0x": &syntax, "99999999999999999999": &syntax, "n @ 2": &syntax, "(int": &syntax, "int": &syntax, `'\q'`: &syntax, "n;": &syntax,
		strings.Repeat("(", 5000): &syntax, strings.Repeat("-", 3000) + "1": &syntax, strings.Repeat("1+", 1000) + "1": &syntax, strings.Repeat("(", 100) + "1": &syntax,
		"nothing": &names, "q->nothing": &names, "q->head->at.z": &names, "nothing && 0": &names, "1 || nothing": &names, "1 ? 2 : nothing": &names,
		"*n": &types, "n->x": &types, "q.len": &types, "q->len->x": &types, "*raw": &types, "copy + 1": &types, "!copy": &types, "&(n + 1)": &types, "&p->low": &types,
		"factor % 2": &types, "~factor": &types, "p * 2": &types, "p + p": &types, "-p": &types, "p - q": &types, `"a" + 1`: &types, `word < "a"`: &types, `n == "a"`: &types,
		"(struct queue)n": &types, "(no_such *)n": &syntax, "(struct no_such *)n": &types, "sizeof(void)": &types, "q->fixed[factor]": &types, "(double)p": &types,
		"n / 0": &values, "n % (n - 42)": &values, "1 << 32": &values, "1 >> -1": &values, "(char)1e9": &values, "array[1 << 30] + array[0x7fffffffffffffff]": &values,
		"p->next->next->next->key": &memory, "*(int *)16": &memory, `*(char **)8 == "x"`: &memory, `(char *)1 == "x"`: &memory,
	} {
		o, err := eval(place, scope, text)
		if err == nil {
			_, err = o.Bytes()
		}
		if err == nil || !errors.As(err, want) {
			t.Errorf("%.40q: %v (%T), want %T", text, err, err, want)
		}
	}
	for text, want := range map[string]bool{"n > 41": true, "n < 41": false, "factor": true, "0.0": false, "p": true, "p->next->next->next": false, "q->label": true} {
		e, err := expression.Parse(text, place.IsType)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.True(scope); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
