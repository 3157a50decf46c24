package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// file is a file of an entry, by its name in the entry, with slashes.
type file struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	// mostFiles, mostDepth and longestName are the limits of an entry: recordings have six
	// files for each process, one directory deeper for each fork of a fork.
	mostFiles, mostDepth = 1 << 16, 64
	longestName          = 1 << 12
	// mostBytes is the default limit of the size of an entry's files together, holes included:
	// the files are read completely.
	mostBytes = 64 << 30
)

// copier copies the files of an entry.
type copier struct {
	ctx       context.Context // a hole of any size is read completely
	files     []file
	bytesLeft int64  // bytes that it may still copy
	onDisk    int64  // bytes outside of holes
	buffer    []byte // all zeros between uses
}

func newCopier(ctx context.Context, maxBytes int64) *copier {
	if maxBytes <= 0 {
		maxBytes = mostBytes
	}
	return &copier{ctx: ctx, bytesLeft: maxBytes, buffer: make([]byte, 256<<10)}
}

// tree copies a directory, which may contain only directories and regular files.
func (k *copier) tree(from, to *os.Root, dir string, depth int) error {
	if depth > mostDepth {
		return inputf("%s: directories lie more than %d deep", dir, mostDepth)
	}
	f, err := from.Open(dir)
	if err != nil {
		return &InputError{err}
	}
	list, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return &InputError{err}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case !storable(name):
			return inputf("%q: such a name is not taken", name)
		case e.IsDir():
			if err := to.Mkdir(name, 0o700); err != nil {
				return err
			}
			if err := k.tree(from, to, name, depth+1); err != nil {
				return err
			}
		case e.Type().IsRegular():
			if err := k.one(from, to, name); err != nil {
				return err
			}
		default:
			return inputf("%s is not a regular file (%v)", name, e.Type())
		}
	}
	return syncRoot(to, dir)
}

// storable names can be printed and archived unchanged.
func storable(name string) bool {
	return len(name) <= longestName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' })
}

// one copies a file.
func (k *copier) one(from, to *os.Root, name string) error {
	in, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return &InputError{err}
	}
	defer in.Close()
	return k.copy(in, to, name)
}

func (k *copier) copy(in *os.File, to *os.Root, name string) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return inputf("%s is not a regular file", name)
	}
	if err := k.announce(name, info.Size()); err != nil {
		return err
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	if err := k.extents(in, out, info.Size(), sum); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, err := in.Stat()
	if err != nil {
		return err
	}
	if after.Size() != info.Size() || !after.ModTime().Equal(info.ModTime()) {
		return inputf("%s was changed while it was copied", name)
	}
	return k.finish(out, name, info.Size(), sum)
}

// announce counts a file of that size against the limits.
func (k *copier) announce(name string, size int64) error {
	if len(k.files) == mostFiles {
		return inputf("there are more than %d files", mostFiles)
	}
	if k.bytesLeft -= size; size < 0 || k.bytesLeft < 0 {
		return inputf("%s: with its %d bytes the entry is larger than allowed", name, size)
	}
	return nil
}

func (k *copier) finish(out *os.File, name string, size int64, sum hash.Hash) error {
	if err := out.Truncate(size); err != nil { // it may end with a hole
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	k.files = append(k.files, file{name, size, hex.EncodeToString(sum.Sum(nil))})
	return out.Close()
}

// extents copies data and leaves holes: the size of a core is some forty times its space on the
// disk.
func (k *copier) extents(in, out *os.File, size int64, sum hash.Hash) error {
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			data, err = size, nil
		} else if errors.Is(err, unix.EINVAL) {
			data, err = at, nil // the file system does not support holes
		}
		if err != nil {
			return &InputError{err}
		}
		data = min(data, size)
		if err := k.zeros(sum, data-at); err != nil {
			return err
		}
		if at = data; at == size {
			return nil
		}
		end, err := unix.Seek(int(in.Fd()), at, unix.SEEK_HOLE)
		if err != nil || end <= at || end > size {
			end = size
		}
		if err := k.span(io.NewSectionReader(in, at, end-at), out, at, end-at, sum); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// zeros adds n bytes of a hole to the digest.
func (k *copier) zeros(sum hash.Hash, n int64) error {
	clear(k.buffer)
	for ; n > 0; n -= int64(len(k.buffer)) {
		if err := k.ctx.Err(); err != nil {
			return err
		}
		sum.Write(k.buffer[:min(n, int64(len(k.buffer)))])
	}
	return nil
}

// span copies n bytes to an offset. Blocks of zeros become holes.
func (k *copier) span(in io.Reader, out *os.File, at, n int64, sum hash.Hash) error {
	for n > 0 {
		b := k.buffer[:min(n, int64(len(k.buffer)))]
		if err := k.ctx.Err(); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, b); err != nil {
			return &InputError{err}
		}
		sum.Write(b)
		if err := k.blocks(out, b, at); err != nil {
			return err
		}
		at, n = at+int64(len(b)), n-int64(len(b))
	}
	return nil
}

const block = 4096

func (k *copier) blocks(out *os.File, b []byte, at int64) error {
	for len(b) > 0 {
		n := 0
		for n < len(b) && !zero(b[n:min(n+block, len(b))]) {
			n += min(block, len(b)-n)
		}
		if n > 0 {
			if _, err := out.WriteAt(b[:n], at); err != nil {
				return err
			}
			k.onDisk += int64(n)
		} else {
			n = min(block, len(b))
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// identity returns the entry's name: the digest of its files, in the order of their names.
func identity(kind string, files []file) string {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", kind)
	for _, f := range files {
		fmt.Fprintf(sum, "%q %d %s\n", f.Name, f.Size, f.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)[:idBytes])
}

const idBytes = 12

// syncBelow syncs all directories of files.
func (s *stage) syncBelow(files []file) error {
	done := map[string]bool{".": true} // keep syncs it
	for _, f := range files {
		for dir := path.Dir(f.Name); !done[dir]; dir = path.Dir(dir) {
			if err := syncRoot(s.root, dir); err != nil {
				return err
			}
			done[dir] = true
		}
	}
	return nil
}

func syncRoot(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// receive writes a file from a stream.
func (k *copier) receive(in io.Reader, s *stage, f file) error {
	out, err := s.root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	if err := k.span(in, out, 0, f.Size, sum); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return k.finish(out, f.Name, f.Size, sum)
}

// openBelow opens a file in a directory. It fails if a symbolic link leads out of the
// directory.
func openBelow(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}
