package record

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCachedSites(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	f, want := findSites(t, libcPath(t))
	path := siteCachePath(f.BuildID())
	check := func(what string) {
		t.Helper()
		got, err := CachedSites(f)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	check("nothing cached")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := decodeSites(b); !ok || len(got.Sites) != len(want.Sites) {
		t.Fatalf("cached: %d sites, %v", len(got.Sites), ok)
	}
	check("cached")

	for at := 0; at < len(b); at += 101 {
		damaged := append([]byte{}, b...)
		damaged[at] ^= 0x10
		if _, ok := decodeSites(damaged); ok {
			t.Fatalf("damage at %d was not noticed", at)
		}
	}
	for n := range 200 {
		if _, ok := decodeSites(b[:n]); ok {
			t.Fatalf("a file of %d bytes was taken", n)
		}
	}
	moved := want
	moved.Sites = append([]Site{}, want.Sites...)
	moved.Sites[3].At++
	moved.Sites[3].Resume++
	if err := os.WriteFile(path, encodeSites(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	check("cached for another object")
}
