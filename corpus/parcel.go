package corpus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"diagnose/replay/record"
)

// Parcel is an entry that is sent to another corpus: what an archive has of one entry, with the
// files where they are.
type Parcel struct {
	// Entry is the entry, without its diagnosis.
	Entry Entry
	// Description is the entry with its diagnoses, in the form of an archive's entry.json.
	Description []byte
	// Diagnoses counts the diagnoses in the description.
	Diagnoses int
	// Dir has the files, Files are their names, with slashes. Data that replays wrote to Dir later
	// is not named.
	Dir   string
	Files []string
}

// PackOptions say what of an entry is packed.
type PackOptions struct {
	// Bare leaves out the diagnoses.
	Bare bool
	// Labels are set in the parcel, in addition to the entry's.
	Labels map[string]string
}

// Pack returns an entry as a parcel. The files of a dropped entry cannot be packed.
func (c *Corpus) Pack(ctx context.Context, e *Entry, o PackOptions) (Parcel, error) {
	if e.DroppedAt != nil {
		return Parcel{}, inputf("corpus: entry %s: its files were removed by gc", e.ID)
	}
	if err := checkLabels(o.Labels); err != nil {
		return Parcel{}, err
	}
	p, err := c.pack(ctx, e, o.Bare)
	if err != nil {
		return Parcel{}, err
	}
	p.addLabels(o.Labels)
	for _, f := range p.Files {
		if info, err := os.Lstat(filepath.Join(c.EntryDir(e.ID), filepath.FromSlash(f.Name))); err != nil || info.Size() != f.Size {
			return Parcel{}, inputf("corpus: entry %s: %s is not as it was added: %w", e.ID, f.Name, cmp.Or(err, errors.New("it has another size")))
		}
	}
	return p.parcel(e.ID, c.EntryDir(e.ID))
}

func (p *packed) addLabels(labels map[string]string) {
	all := map[string]string{}
	for _, set := range []map[string]string{p.Entry.Labels, labels} {
		for k, v := range set {
			all[k] = v
		}
	}
	p.Entry.Labels = all
}

func (p *packed) parcel(id, dir string) (Parcel, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return Parcel{}, err
	}
	out := Parcel{Entry: p.Entry, Description: text, Diagnoses: len(p.Diagnoses), Dir: dir}
	out.Entry.ID = id
	for _, f := range p.Files {
		out.Files = append(out.Files, f.Name)
	}
	return out, nil
}

// PackRecording returns a recording that is in no corpus as a parcel. What Add refuses is refused.
func PackRecording(ctx context.Context, dir string, o PackOptions) (Parcel, error) {
	if err := checkLabels(o.Labels); err != nil {
		return Parcel{}, err
	}
	rec, err := record.Open(dir)
	if err != nil {
		return Parcel{}, &InputError{err}
	}
	live, unfinished := rec.Live(), rec.Manifest.Outcome.Kind == record.OutcomeRunning
	rec.Close()
	if live {
		return Parcel{}, inputf("it is still being recorded")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Parcel{}, err
	}
	defer root.Close()
	if err := checkCores(root, ".", unfinished, 0); err != nil {
		return Parcel{}, err
	}
	p := packed{Entry: Entry{Kind: KindRecording}}
	if err := describe(dir, &p.Entry); err != nil {
		return Parcel{}, err
	}
	p.Entry.AddedAt = p.Entry.FailedAt // a description does not depend on when it is made
	if p.Entry.Source, err = filepath.Abs(dir); err != nil {
		return Parcel{}, err
	}
	s := &summer{ctx: ctx, root: root}
	if err := s.tree(".", 0); err != nil {
		return Parcel{}, err
	}
	p.Files, p.Likeness = s.files, p.Entry.likeness
	p.Entry.ID = identity(KindRecording, p.Files) // which sorts them
	p.addLabels(o.Labels)
	return p.parcel(p.Entry.ID, dir)
}

// summer makes the list of a directory's files, as copier.tree does, without copying them.
type summer struct {
	ctx   context.Context
	root  *os.Root
	files []file
}

func (s *summer) tree(dir string, depth int) error {
	if depth > mostDepth {
		return inputf("%s: directories lie more than %d deep", dir, mostDepth)
	}
	list, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		return &InputError{err}
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case !storable(name) || len(s.files) == mostFiles:
			return inputf("%q: such a name is not taken, or there are more than %d files", name, mostFiles)
		case e.IsDir():
			err = s.tree(name, depth+1)
		case e.Type().IsRegular():
			err = s.one(name)
		default:
			err = inputf("%s is not a regular file (%v)", name, e.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *summer) one(name string) error {
	in, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return &InputError{err}
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, &cancelReader{s.ctx, in})
	if err != nil {
		return &InputError{err}
	}
	s.files = append(s.files, file{name, n, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// cancelReader ends with its context.
type cancelReader struct {
	ctx context.Context
	in  io.Reader
}

func (r *cancelReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(b)
}

// UnpackOptions say how a parcel is added.
type UnpackOptions struct {
	// ID is the name that the entry has to have.
	ID string
	// From says where the parcel came from. The entry's source begins with it.
	From string
	// Bytes is the maximum size of the entry, like AddOptions.Bytes.
	Bytes int64
}

// Unpack adds an entry of another corpus, whose description and files were fetched. It is checked
// like an entry of an archive, and marked as imported: the sender is not trusted. dir has the
// files, and nothing else.
func (c *Corpus) Unpack(ctx context.Context, description []byte, dir string, o UnpackOptions) (Added, error) {
	if c.owner == nil {
		return Added{}, errors.New("corpus: it is open for reading")
	}
	p, err := readDescription(description, o.ID)
	if err != nil {
		return Added{}, err
	}
	from, err := os.OpenRoot(dir)
	if err != nil {
		return Added{}, &InputError{err}
	}
	defer from.Close()
	stage, err := c.newStage()
	if err != nil {
		return Added{}, err
	}
	defer stage.discard()
	k := newCopier(ctx, o.Bytes)
	if err := k.tree(from, stage.root, ".", 0); err != nil {
		return Added{}, explain(err)
	}
	slices.SortFunc(k.files, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(k.files, p.Files) {
		return Added{}, inputf("its files are not those of its description")
	}
	e, err := p.entry(stage)
	if err != nil {
		return Added{}, err
	}
	e.Bytes, e.Source = k.onDisk, o.From+": "+e.Source
	added, err := c.keep(ctx, stage, &e, k.files)
	if err == nil {
		err = c.adopt(ctx, p)
	}
	return added, err
}

// CheckDescription checks what a description says of an entry, before its files are fetched, and
// returns their size together, holes included.
func CheckDescription(description []byte, id string) (bytes int64, err error) {
	p, err := readDescription(description, id)
	if err != nil {
		return 0, err
	}
	for _, f := range p.Files {
		bytes += f.Size
	}
	return bytes, nil
}

func readDescription(description []byte, id string) (*packed, error) {
	if len(description) > mostEntryJSON {
		return nil, inputf("its description has %d bytes", len(description))
	}
	if !isID(id) {
		return nil, inputf("%.80q is no name of an entry", id)
	}
	var p packed
	if err := json.Unmarshal(description, &p); err != nil {
		return nil, inputf("its description: %w", err)
	}
	return &p, p.check(id)
}
