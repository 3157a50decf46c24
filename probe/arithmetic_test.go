package probe_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"diagnose/probe"
	"diagnose/replay/record"
)

// expressions are those of the program whose compiler says what they are: the arguments of I and R.
func expressions(t *testing.T, file string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(data), "static void work(")
	for _, part := range strings.Split(body, "; ") {
		for _, text := range strings.Split(part, ";\n") {
			text = strings.TrimSpace(text)
			if (strings.HasPrefix(text, "I(") || strings.HasPrefix(text, "R(")) && strings.HasSuffix(text, ")") {
				list = append(list, text[2:len(text)-1])
			}
		}
	}
	return list
}

// TestArithmetic: code in the process computes what the tool computes, which a test of package expression compares with a compiler.
func TestArithmetic(t *testing.T) {
	const file = "../image/expression/testdata/expressions.c"
	list := expressions(t, file)
	for _, b := range []struct{ compiler, level string }{{"gcc", "-O0"}, {"clang", "-O0"}, {"gcc", "-O1"}} {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, file, "SIGABRT", b.compiler, b.level, "-w")
			const at = "expressions.c:98"
			by := ask(t, rec, probe.Question{Lines: []string{at}, Print: list, Stops: true})
			simple := simpleOf(t, rec, probe.Question{Lines: []string{at}}, list, by)
			if len(by.Rows) != 1 || len(simple) < 100 {
				t.Errorf("%d rows, %d of %d expressions were computed in the process", len(by.Rows), len(simple), len(list))
			}
			t.Logf("%d of %d expressions are simple", len(simple), len(list))
		})
	}
}

// simpleOf compares the values of expressions with those of by, and returns the ones that code in the process computes.
func simpleOf(t *testing.T, rec *record.Recording, q probe.Question, list []string, by *probe.Log) []string {
	q.Print = list
	if log := ask(t, rec, q); log.Replay.Handled > 0 {
		for i := range log.Rows[0].Values {
			name := log.Rows[0].Values[i].Name
			for _, want := range by.Rows[0].Values {
				if want.Name == name && !reflect.DeepEqual(log.Rows[0].Values[i], want) {
					t.Errorf("%s: %+v, by a stop %+v", name, log.Rows[0].Values[i], want)
				}
			}
		}
		return slices.Clone(list)
	}
	if len(list) == 1 {
		return nil
	}
	half := len(list) / 2
	return append(simpleOf(t, rec, q, list[:half], by), simpleOf(t, rec, q, list[half:], by)...)
}
