package failure

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/evidence"
)

// TestSourceLinesOfOtherFiles: debug information may name any file of the machine, and a link may
// have any name.
func TestSourceLinesOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(name, to string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("id_rsa")
	source := write("real.C")
	for path, want := range map[string]bool{
		source: true, link("linked.c", source): true, key: false, write("shadow.txt"): false,
		link("evil.c", key): false, "/proc/self/environ": false, "/dev/zero": false, dir: false,
	} {
		got := SourceLines(evidence.Site{File: path, Line: 2}, 1, SourcePaths{})
		if (got != nil) != want || got != nil && got.Lines[1].Text != "two" {
			t.Errorf("%s: %+v, want lines: %v", path, got, want)
		}
	}
}
