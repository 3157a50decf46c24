package agent

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// oldestGlibc is the minor number of the oldest glibc 2 that has all that a release needs.
const oldestGlibc = 18

// TestReleaseVersions: what a release brings can be loaded by old and by new versions of
// glibc, and its optional function is found where it is.
func TestReleaseVersions(t *testing.T) {
	dir := t.TempDir()
	if err := Export(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{LibraryName, RecordLibraryName} {
		path := filepath.Join(dir, name)
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		needed, err := neededVersions(f)
		if err != nil || len(needed) < 3 {
			t.Fatalf("%s: %d versions, %v", name, len(needed), err)
		}
		for _, v := range needed {
			minor, ok := strings.CutPrefix(v.name, "GLIBC_2.")
			number, err := strconv.Atoi(strings.Split(minor, ".")[0])
			if !ok || err != nil || number > oldestGlibc {
				t.Errorf("%s needs %s of %s", name, v.name, v.library)
			}
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		optional := 0
		for _, s := range symbols {
			if s.Name == "_dl_find_object" && s.Version == "" && elf.ST_BIND(s.Info) == elf.STB_WEAK {
				optional++
			}
		}
		if optional != 1 {
			t.Errorf("%s has %d references to _dl_find_object that are weak and of no version", name, optional)
		}
		c := exec.Command("/bin/true")
		c.Env = append(os.Environ(), preloadVariable+"="+path)
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s cannot be loaded: %v\n%s", name, err, out)
		}
	}
}
