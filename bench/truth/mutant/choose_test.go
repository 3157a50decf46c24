package mutant

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/tree"
)

func TestHoldOut(t *testing.T) {
	held, whole, packages := 0, 0, 400
	for p := range packages {
		of := 0
		for seed := range uint64(50) {
			if (ID{fmt.Sprint("package", p), "1", seed}).HoldOut() {
				of++
			}
		}
		held += of
		if of == 50 {
			whole++
		}
	}
	if share := float64(held) / float64(50*packages); share < 0.2 || share > 0.3 {
		t.Errorf("%.2f of the mutants are held out", share)
	}
	if whole < packages/20 {
		t.Errorf("%d of %d packages are held out", whole, packages)
	}
}

func TestChoose(t *testing.T) {
	text := "void f(char *a, int i) {\n\ta[i] = 1;\n\ta[i] = a[i] + 2;\n\ta[i] = '\\0';\n}\n"
	bugs, err := inject.Find("a.c", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var sites []Site
	for _, b := range bugs {
		sites = append(sites, Site{"a.c", b})
	}
	moved := 0
	rare, levels := 0, map[string]int{}
	for seed := range uint64(400) {
		id := ID{"p", "1", seed}
		m, err := Choose(id, sites, tree.Plain)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Choose(id, sites, tree.Plain)
		if err != nil || again.Bug.Line != m.Bug.Line || again.Level != m.Level {
			t.Fatalf("seed %d makes %+v and %+v, %v", seed, m, again, err)
		}
		fewer, err := Choose(id, sites[1:], tree.Plain)
		if err != nil {
			t.Fatal(err)
		}
		if fewer.Bug.Key() != m.Bug.Key() {
			moved++
		}
		if m.Bug.Operator == "terminator" {
			rare++
		}
		levels[m.Level]++
	}
	if moved > 60 {
		t.Errorf("one place less changes %d of 400 choices", moved)
	}
	if rare < 150 || rare > 250 || levels["O0"] < 150 || levels["O2"] < 150 {
		t.Errorf("%d of 400 are of the rare operator; levels are %v", rare, levels)
	}
	if _, err := Choose(ID{}, nil, tree.Plain); err == nil {
		t.Error("a program without a place for a bug is accepted")
	}
}

func TestSites(t *testing.T) {
	dir := t.TempDir()
	text := "void f(int *a, int i) {\n\ta[i] = 0;\n\ta[i +\n\t  1] = 0;\n\ta[i] = 2;\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.c"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	src := &source.Unpacked{Package: &source.Package{Sources: []string{"*.c"}}, Dir: dir}
	sites, err := Sites(src, []tree.Lines{{"a.c": {2: tree.Wholly}}, {"a.c": {4: tree.Partly}}})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]int{}
	for _, s := range sites {
		lines[s.Bug.Line]++
	}
	if len(lines) != 2 || lines[2] == 0 || lines[3] == 0 {
		t.Errorf("the lines are %v", lines)
	}
	src.Threads = true
	if sites, err := Sites(src, []tree.Lines{{"a.c": {2: tree.Wholly}}}); err != nil || len(sites) != 0 {
		t.Errorf("bugs of memory in a program for those of concurrency: %v, %v", sites, err)
	}
}
