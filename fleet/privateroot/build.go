package privateroot

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/image/object"
)

// MissingError says which files neither the recordings bring along nor this machine has.
type MissingError struct{ Needs []Need }

func (e *MissingError) Error() string {
	var list []string
	for i, n := range e.Needs {
		if i == 3 {
			list = append(list, fmt.Sprintf("%d more", len(e.Needs)-i))
			break
		}
		text := n.Path
		if n.BuildID != "" {
			text += " (build-id " + n.BuildID + ")"
		}
		list = append(list, text)
	}
	return "private root: missing here: " + strings.Join(list, ", ") + "; record with --portable to bring them along"
}

// Root is a root directory for the replays of some recordings.
type Root struct {
	// Dir is the directory.
	Dir string
	// Shown and Writable are directories and files of this machine that the command sees at the same
	// paths: the recordings, a directory for its output. No others.
	Shown, Writable []string
	// Tool is the program of this tool that runs inside; empty: the one that runs now.
	Tool string
}

// Sources are where the files of a root come from.
type Sources struct {
	// Recordings are the recordings to be replayed.
	Recordings []string
	// Objects are files of this machine that may be at other paths than on the recorded one, such
	// as the library of the recorder.
	Objects []string
}

// Build makes a root in a directory that is empty or does not exist yet, with all files that the
// recordings need. A file that a recording brings along must have its digest. Others are this
// machine's: an object with the recorded build-id, at the recorded path or among the Objects, or
// another file with the recorded size and time. A MissingError lists the files of which there is
// none.
func Build(ctx context.Context, dir string, from Sources) (*Root, error) {
	p, err := planFor(ctx, from.Recordings)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("private root: %w", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		return nil, errors.Join(fmt.Errorf("private root: %s is not empty", dir), err)
	}
	inside, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("private root: %w", err)
	}
	defer inside.Close()
	b := &builder{plan: p, root: inside, objects: map[string]string{}}
	for _, name := range from.Objects {
		if id := object.BuildIDOf(name); id != "" {
			b.objects[id] = name
		}
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	return &Root{Dir: dir, Shown: slices.Clone(from.Recordings)}, nil
}

// builder makes the files of a root. It works through an os.Root: no name in a recording leads out
// of it.
type builder struct {
	*plan
	root    *os.Root
	objects map[string]string // files of this machine at other paths, by build-id
	missing []Need
}

func (b *builder) build(ctx context.Context) error {
	b.merge()
	for _, n := range b.needs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.file(n); err != nil {
			return fmt.Errorf("private root: %s: %w", n.Path, err)
		}
	}
	if len(b.missing) > 0 {
		slices.SortFunc(b.missing, func(x, y Need) int { return strings.Compare(x.Path, y.Path) })
		return &MissingError{b.missing}
	}
	for name := range b.code {
		if err := b.links(name); err != nil {
			return fmt.Errorf("private root: %s: %w", name, err)
		}
	}
	for name, program := range b.names {
		if err := b.link(name, program); err != nil {
			return fmt.Errorf("private root: %w", err)
		}
	}
	for name, text := range b.scripts {
		if err := b.script(name, text); err != nil {
			return fmt.Errorf("private root: %w", err)
		}
	}
	for _, d := range append([]string{"/proc", "/dev", "/tmp", inside + "/old", temporary}, b.directories...) {
		if err := b.directory(d); err != nil {
			return fmt.Errorf("private root: %w", err)
		}
	}
	return nil
}

// local is a path of the root for os.Root.
func local(name string) string {
	if name == "/" {
		return "."
	}
	return strings.TrimPrefix(name, "/")
}

func (b *builder) directory(name string) error { return b.root.MkdirAll(local(name), 0o755) }

