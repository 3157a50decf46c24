package corpus

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"diagnose/replay/record"
)

// exported returns an archive of two recordings, one of them with a child, and its corpus.
func exported(t testing.TB) ([]byte, *Corpus) {
	t.Helper()
	c, from := create(t), t.TempDir()
	parent := filepath.Join(from, "parent")
	written(t, parent, 0, record.Outcome{Kind: record.OutcomeExec}, []record.Child{{Path: "children/1-1", PID: 1}})
	recording(t, filepath.Join(parent, "children/1-1"), 1)
	id := add(t, c, parent)
	diagnosed(t, c, id, "v1", "one", "stack")
	if _, err := c.Add(t.Context(), recording(t, filepath.Join(from, "r"), 2), AddOptions{Labels: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := c.Export(t.Context(), &b, Filter{}); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	return b.Bytes(), c
}

func TestExportAndImport(t *testing.T) {
	archive, from := exported(t)
	c := create(t)
	if got, err := c.Import(t.Context(), bytes.NewReader(archive), 0); err != nil || got != (Imported{Added: 2}) {
		t.Fatalf("%+v, %v", got, err)
	}
	want, got := whole(t, from), whole(t, c)
	for i := range want {
		w, g := want[i], got[i]
		if w.Imported || !g.Imported {
			t.Errorf("imported: %v, %v", w.Imported, g.Imported)
		}
		w.AddedAt, g.AddedAt, w.Imported = start, start, true
		a, _ := json.Marshal(w)
		b, _ := json.Marshal(g)
		if !bytes.Equal(a, b) || w.likeness != g.likeness {
			t.Errorf("%s\nbecame\n%s", a, b)
		}
	}
	if text, err := c.Report(t.Context(), want[1].ID); err != nil || string(text) != `{"case":"one"}` {
		t.Errorf("%s, %v", text, err)
	}
	if got, err := c.Import(t.Context(), bytes.NewReader(archive), 0); err != nil || got != (Imported{Existed: 2}) {
		t.Errorf("a second time: %+v, %v", got, err)
	}
	// From an archive that was cut off, complete entries are imported, and there is an error.
	for _, part := range []int{len(archive) / 4, len(archive) / 2, len(archive) - 20} {
		cut := create(t)
		if _, err := cut.Import(t.Context(), bytes.NewReader(archive[:part]), 0); err == nil {
			t.Errorf("%d of %d bytes are an archive", part, len(archive))
		}
		whole(t, cut)
		if got, err := cut.Import(t.Context(), bytes.NewReader(archive), 0); err != nil || got.Added+got.Existed != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// TestImportedBefore: in a corpus of an earlier version, entries that were diagnosed before
// they were added are known to be imported.
func TestImportedBefore(t *testing.T) {
	archive, _ := exported(t)
	c := create(t)
	if _, err := c.Import(t.Context(), bytes.NewReader(archive), 0); err != nil {
		t.Fatal(err)
	}
	own := add(t, c, recording(t, filepath.Join(t.TempDir(), "own"), 3))
	if err := c.Claim(t.Context(), own, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), own, Result{Diagnosis: Diagnosis{Version: "v1", Reason: "none", Started: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.db.Exec("ALTER TABLE diagnoses DROP COLUMN class; ALTER TABLE diagnoses DROP COLUMN estimate; ALTER TABLE entries DROP COLUMN imported; PRAGMA user_version = 2"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	var input *InputError
	if _, err := Open(t.Context(), c.Dir); !errors.As(err, &input) {
		t.Errorf("opened for reading: %v", err)
	}
	for _, e := range listed(t, opened(t, c.Dir), Filter{}) {
		if known := e.Diagnosis != nil && e.ID != own; e.Imported != known {
			t.Errorf("%+v", e)
		}
	}
}

// member is a file of an archive.
type member struct {
	header tar.Header
	text   []byte
}

func members(t testing.TB, archive []byte) []member {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var list []member
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, member{*h, text})
	}
}

func packedAgain(t testing.TB, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, m := range list {
		h := m.header
		h.PAXRecords, h.Format = nil, tar.FormatPAX
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(m.text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.text); err != nil && h.Typeflag == tar.TypeReg {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A hostile archive writes nothing outside of the corpus, and no entry that differs from its
// description.
func TestHostileArchives(t *testing.T) {
	archive, _ := exported(t)
	edit := func(text []byte, change func(*packed)) []byte {
		var p packed
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		change(&p)
		out, err := json.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// list[0] is the head, list[1] the first entry, list[2] its first file.
	named := func(name string) func([]member) []member {
		return func(list []member) []member {
			var id string
			list[1].text = edit(list[1].text, func(p *packed) {
				p.Files[0].Name = name
				id = identity(p.Entry.Kind, p.Files)
			})
			list[1].header.Name = id + "/" + entryName
			list[2].header.Name = id + "/" + filesName + "/" + name
			return list
		}
	}
	for name, change := range map[string]func([]member) []member{
		"a path that leads out":    named("../../../escaped"),
		"an absolute path":         named("/tmp/escaped"),
		"a path that is not clean": named("children/../escaped"),
		"control characters":       named("a\x1b[2J"),
		"a file through a link": func(list []member) []member {
			list[2].header.Typeflag, list[2].header.Linkname, list[2].header.Size = tar.TypeSymlink, "/etc/passwd", 0
			return list
		},
		"a hard link": func(list []member) []member {
			list[2].header.Typeflag, list[2].header.Linkname, list[2].header.Size = tar.TypeLink, "/etc/passwd", 0
			return list
		},
		"another content": func(list []member) []member {
			list[2].text[0] ^= 1
			return list
		},
		"another entry's name": func(list []member) []member {
			list[1].header.Name = strings.Repeat("0", 2*idBytes) + "/" + entryName
			return list
		},
		"a name that is a path": func(list []member) []member {
			list[1].header.Name = "../x/" + entryName
			return list
		},
		"a file too few":  func(list []member) []member { return append(list[:2:2], list[3:]...) },
		"a file too many": func(list []member) []member { return append(list[:3:3], list[2:]...) },
		"no head":         func(list []member) []member { return list[1:] },
		"a later form": func(list []member) []member {
			list[0].text = fmt.Appendf(nil, `{"version":%d}`, archiveVersion+1)
			return list
		},
		"an unknown kind": func(list []member) []member {
			list[1].text = edit(list[1].text, func(p *packed) { p.Entry.Kind = "program" })
			return list
		},
		"an evil label": func(list []member) []member {
			list[1].text = edit(list[1].text, func(p *packed) { p.Entry.Labels = map[string]string{"k": "\x1b[2J"} })
			return list
		},
		"a size that is not announced": func(list []member) []member {
			list[2].text = append(list[2].text, 'x')
			return list
		},
		"no JSON": func(list []member) []member {
			list[1].text = []byte("{")
			return list
		},
		"another's signature": func(list []member) []member {
			for i := range list {
				if strings.HasSuffix(list[i].header.Name, entryName) {
					list[i].text = edit(list[i].text, func(p *packed) {
						for j := range p.Signatures {
							p.Signatures[j].CauseLines = []string{"another"}
						}
					})
				}
			}
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := create(t)
			_, err := c.Import(t.Context(), bytes.NewReader(packedAgain(t, change(members(t, archive)))), 0)
			var input *InputError
			if !errors.As(err, &input) {
				t.Errorf("%v", err)
			}
			whole(t, c)
			for _, out := range []string{"/tmp/escaped", filepath.Join(c.Dir, "escaped"), filepath.Join(c.Dir, entriesName, "escaped"), filepath.Join(filepath.Dir(c.Dir), "escaped")} {
				if _, err := os.Lstat(out); err == nil {
					t.Errorf("%s was written", out)
				}
			}
		})
	}
	c := create(t)
	if _, err := c.Import(t.Context(), bytes.NewReader(archive), 1000); err == nil || !strings.Contains(err.Error(), "larger than allowed") {
		t.Errorf("a bound on sizes: %v", err)
	}
	if _, err := c.Import(t.Context(), strings.NewReader("no archive at all"), 0); err == nil {
		t.Error("taken")
	}
	if got, err := c.Import(t.Context(), bytes.NewReader(packedAgain(t, members(t, archive))), 0); err != nil || got.Added != 2 {
		t.Errorf("packed again without a change it is refused: %+v, %v", got, err)
	}
}
