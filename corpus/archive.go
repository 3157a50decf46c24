package corpus

import (
	"archive/tar"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"diagnose/evidence/signature"
	"diagnose/image/collected"
)

// An archive is a tar file, compressed by zstd. It begins with archiveHead. Then each entry has
// ID/entry.json, in the form of packed, and ID/files/NAME for each of the files that entry.json
// lists, in its order.

const (
	headName  = "diagnose-corpus.json"
	entryName = "entry.json"
	filesName = "files"
	// archiveVersion is the version that is written, and the newest that is read.
	archiveVersion = 1
	// mostEntryJSON is the maximum size of entry.json, which contains the reports.
	mostEntryJSON = mostReport
)

type archiveHead struct {
	Version int `json:"version"`
}

// packed is an entry in an archive.
type packed struct {
	Entry      Entry                 `json:"entry"`
	Likeness   string                `json:"likeness"`
	Files      []file                `json:"files"`
	Diagnoses  []Diagnosis           `json:"diagnoses"`
	Signatures []signature.Signature `json:"signatures"`
	// Report is the report of the last diagnosis that has one.
	Report json.RawMessage `json:"report,omitempty"`
}

// Export writes entries to an archive, in the order of their failures, without those whose
// files were dropped. It returns how many it wrote.
func (c *Corpus) Export(ctx context.Context, w io.Writer, f Filter) (int, error) {
	f.Dropped = false
	entries, err := c.List(ctx, f)
	if err != nil {
		return 0, err
	}
	z, err := zstd.NewWriter(w)
	if err != nil {
		return 0, err
	}
	t := tar.NewWriter(z)
	if err := writeJSON(t, headName, archiveHead{archiveVersion}); err != nil {
		return 0, err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := c.exportEntry(ctx, t, &entries[i]); err != nil {
			return 0, fmt.Errorf("corpus: entry %s: %w", entries[i].ID, err)
		}
	}
	if err := t.Close(); err != nil {
		return 0, err
	}
	return len(entries), z.Close()
}

func (c *Corpus) exportEntry(ctx context.Context, t *tar.Writer, e *Entry) error {
	p, err := c.pack(ctx, e, false)
	if err != nil {
		return err
	}
	if err := writeJSON(t, e.ID+"/"+entryName, p); err != nil {
		return err
	}
	for _, f := range p.Files {
		if err := c.exportFile(t, e.ID, f); err != nil {
			return err
		}
	}
	return nil
}

// pack describes an entry. If bare, it leaves out the diagnoses.
func (c *Corpus) pack(ctx context.Context, e *Entry, bare bool) (*packed, error) {
	p := &packed{Entry: *e, Likeness: e.likeness}
	p.Entry.Diagnosis = nil
	var err error
	if p.Files, err = c.filesOf(ctx, e.ID); err != nil || bare {
		return p, err
	}
	if p.Diagnoses, err = c.Diagnoses(ctx, e.ID); err != nil {
		return nil, err
	}
	for _, d := range p.Diagnoses {
		s := signature.Signature{Stack: d.Stack, Cause: d.Cause}
		if s.StackLines, err = c.linesOf(ctx, d.Stack); err != nil {
			return nil, err
		}
		if s.CauseLines, err = c.linesOf(ctx, d.Cause); err != nil {
			return nil, err
		}
		p.Signatures = append(p.Signatures, s)
	}
	var input *InputError
	if p.Report, err = c.Report(ctx, e.ID); err != nil && !errors.As(err, &input) {
		return nil, err
	}
	return p, nil
}

func (d *diagnoses) linesOf(ctx context.Context, digest string) ([]string, error) {
	if digest == "" {
		return nil, nil
	}
	return d.Lines(ctx, digest)
}

