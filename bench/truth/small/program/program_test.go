package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func generator(t *testing.T) *Generator {
	t.Helper()
	g, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func made(t *testing.T, g *Generator, seed uint64) *Program {
	t.Helper()
	p, err := g.Make(seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// left is text of the parts that no program may have.
var left = regexp.MustCompile(`@\{|@\||@\}|//@|\$|ALLOC\{|FREE\{|#choose|#case|#end`)

func TestMake(t *testing.T) {
	g := generator(t)
	used := map[string]bool{}
	held := 0
	const seeds = 600
	for seed := range uint64(seeds) {
		p := made(t, g, seed)
		if again := made(t, g, seed); !reflect.DeepEqual(p, again) {
			t.Fatalf("seed %d makes two programs", seed)
		}
		if p.Source == p.Twin {
			t.Errorf("seed %d: the twin has the bug", seed)
		}
		lines := strings.Split(p.Source, "\n")
		if len(lines) != len(strings.Split(p.Twin, "\n")) {
			t.Errorf("seed %d: the twin has other lines", seed)
		}
		if found := left.FindString(p.Source + p.Twin); found != "" {
			t.Errorf("seed %d has %q", seed, found)
		}
		if len(p.Root) == 0 || p.Root[len(p.Root)-1] > len(lines) {
			t.Errorf("seed %d: the bug is at %d of %d lines", seed, p.Root, len(lines))
		}
		used[g.bugOf(seed).name] = true
		if HoldOut(seed) {
			held++
		}
	}
	for _, p := range g.kinds {
		if !used[p.name] {
			t.Errorf("no seed makes %s", p.name)
		}
	}
	if held < seeds/4 || held > seeds*2/5 {
		t.Errorf("%d of %d seeds are of the hold-out", held, seeds)
	}
}

// TestCompile compiles one program with each bug, and its twin.
func TestCompile(t *testing.T) {
	g := generator(t)
	dir := t.TempDir()
	tried := map[string]bool{}
	for seed := uint64(1000); len(tried) < len(g.kinds) && seed < 2000; seed++ {
		name := g.bugOf(seed).name
		if tried[name] {
			continue
		}
		tried[name] = true
		p := made(t, g, seed)
		for _, text := range []string{p.Source, p.Twin} {
			path := filepath.Join(dir, p.File())
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("gcc", "-fsyntax-only", "-w", path).CombinedOutput(); err != nil {
				t.Errorf("seed %d, %s: %s", seed, name, out)
			}
		}
	}
	if len(tried) != len(g.kinds) {
		t.Errorf("%d of %d bugs were tried", len(tried), len(g.kinds))
	}
}

func TestRender(t *testing.T) {
	lines := []string{"int n;", "n = @{1@|2@}; //@root", "f(@{@|n@}); //@seen"}
	if got := render(lines, false); got != "int n;\nn = 1;\nf();\n" {
		t.Errorf("with the bug: %q", got)
	}
	if got := render(lines, true); got != "int n;\nn = 2;\nf(n);\n" {
		t.Errorf("without: %q", got)
	}
	if root, seen := marked(lines, "root"), marked(lines, "seen"); !reflect.DeepEqual(root, []int{2}) || !reflect.DeepEqual(seen, []int{3}) {
		t.Errorf("marked %d and %d", root, seen)
	}
}

func TestBadParts(t *testing.T) {
	for text, want := range map[string]string{
		"colour: red\n":         "no line of a header",
		"let N\n":               "no value",
		"-- nowhere --\n":       "no section",
		"role: bug\nkind bad\n": "no line of a header",
	} {
		if _, err := parsePart("x", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	g := generator(t)
	e := &environment{random: nil, words: &words{list: []string{"a"}}}
	for text, want := range map[string]string{
		"let N = 9..3\n":                   "no range",
		"-- main --\n#choose A\n#case B\n": "no #end",
		"-- main --\n#choose A\nx\n#end\n": "no #case",
	} {
		p, err := parsePart("x", text)
		if err != nil {
			t.Fatal(err)
		}
		e.values = map[string]string{}
		if _, err := p.instantiate(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c := &composer{generator: g, program: &Program{Language: C}}
	if err := c.addOne(roleEnd, "colour"); err == nil {
		t.Error("an end takes a colour")
	}
}
