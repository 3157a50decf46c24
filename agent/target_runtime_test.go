package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPythonTarget: by its name, by that of a link or of a script that runs it, and by its
// library; and what the user has set counts.
func TestPythonTarget(t *testing.T) {
	dir := t.TempDir()
	link := func(to, name string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	library := filepath.Join(dir, "libpython3.99.so.1.0")
	for _, args := range [][]string{
		{"-shared", "-Wl,-soname,libpython3.99.so.1.0", "-o", library, "-x", "c", os.DevNull},
		{"-Wl,--no-as-needed", "-o", filepath.Join(dir, "embedder"), "-x", "c", "-", "-x", "none", library},
		{"-o", filepath.Join(dir, "python3.99"), "-x", "c", "-"},
	} {
		c := exec.Command("cc", args...)
		c.Stdin = strings.NewReader("int main(void) { return 0; }")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("cc %q: %v\n%s", args, err, out)
		}
	}
	script := filepath.Join(dir, "tool")
	if err := os.WriteFile(script, []byte("#!"+filepath.Join(dir, "python3.99")+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	shim := filepath.Join(dir, "python3")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		path string
		want bool
	}{
		{filepath.Join(dir, "python3.99"), true},
		{link("python3.99", "interpreter"), true},
		{link("/bin/true", "python"), true},
		{script, true},
		{shim, true},
		{filepath.Join(dir, "embedder"), true},
		{"/bin/true", false},
		{link("/bin/true", "pythonic"), false},
	} {
		target, err := FindTarget(x.path)
		if err != nil {
			t.Fatal(err)
		}
		environ := target.Environ([]string{"A=1"})
		if got := slices.Contains(environ, "PYTHONMALLOC=malloc"); got != x.want || target.Python != x.want {
			t.Errorf("%s: %v, %q, want %v", x.path, target.Python, environ, x.want)
		}
		if environ := target.Environ([]string{"PYTHONMALLOC="}); len(environ) != 1 {
			t.Errorf("%s: %q, though the user has set it", x.path, environ)
		}
	}
}
