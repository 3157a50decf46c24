package source

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRuns(t *testing.T) {
	dir := t.TempDir()
	inputs, _, err := Own(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.b", "c.b", "d.x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := Package{Name: "p", Inputs: []Input{
		{Args: []string{"-l", "{}"}, Files: "*.b"},
		{Args: []string{"-t"}, Files: "*.x", Stdin: true},
		{Args: []string{"-h", "{dir}/z"}},
		{Args: []string{"{}"}, Own: "bc/digits.b"},
	}}
	runs, err := p.Runs(dir, inputs)
	if err != nil {
		t.Fatal(err)
	}
	want := []Run{
		{Args: []string{"-l", filepath.Join(dir, "a.b")}}, {Args: []string{"-l", filepath.Join(dir, "c.b")}},
		{Args: []string{"-t"}, Stdin: filepath.Join(dir, "d.x")}, {Args: []string{"-h", dir + "/z"}},
		{Args: []string{filepath.Join(inputs, "bc/digits.b")}},
	}
	if !slices.EqualFunc(runs, want, func(a, b Run) bool { return slices.Equal(a.Args, b.Args) && a.Stdin == b.Stdin }) {
		t.Errorf("the runs are %v, want %v", runs, want)
	}
	p.Inputs = []Input{{Files: "*.y"}}
	if _, err := p.Runs(dir, inputs); err == nil {
		t.Error("a pattern that finds nothing is accepted")
	}
}

// Every description can be carried out: it says how to build, what to change and what to run.
func TestPackages(t *testing.T) {
	var names []string
	for i := range Packages {
		p := &Packages[i]
		if p.Program == "" || len(p.Sources) == 0 || len(p.Inputs) == 0 || (p.Make == "") == (p.Compile == nil) {
			t.Errorf("%s is incomplete", p.Name)
		}
		if slices.Contains(names, p.Name) || Named(p.Name) != p {
			t.Errorf("%s is there twice", p.Name)
		}
		names = append(names, p.Name)
		for _, in := range p.Inputs {
			if in.Own == "" {
				continue
			}
			if found, err := filepath.Glob(filepath.Join("inputs", in.Own)); err != nil || len(found) == 0 {
				t.Errorf("%s: no input is %s: %v", p.Name, in.Own, err)
			}
		}
		if p.Compile != nil && p.Compile.Driver != "" {
			if _, err := os.Stat(filepath.Join("drivers", p.Compile.Driver)); err != nil {
				t.Error(err)
			}
		}
	}
}
