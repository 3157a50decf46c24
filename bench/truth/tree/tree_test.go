package tree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/bench/truth/source"
)

const first = "#include <stdio.h>\nint word(void);\nint main(int n, char **v)\n{\n\tif (n > 1)\n\t\tputs(v[1]);\n\tprintf(\"%d\\n\", word());\n\n\tif (n > 2) return 1;\n\treturn 0;\n}\n"

// open builds a program of two files.
func open(t *testing.T, dir string, v Variant) *Tree {
	t.Helper()
	src := filepath.Join(dir, "sources")
	if err := os.MkdirAll(src, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(src, "main.c"), first)
	write(t, filepath.Join(src, "word.c"), "int word(void) { return 1; }\n")
	p := &source.Package{Name: "two", Program: "two", Compile: &source.Compile{Sources: []string{"*.c"}}}
	tree, err := Open(t.Context(), &source.Unpacked{Package: p, Version: "1", Dir: src}, v, filepath.Join(dir, "build"), "")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func output(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestChange(t *testing.T) {
	dir := t.TempDir()
	tree := open(t, dir, Plain0)
	if got := output(t, tree.Executable()); got != "1" {
		t.Fatalf("the original prints %s", got)
	}
	if err := tree.Change(t.Context(), "word.c", []byte("int word(void) { return 2; }\n")); err != nil {
		t.Fatal(err)
	}
	if got := output(t, tree.Executable()); got != "2" {
		t.Errorf("the mutant prints %s", got)
	}
	if err := tree.Change(t.Context(), "main.c", nil); err == nil {
		t.Error("a second change is accepted")
	}
	// The process ends here: the next one finds the original.
	tree = open(t, dir, Plain0)
	if err := tree.Change(t.Context(), "main.c", []byte(strings.Replace(first, "%d", "%d.", 1))); err != nil {
		t.Fatal(err)
	}
	if got := output(t, tree.Executable()); got != "1." {
		t.Errorf("after the next Open it prints %s", got)
	}
	if got := output(t, tree.Original()); got != "1" {
		t.Errorf("the original prints %s", got)
	}
}

func TestChangeThatDoesNotCompile(t *testing.T) {
	tree := open(t, t.TempDir(), Plain0)
	err := tree.Change(t.Context(), "word.c", []byte("int word(void) { return nothing; }\n"))
	var build *BuildError
	if !errors.As(err, &build) || !strings.Contains(build.Output, "nothing") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(tree.Executable()); err == nil {
		t.Error("the program of the build before is still there")
	}
	if err := errors.Join(tree.Restore(), tree.Change(t.Context(), "main.c", []byte(first))); err != nil {
		t.Error(err)
	}
}

func TestCovered(t *testing.T) {
	if _, err := exec.LookPath("gcov"); err != nil {
		t.Skip("no gcov")
	}
	tree := open(t, t.TempDir(), Coverage)
	output(t, tree.Executable())
	lines, err := tree.Covered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if main := lines["main.c"]; main[5] == 0 || main[6] != 0 || main[7] != Wholly || lines["word.c"][1] != Wholly || main[9] != Partly {
		t.Errorf("covered are %v", lines)
	}
	if err := tree.Forget(); err != nil {
		t.Fatal(err)
	}
	if lines, err := tree.Covered(t.Context()); len(lines) != 0 || err != nil {
		t.Errorf("after Forget: %v, %v", lines, err)
	}
}
