package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An archive may have the tarball of the authors and lack Debian's part.
func TestTarballAlone(t *testing.T) {
	a := &Archive{t.TempDir()}
	inside := filepath.Join(a.Dir, "sources", "p-1.2")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, "p.c"), []byte("int p;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tarball := filepath.Join(a.Dir, "sources", "p_1.2.orig.tar.gz")
	if out, err := exec.Command("tar", "-c", "-z", "-f", tarball, "-C", filepath.Dir(inside), "p-1.2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d, err := a.tarball("p")
	if err != nil || d.version != "1.2" {
		t.Fatalf("%+v, %v", d, err)
	}
	dir := filepath.Join(a.Dir, "unpacked", "p")
	if err := a.unpack(t.Context(), d, dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "p.c")); err != nil || string(text) != "int p;\n" {
		t.Errorf("%q, %v", text, err)
	}
	if d, err := a.tarball("q"); err == nil {
		t.Errorf("a package without files is %+v", d)
	}
}
