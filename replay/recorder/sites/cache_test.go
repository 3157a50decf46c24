package sites

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newTestCache returns a cache with only a directory, as in a new process.
func newTestCache(dir string) *siteCache { return &siteCache{dir: func() string { return dir }} }

// settledLibc returns a copy of the C library that was written long enough ago.
func settledLibc(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(libcPath(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "libc.so")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func analysed(t *testing.T, c *siteCache, path string) *objectCode {
	t.Helper()
	identity, err := identityOf(path)
	if err != nil {
		t.Fatal(err)
	}
	code, err := c.analyse(t.Context(), path, identity)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func same(t *testing.T, what string, want, got *objectCode) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: nothing was found", what)
	} else if diff := cmp.Diff(want, got, cmp.AllowUnexported(objectCode{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestSiteCache(t *testing.T) {
	dir, path := t.TempDir(), libcPath(t)
	f, found := findSites(t, path)
	want := &objectCode{f.BuildID(), codeSegments(f), found}
	identity, err := identityOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if newTestCache(dir).lookup(identity) != nil {
		t.Fatal("an empty cache knows something")
	}
	same(t, "analysed", want, analysed(t, newTestCache(dir), path))
	same(t, "of the next process", want, newTestCache(dir).lookup(identity))
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 2 {
		t.Fatalf("%q, want a name for the contents and one for the file", names)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v, want a file for the user alone", info.Mode(), err)
		}
	}
}

// TestSiteCacheNeedsTheSameContents: a file with the build-id of another, and a file that was
// changed in place, are searched themselves.
func TestSiteCacheNeedsTheSameContents(t *testing.T) {
	dir, path := t.TempDir(), settledLibc(t)
	want := analysed(t, newTestCache(dir), libcPath(t))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	site := want.Sites[3]
	offset := int64(site.Resume) - syscallLen // replaced below, wherever the segment is
	for _, s := range want.segments {
		offset += int64(s.Offset) - int64(s.Vaddr)
		break
	}
	copy(text[offset:], "\x90\x90")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := analysed(t, newTestCache(dir), path); len(got.Sites) != len(want.Sites)-1 {
		t.Errorf("%d system calls in a library that has one less than %d", len(got.Sites), len(want.Sites))
	}
}

// TestSiteCacheSharesContents: a copy has the results of the original, and nothing is stored by
// the identity of a file that may still be changed within a tick of the clock.
func TestSiteCacheSharesContents(t *testing.T) {
	dir := t.TempDir()
	want := analysed(t, newTestCache(dir), libcPath(t))
	path := settledLibc(t)
	same(t, "a copy", want, analysed(t, newTestCache(dir), path))
	identity, err := identityOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(time.Unix(0, identity.CTime)) < settleTime && newTestCache(dir).lookup(identity) != nil {
		t.Error("a file that was written just now is known by its times")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "content-*")); len(names) != 1 {
		t.Errorf("%q, want one entry for the same contents", names)
	}
}

func TestSiteCacheIsPrivate(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	if dir := siteCacheDir(); !strings.HasPrefix(dir, home) {
		t.Fatalf("%q, want a directory in the user's cache", dir)
	}
	if err := os.Chmod(filepath.Join(home, "diagnose", "sites"), 0o777); err != nil {
		t.Fatal(err)
	}
	if dir := siteCacheDir(); dir != "" {
		t.Errorf("%s is used, which others can write to", dir)
	}
}

func TestDamagedCacheEntry(t *testing.T) {
	f, found := findSites(t, libcPath(t))
	want := &objectCode{f.BuildID(), codeSegments(f), found}
	b := encodeCode(want)
	got, err := decodeCode(b)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "decoded", want, got)
	for at := 0; at < len(b); at += 101 {
		damaged := append([]byte{}, b...)
		damaged[at] ^= 0x10
		if _, err := decodeCode(damaged); err == nil {
			t.Fatalf("damage at %d was not noticed", at)
		}
	}
	for n := range 200 {
		if _, err := decodeCode(b[:n]); err == nil {
			t.Fatalf("a file of %d bytes was taken", n)
		}
	}
}

func TestAnalysisStops(t *testing.T) {
	f, _ := findSites(t, libcPath(t))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := FindSites(ctx, f); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was stopped", err)
	}
}
