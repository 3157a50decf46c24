package raced

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"diagnose/bench/truth/score"
	"diagnose/evidence"
)

const source = `// It is taken twice.
// NOT: done ended
#include <stdio.h>

static int count, done; // BUG is no mark here
// NOT: count
int take(void)
{
	return --count; // BUG
}
static struct { int x; } s; // BUG
`

func written(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "twice.c"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMarks(t *testing.T) {
	list, err := ReadAll(written(t, source))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	p := list[0]
	if !reflect.DeepEqual(p.bugs, []int{9, 11}) || !reflect.DeepEqual(p.not, []string{"done", "ended"}) {
		t.Errorf("the lines are %v, the variables %v", p.bugs, p.not)
	}
	if p.Name() != "twice" || p.CPlusPlus() {
		t.Errorf("%s, C++: %v", p.Name(), p.CPlusPlus())
	}
	if _, err := ReadAll(written(t, "int main(void) {}\n")); err == nil || !strings.Contains(err.Error(), "twice.c: no line") {
		t.Errorf("a program without marks: %v", err)
	}
}

// TestPrograms: every program that is measured has marks, a comment about its bug, and a name of its own.
func TestPrograms(t *testing.T) {
	list, err := ReadAll("../../../../internal/testdata/raced")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range list {
		text, err := os.ReadFile(p.Path)
		if err != nil || !strings.HasPrefix(string(text), "// ") || names[p.Name()] {
			t.Errorf("%s: %v", p.Path, err)
		}
		names[p.Name()] = true
	}
	if len(names) < 11 {
		t.Errorf("there are %d programs", len(names))
	}
}

// access is one at a line of the program.
func access(line int) evidence.SeenAccess {
	return evidence.SeenAccess{Site: &evidence.Site{File: "/src/twice.c", Line: line}}
}

func TestJudge(t *testing.T) {
	list, err := ReadAll(written(t, source))
	if err != nil {
		t.Fatal(err)
	}
	at := func(file string, line int) evidence.Cause {
		return evidence.Cause{Site: &evidence.Site{File: file, Line: line}}
	}
	order := func(variable string, failing, passing int) evidence.Cause {
		c := at("/src/twice.c", 3)
		c.Interleaving = &evidence.Interleaving{Variables: []string{variable}, Failing: []evidence.SeenAccess{{}, access(failing)}, Passing: []evidence.SeenAccess{access(passing)}}
		return c
	}
	proved := func(c evidence.Cause) evidence.Cause { c.Proof = evidence.Proved; return c }
	flag := at("/src/twice.c", 9)
	flag.Variable = "ended"
	diagnosed := func(causes ...evidence.Cause) *evidence.Diagnosis { return &evidence.Diagnosis{Causes: causes} }
	for name, tt := range map[string]struct {
		diagnosis *evidence.Diagnosis
		want      score.Score
	}{
		"no diagnosis":              {nil, score.Score{Outcome: score.Unknown}},
		"place":                     {diagnosed(at("/src/twice.c", 9)), score.Score{Outcome: score.Right}},
		"another line":              {diagnosed(at("/src/twice.c", 8)), score.Score{Outcome: score.Wrong}},
		"another file":              {diagnosed(proved(at("/src/once.c", 9))), score.Score{Outcome: score.WrongProved, Proved: true}},
		"no place":                  {diagnosed(evidence.Cause{}), score.Score{Outcome: score.Wrong}},
		"access of the failing run": {diagnosed(proved(order("count", 11, 3))), score.Score{Outcome: score.Right, Proved: true}},
		"access of the passing run": {diagnosed(order("count", 3, 9)), score.Score{Outcome: score.Right}},
		"no access":                 {diagnosed(order("count", 3, 3)), score.Score{Outcome: score.Wrong}},
		"another variable":          {diagnosed(proved(order("done", 9, 9))), score.Score{Outcome: score.WrongProved, Proved: true}},
		"another member":            {diagnosed(order("p->done", 9, 9)), score.Score{Outcome: score.Wrong}},
		"a name that ends alike":    {diagnosed(order("undone", 9, 9)), score.Score{Outcome: score.Right}},
		"another value":             {diagnosed(flag), score.Score{Outcome: score.Wrong}},
		"only the second":           {diagnosed(at("/src/twice.c", 8), at("/src/twice.c", 9)), score.Score{Outcome: score.Wrong}},
		"lead":                      {&evidence.Diagnosis{Leads: []evidence.Cause{at("a.c", 1), order("count", 9, 3)}}, score.Score{Outcome: Lead}},
		"wrong lead":                {&evidence.Diagnosis{Leads: []evidence.Cause{at("a.c", 1)}}, score.Score{Outcome: score.Unknown}},
	} {
		if got := list[0].Judge(&evidence.Case{Diagnosis: tt.diagnosis}); got != tt.want {
			t.Errorf("%s: %+v, not %+v", name, got, tt.want)
		}
	}
}
