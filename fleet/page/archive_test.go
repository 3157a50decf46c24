package page

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/corpus"
)

// kept is a corpus with one real core, and its name.
func kept(t *testing.T) (*corpus.Corpus, string) {
	t.Helper()
	c, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	core := filepath.Join(t.TempDir(), "core")
	text := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00"), make([]byte, 1<<20)...)
	if err := os.WriteFile(core, text, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := c.Add(t.Context(), core, corpus.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c, a.ID
}

// A download is an archive that another corpus imports.
func TestArchive(t *testing.T) {
	c, id := kept(t)
	s := served(t, c, "")
	w := ask(s, "GET", "/failure/"+id+"/archive", nil, nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != `attachment; filename="failure-`+id[:12]+`.tar.zst"` {
		t.Fatalf("status %d, %v", w.Code, w.Header())
	}
	other, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if done, err := other.Import(t.Context(), bytes.NewReader(w.Body.Bytes()), 1<<30); err != nil || done.Added != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if e, err := other.Find(t.Context(), id); err != nil || !e.Imported {
		t.Errorf("%+v, %v", e, err)
	}
	for range mostDownloads {
		s.downloads <- struct{}{}
	}
	if w := ask(s, "GET", "/failure/"+id+"/archive", nil, nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one download too many: status %d", w.Code)
	}
}

// A failure whose files are damaged is cut off, or refused, but is no whole archive.
func TestDamagedArchive(t *testing.T) {
	c, id := kept(t)
	if err := os.Truncate(filepath.Join(c.EntryDir(id), "core"), 100); err != nil {
		t.Fatal(err)
	}
	s := served(t, c, "")
	defer func() {
		if r := recover(); r != nil && r != http.ErrAbortHandler {
			t.Error(r)
		}
	}()
	if w := ask(s, "GET", "/failure/"+id+"/archive", nil, nil); w.Code == http.StatusOK {
		t.Error("it was sent as whole")
	} else if !strings.Contains(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("an error as %s", w.Header())
	}
}