// merge makes /lib and its like links into /usr, as the distributions have them that have merged
// both, unless the recorded machine had files there. The recorded paths have such links resolved.
func (b *builder) merge() {
	for _, d := range []string{"lib", "lib32", "lib64", "libx32", "bin", "sbin"} {
		own := false
		for name := range b.needs {
			own = own || strings.HasPrefix(name, "/"+d+"/")
		}
		if !own && b.directory("/usr/"+d) == nil {
			b.root.Symlink("usr/"+d, d)
		}
	}
}

// file copies a file into the root, with its recorded time.
func (b *builder) file(n *Need) error {
	from, err := b.source(n)
	if err != nil || from == nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	if err := b.directory(path.Dir(n.Path)); err != nil {
		return err
	}
	to, err := b.root.OpenFile(local(n.Path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, h), from)
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); n.Stored != "" && sum != n.SHA256 {
		return fmt.Errorf("what the recording brings along has the SHA-256 %s, not %s", sum, n.SHA256)
	}
	if n.MTimeNS == 0 {
		return nil
	}
	at := time.Unix(0, n.MTimeNS)
	return b.root.Chtimes(local(n.Path), at, at)
}

// source opens the file to copy; nil: it is missing, and noted.
func (b *builder) source(n *Need) (*os.File, error) {
	if n.Stored != "" {
		return os.OpenFile(n.Stored, os.O_RDONLY|noFollow, 0)
	}
	info, err := os.Stat(n.Path)
	here := err == nil && info.Mode().IsRegular()
	switch {
	case here && n.Size != 0 && info.Size() == n.Size && info.ModTime().UnixNano() == n.MTimeNS,
		here && n.BuildID != "" && object.BuildIDOf(n.Path) == n.BuildID:
		return os.Open(n.Path)
	case n.BuildID != "" && b.objects[n.BuildID] != "":
		return os.Open(b.objects[n.BuildID])
	}
	b.missing = append(b.missing, *n)
	return nil, nil
}

// links makes the names by which programs ask for an object: its DT_SONAME in the same
// directory, and for a program the path of its dynamic linker. The recording has only the resolved paths.
func (b *builder) links(name string) error {
	if b.needs[name] == nil {
		return nil
	}
	file, err := b.root.Open(local(name))
	if err != nil {
		return err
	}
	defer file.Close()
	soname, interpreter := namesOf(file)
	if soname != "" && soname != path.Base(name) {
		if err := b.link(path.Join(path.Dir(name), soname), name); err != nil {
			return err
		}
	}
	if interpreter != "" && inRoot(interpreter) {
		for linker := range b.linkers {
			if b.needs[linker] != nil {
				return b.link(interpreter, linker)
			}
		}
	}
	return nil
}

// maxName bounds the length of an object's names: PATH_MAX.
const maxName = 4096

// namesOf returns an object's DT_SONAME and PT_INTERP; empty: it has none, or none that is a name.
func namesOf(file io.ReaderAt) (soname, interpreter string) {
	f, err := elf.NewFile(file)
	if err != nil {
		return "", ""
	}
	if list, err := f.DynString(elf.DT_SONAME); err == nil && len(list) == 1 && len(list[0]) <= maxName && filepath.IsLocal(list[0]) && path.Base(list[0]) == list[0] {
		soname = list[0]
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz == 0 || p.Filesz > maxName {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err == nil {
			interpreter = strings.TrimRight(string(text), "\x00")
		}
	}
	return soname, interpreter
}

// link makes a name lead to a file of the root, unless there is a file of that name.
func (b *builder) link(name, to string) error {
	if _, err := b.root.Stat(local(name)); err == nil {
		return nil
	}
	if err := b.directory(path.Dir(name)); err != nil {
		return err
	}
	target := to // seen from inside
	if path.Dir(name) == path.Dir(to) {
		target = path.Base(to)
	}
	err := b.root.Symlink(target, local(name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// script writes what the kernel reads of a script.
func (b *builder) script(name, text string) error {
	if err := b.directory(path.Dir(name)); err != nil {
		return err
	}
	return b.root.WriteFile(local(name), []byte(text), 0o755)
}
