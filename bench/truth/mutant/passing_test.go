package mutant

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"diagnose/bench/truth/source"
)

func TestPassingRuns(t *testing.T) {
	f := Folders{Build: t.TempDir(), Scratch: t.TempDir()}
	k := &Kept{Mutant: Mutant{ID: ID{Package: "p"}, Level: "O0"}, Run: source.Run{Args: []string{"fails"}}, Program: filepath.Join(t.TempDir(), "program")}
	if list, err := k.PassingRuns(t.Context(), f, 9); err != nil || len(list) > 0 {
		t.Errorf("before it was built: %v, %v", list, err)
	}
	if err := os.WriteFile(k.Program, []byte("#!/bin/sh\necho $1\n[ $1 != status ]\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var originals []original
	for _, argument := range []string{"good", "fails", "status", "other", "fine"} {
		output := argument
		if argument == "other" {
			output = "something else"
		}
		originals = append(originals, original{Run: source.Run{Args: []string{argument}}, Outputs: map[string][]byte{"O0": digest([]byte(output + "\n"))}})
	}
	text, err := json.Marshal(originals)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(f.Build, k.Package)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "originals-1.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	for most, want := range []string{"", "good", "good fine", "good fine"} {
		list, err := k.PassingRuns(t.Context(), f, most)
		got := ""
		for i, run := range list {
			if i > 0 {
				got += " "
			}
			got += run.Args[0]
		}
		if err != nil || got != want {
			t.Errorf("at most %d: %q, %v, want %q", most, got, err, want)
		}
	}
}