func (l *entries) filesOf(ctx context.Context, id string) ([]file, error) {
	rows, err := l.store.db.QueryContext(ctx, "SELECT name, size, sha256 FROM files WHERE entry = ? ORDER BY name", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []file
	for rows.Next() {
		var f file
		if err := rows.Scan(&f.Name, &f.Size, &f.SHA256); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, rows.Err()
}

// exportFile writes a file as it was added. Data that replays wrote to the directory later is
// not part of the failure.
func (c *Corpus) exportFile(t *tar.Writer, id string, f file) error {
	in, err := openBelow(c.EntryDir(id), f.Name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := t.WriteHeader(&tar.Header{Name: id + "/" + filesName + "/" + f.Name, Mode: 0o600, Size: f.Size, Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
		return err
	}
	if n, err := io.Copy(t, io.LimitReader(in, f.Size)); err != nil || n != f.Size {
		return errors.Join(err, fmt.Errorf("%s has %d of its %d bytes", f.Name, n, f.Size))
	}
	return nil
}

func writeJSON(t *tar.Writer, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = t.Write(text)
	return err
}

// Imported is the result of an import.
type Imported struct {
	// Added counts the new entries, Existed those that already existed.
	Added   int `json:"added"`
	Existed int `json:"existed"`
}

// Import adds the entries of an archive, one after the other. If an error or a kill interrupts
// it, another import of the archive completes it. Import trusts no statement of the archive
// that it has not compared with the files. maxBytes is the maximum size of an entry, like
// AddOptions.Bytes.
func (c *Corpus) Import(ctx context.Context, r io.Reader, maxBytes int64) (Imported, error) {
	var done Imported
	if c.owner == nil {
		return done, errors.New("corpus: it is open for reading")
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return done, inputf("the archive: %w", err)
	}
	defer z.Close()
	t := &archiveReader{tar.NewReader(z)}
	var head archiveHead
	err = readJSON(t, headName, &head, 1<<10)
	if ctx.Err() != nil {
		return done, context.Cause(ctx)
	}
	if err != nil {
		return done, inputf("it is no archive of a corpus: %w", err)
	}
	if head.Version < 1 || head.Version > archiveVersion {
		return done, inputf("the archive has the form %d, and this diagnose knows %d", head.Version, archiveVersion)
	}
	for {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, inputf("the archive: %w", err)
		}
		added, err := c.importEntry(ctx, t, h, maxBytes)
		if err != nil {
			return done, fmt.Errorf("the archive: %.200q: %w", h.Name, explain(err))
		}
		if added.Existed {
			done.Existed++
		} else {
			done.Added++
		}
	}
}

func (c *Corpus) importEntry(ctx context.Context, t *archiveReader, h *tar.Header, maxBytes int64) (Added, error) {
	id, found := strings.CutSuffix(h.Name, "/"+entryName)
	if !found || !isID(id) {
		return Added{}, inputf("an entry is expected here")
	}
	var p packed
	if err := decode(t, h, &p, mostEntryJSON); err != nil {
		return Added{}, err
	}
	if err := p.check(id); err != nil {
		return Added{}, err
	}
	stage, err := c.newStage()
	if err != nil {
		return Added{}, err
	}
	defer stage.discard()
	k := newCopier(ctx, maxBytes)
	for _, f := range p.Files {
		if err := k.unpack(t, stage, id, f); err != nil {
			return Added{}, err
		}
	}
	if err := stage.syncBelow(p.Files); err != nil {
		return Added{}, err
	}
	e, err := p.entry(stage)
	if err != nil {
		return Added{}, err
	}
	e.Bytes = k.onDisk
	added, err := c.keep(ctx, stage, &e, k.files)
	if err == nil {
		err = c.adopt(ctx, &p)
	}
	return added, err
}

// check checks that an entry is the one that its name says, before any of it is unpacked.
func (p *packed) check(id string) error {
	if p.Entry.Kind != KindRecording && p.Entry.Kind != KindCore {
		return inputf("an entry of the kind %.40q", p.Entry.Kind)
	}
	if len(p.Files) > mostFiles {
		return inputf("there are more than %d files", mostFiles)
	}
	for i, f := range p.Files {
		if !filepath.IsLocal(f.Name) || filepath.Clean(f.Name) != f.Name || !storable(f.Name) || strings.Count(f.Name, "/") > mostDepth ||
			i > 0 && p.Files[i-1].Name >= f.Name {
			return inputf("%.200q: such a name is not taken", f.Name)
		}
	}
	if got := identity(p.Entry.Kind, p.Files); got != id {
		return inputf("its files are those of the entry %s", got)
	}
	if !p.signed() {
		return inputf("the signatures are not those of the diagnoses")
	}
	return checkLabels(p.Entry.Labels)
}

// signed reports whether the signatures match their lines and the diagnoses.
func (p *packed) signed() bool {
	for i, s := range p.Signatures {
		want := signature.Restore(s.StackLines, s.CauseLines)
		if i >= len(p.Diagnoses) || want.Stack != s.Stack || want.Cause != s.Cause || p.Diagnoses[i].Stack != s.Stack || p.Diagnoses[i].Cause != s.Cause {
			return false
		}
	}
	return len(p.Signatures) == len(p.Diagnoses)
}

// unpack writes a file, which must be the next one of the archive, with the announced name,
// size and digest.
func (k *copier) unpack(t *archiveReader, s *stage, id string, f file) error {
	h, err := t.Next()
	if err != nil {
		return inputf("%s is missing: %w", f.Name, err)
	}
	if h.Name != id+"/"+filesName+"/"+f.Name || h.Typeflag != tar.TypeReg || h.Size != f.Size {
		return inputf("%s is expected, and there is %.200q", f.Name, h.Name)
	}
	if err := k.announce(f.Name, f.Size); err != nil {
		return err
	}
	if dir := filepath.Dir(f.Name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := k.receive(t, s, f); err != nil {
		return err
	}
	if got := k.files[len(k.files)-1]; got != f {
		return inputf("%s is not the announced file: its digest is %s", f.Name, got.SHA256)
	}
	return nil
}

// entry derives the entry's fields from the files, and takes the rest from the archive.
func (p *packed) entry(s *stage) (Entry, error) {
	e := Entry{Kind: p.Entry.Kind, Source: p.Entry.Source, Imported: true, Labels: p.Entry.Labels, AddedAt: time.Now(), FailedAt: p.Entry.FailedAt}
	if e.Kind == KindRecording {
		return e, describe(s.dir, &e)
	}
	switch {
	case slices.ContainsFunc(p.Files, func(f file) bool { return f.Name == collected.FactsName }):
		if err := checkCollected(p.Files); err != nil {
			return e, err
		}
		if err := describeCollected(s.dir, &e); err != nil {
			return e, err
		}
	case len(p.Files) != 1 || p.Files[0].Name != coreName:
		return e, inputf("a core has one file, %s", coreName)
	default:
		e.Program, e.BuildID, e.Outcome, e.Ended, e.likeness = p.Entry.Program, p.Entry.BuildID, p.Entry.Outcome, p.Entry.Ended, p.Likeness
	}
	in, err := openBelow(s.dir, coreName)
	if err != nil {
		return e, err
	}
	defer in.Close()
	return e, isCore(in)
}

// adopt stores diagnoses of versions for which the corpus has none.
func (d *diagnoses) adopt(ctx context.Context, p *packed) error {
	id := identity(p.Entry.Kind, p.Files)
	report, err := pack(p.Report)
	if err != nil {
		return err
	}
	return d.store.change(ctx, func(tx *sql.Tx) error {
		for i := range p.Diagnoses {
			var text []byte
			if i == len(p.Diagnoses)-1 {
				text = report
			}
			if err := insertDiagnosis(ctx, tx, id, &p.Diagnoses[i], text); err != nil {
				return err
			}
			if err := insertSignature(ctx, tx, p.Signatures[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// isID: names of entries have a form that no path can have.
func isID(id string) bool {
	return len(id) == 2*idBytes && strings.Trim(id, "0123456789abcdef") == ""
}

// archiveReader reads an archive. An error of a read is the archive's fault, in contrast to an
// error of a write.
type archiveReader struct{ tar *tar.Reader }

func (a *archiveReader) Next() (*tar.Header, error) {
	h, err := a.tar.Next()
	return h, unreadable(err)
}

func (a *archiveReader) Read(p []byte) (int, error) {
	n, err := a.tar.Read(p)
	return n, unreadable(err)
}

// unreadable makes a reader's error an *InputError, except for the end.
func unreadable(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &InputError{err}
}

func readJSON(t *archiveReader, name string, value any, most int64) error {
	h, err := t.Next()
	if err != nil {
		return err
	}
	if h.Name != name {
		return fmt.Errorf("it begins with %.200q", h.Name)
	}
	return decode(t, h, value, most)
}

func decode(t *archiveReader, h *tar.Header, value any, most int64) error {
	if h.Typeflag != tar.TypeReg || h.Size < 0 || h.Size > most {
		return inputf("it is no file, or has %d bytes", h.Size)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(t, most)); err != nil {
		return inputf("%w", err)
	}
	if err := json.Unmarshal(b.Bytes(), value); err != nil {
		return inputf("%w", err)
	}
	return nil
}
