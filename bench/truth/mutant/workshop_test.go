package mutant

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/tree"
)

// program copies words into objects of their size; only long inputs reach the check.
const program = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int n, char **v)
{
	char line[200];
	FILE *f = fopen(v[1], "r");
	if (!f)
		return 1;
	while (fgets(line, sizeof line, f)) {
		size_t length = strlen(line);
		char *copy = malloc(length + 1);
		memcpy(copy, line, length + 1);
		if (length > 20)
			puts("long");
		printf("%s", copy);
		free(copy);
	}
	return 0;
}
`

// TestWorkshop makes mutants of a small program until one fails and one does not.
func TestWorkshop(t *testing.T) {
	if _, err := exec.LookPath("gcov"); err != nil {
		t.Skip("no gcov")
	}
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, "sources", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("words.c", program)
	put("in/empty", "")
	put("in/short", "word\n")
	put("in/full", "123456789012345678901234567890\nwords of twenty-four...\n")
	p := &source.Package{
		Name: "words", Program: "words", Sources: []string{"*.c"}, Compile: &source.Compile{Sources: []string{"*.c"}},
		Inputs: []source.Input{{Args: []string{"{}"}, Files: "in/*"}},
	}
	w, err := Open(t.Context(), &source.Unpacked{Package: p, Version: "1", Dir: filepath.Join(dir, "sources")},
		Folders{Build: filepath.Join(dir, "build"), Scratch: filepath.Join(dir, "scratch")}, func(string) {})
	if err != nil {
		t.Skip(err) // without the sanitizer
	}
	if len(w.originals) != 3 {
		t.Fatalf("the original is sound on %d inputs", len(w.originals))
	}
	if kept := firstKept(t, w, dir); kept.Passing == 0 || kept.Answer.Violation == nil || kept.Answer.File != "words.c" || kept.Failure == "" {
		t.Errorf("kept is %+v", kept)
	} else if r, err := limit.Run(t.Context(), limit.Command{Path: kept.Original, Args: kept.Run.Args, Dir: dir, Time: runLimit * wait}); err != nil || r.Status != 0 {
		t.Errorf("the twin: %+v, %v", r, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func firstKept(t *testing.T, w *Workshop, dir string) *Kept {
	t.Helper()
	for seed := range uint64(40) {
		m, err := w.Choose(seed)
		if err != nil {
			t.Fatal(err)
		}
		kept, drop, err := w.Make(t.Context(), m, filepath.Join(dir, "kept", "words"))
		if err != nil || (kept == nil) == (drop == "") {
			t.Fatalf("seed %d: %+v, %q, %v", seed, kept, drop, err)
		}
		if kept != nil {
			return kept
		}
	}
	t.Fatal("none of 40 mutants fails")
	return nil
}

// Of the inputs that reach a bug some are tried, from all parts of the list.
func TestReaching(t *testing.T) {
	w := &Workshop{src: &source.Unpacked{Package: &source.Package{Threads: true}}}
	for i := range 10 {
		o := original{Run: source.Run{Stdin: string(rune('0' + i))}, Covered: tree.Lines{"a.c": {1: tree.Wholly}}}
		if i >= 7 {
			o.Covered = nil
		}
		w.originals = append(w.originals, o)
	}
	some, rest, others := w.reaching(&Mutant{File: "a.c", Bug: inject.Mutation{Effect: []int{1}}})
	var got string
	for _, o := range some {
		got += o.Run.Stdin
	}
	if got != "024" || len(rest) != 4 || others != 3 {
		t.Errorf("tried are %s, the rest are %d, and %d do not reach it", got, len(rest), others)
	}
}

func TestFailureOf(t *testing.T) {
	for _, test := range []struct {
		r       limit.Result
		threads bool
		want    Failure
	}{
		{limit.Result{}, false, ""},
		{limit.Result{Status: 2}, false, Status},
		{limit.Result{Signal: 11}, true, Signal},
		{limit.Result{Signal: 9, Asleep: true}, false, endless},
		{limit.Result{Signal: 9, Asleep: true}, true, Hang},
		{limit.Result{Signal: 9, TimedOut: true}, true, endless},
	} {
		if got := failureOf(&test.r, test.threads); got != test.want {
			t.Errorf("%+v: %q, want %q", test.r, got, test.want)
		}
	}
}
