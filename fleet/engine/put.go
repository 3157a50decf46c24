package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Progress says how far PutTree or GetTree is.
type Progress struct {
	// Files and Bytes are done, of AllFiles and AllBytes. Bytes are those of data, without holes.
	Files, AllFiles int
	Bytes, AllBytes int64
	// Chunks counts the chunks, NewChunks those that the engine did not have. Sent is the number of
	// their bytes, compressed.
	Chunks, NewChunks int
	Sent              int64
}

// PutTree stores the files below a directory by their content, and returns the reference of the
// tree. Parts that the engine has are not sent again: an interrupted call resumes when it is
// repeated. The tree is there as a whole or not at all. Empty directories are not part of it.
// Files that are not regular, or that change, are an *InputError. note may be nil.
func (e *Engine) PutTree(ctx context.Context, dir string, note func(Progress)) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("engine: %w", &InputError{err})
	}
	defer root.Close()
	var names []string
	if err := listFiles(root, ".", &names); err != nil {
		return "", fmt.Errorf("engine: %s: %w", dir, err)
	}
	return e.putFiles(ctx, root, names, true, note)
}

// PutFiles stores the named files below a directory, like PutTree, but does not store which of
// them are executable: the reference depends on the names and contents alone.
func (e *Engine) PutFiles(ctx context.Context, dir string, names []string, note func(Progress)) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("engine: %w", &InputError{err})
	}
	defer root.Close()
	return e.putFiles(ctx, root, slices.Clone(names), false, note)
}

func (e *Engine) putFiles(ctx context.Context, root *os.Root, names []string, modes bool, note func(Progress)) (string, error) {
	reference, err := e.put(ctx, root, names, modes, note)
	if err != nil {
		return "", fmt.Errorf("engine: %s: %w", root.Name(), err)
	}
	return reference, nil
}

// listFiles collects the names of regular files. Anything else but a directory is an error.
func listFiles(root *os.Root, dir string, names *[]string) error {
	f, err := root.Open(dir)
	if err != nil {
		return &InputError{err}
	}
	list, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return &InputError{err}
	}
	for _, entry := range list {
		name := path.Join(dir, entry.Name())
		switch {
		case strings.Count(name, "/") >= mostDepth || len(*names) >= mostFiles:
			return inputf("it has more than %d files, or directories more than %d deep", mostFiles, mostDepth)
		case entry.IsDir():
			err = listFiles(root, name, names)
		case entry.Type().IsRegular():
			*names = append(*names, name)
		default:
			err = inputf("%.200q is not a regular file (%v)", name, entry.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) put(ctx context.Context, root *os.Root, names []string, modes bool, note func(Progress)) (string, error) {
	if most := e.conn.MaxPayload(); most < leastPayload {
		return "", inputf("the engine takes messages of %d bytes, and max_payload has to be %d or more", most, leastPayload)
	}
	chunks, err := e.chunkBucket(ctx, true)
	if err != nil {
		return "", err
	}
	trees, err := e.treeBucket(ctx, true)
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	p := newPutter(ctx, e, chunks, note)
	p.modes = modes
	list, err := p.files(root, names)
	if err != nil {
		return "", p.fail(err)
	}
	// The list of a tree is stored as its files are: two recordings of a program have similar ones.
	sum := digest(sha256.Sum256(list))
	parts, err := p.stream(bytes.NewReader(list))
	if err != nil {
		return "", p.fail(err)
	}
	if err := p.group.Wait(); err != nil {
		return "", err
	}
	var head bytes.Buffer
	head.WriteString(listHead)
	appendChunks(&head, parts)
	_, err = e.create(ctx, trees, sum.String(), head.Bytes())
	return sum.String(), err
}

// putter sends the chunks of a tree.
type putter struct {
	engine *Engine
	chunks *bucket
	group  *errgroup.Group
	ctx    context.Context // of the group
	cutter *cutter
	seen   map[digest]bool
	modes  bool // note which files are executable

	mutex    sync.Mutex
	progress Progress
	note     func(Progress)
}

func newPutter(ctx context.Context, e *Engine, chunks *bucket, note func(Progress)) *putter {
	if note == nil {
		note = func(Progress) {}
	}
	p := &putter{engine: e, chunks: chunks, cutter: newCutter(), seen: map[digest]bool{}, note: note}
	p.group, p.ctx = errgroup.WithContext(ctx)
	p.group.SetLimit(atOnce)
	return p
}

// fail waits for the chunks that are being sent. Their error is the reason if there is one, because it ends the
// context that the rest runs in.
func (p *putter) fail(err error) error {
	if sent := p.group.Wait(); sent != nil && errors.Is(err, context.Canceled) {
		return sent
	}
	return err
}

// files stores files and returns their list.
func (p *putter) files(root *os.Root, names []string) ([]byte, error) {
	if len(names) > mostFiles {
		return nil, inputf("there are more than %d files", mostFiles)
	}
	p.progress.AllFiles = len(names)
	total := int64(0)
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
		info, err := root.Lstat(name)
		if err != nil {
			return nil, &InputError{err}
		}
		if total += info.Size(); total > mostBytes {
			return nil, inputf("the files have more than %d bytes", int64(mostBytes))
		}
		p.progress.AllBytes += onDisk(info)
	}
	var done tree
	for _, name := range names {
		f, err := p.file(root, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		done.files = append(done.files, f)
		p.count(func(g *Progress) { g.Files++ })
	}
	if err := done.check(); err != nil {
		return nil, err
	}
	list := done.encode()
	if len(list) > mostList {
		return nil, inputf("its list has %d bytes, and %d are allowed", len(list), mostList)
	}
	return list, nil
}

// onDisk is about how much data a file has.
func onDisk(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), s.Blocks*512)
	}
	return info.Size()
}

func (p *putter) count(change func(*Progress)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	change(&p.progress)
	p.note(p.progress)
}

// file stores a file.
func (p *putter) file(root *os.Root, name string) (treeFile, error) {
	in, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return treeFile{}, &InputError{err}
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return treeFile{}, err
	}
	if !info.Mode().IsRegular() {
		return treeFile{}, inputf("it is not a regular file (%v)", info.Mode().Type())
	}
	r := &extentReader{ctx: p.ctx, file: in, size: info.Size(), sum: sha256.New()}
	chunks, err := p.stream(r)
	if err != nil {
		return treeFile{}, err
	}
	after, err := in.Stat()
	if err != nil {
		return treeFile{}, err
	}
	if after.Size() != info.Size() || !after.ModTime().Equal(info.ModTime()) {
		return treeFile{}, inputf("it was changed while it was read")
	}
	f := treeFile{name: name, executable: p.modes && info.Mode()&0o100 != 0, size: info.Size(), extents: r.extents, chunks: chunks}
	if len(f.extents) == 1 && !f.extents[0].hole {
		f.extents = nil
	}
	r.sum.Sum(f.sum[:0])
	return f, nil
}

// stream cuts a stream into chunks, and sends those that are new in this tree.
func (p *putter) stream(in io.Reader) ([]chunk, error) {
	var list []chunk
	p.cutter.reset(in)
	for {
		data, err := p.cutter.next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if err := p.ctx.Err(); err != nil {
			return nil, err
		}
		c := chunk{len(data), sha256.Sum256(data)}
		if list = append(list, c); p.progress.Chunks == mostChunks {
			return nil, inputf("there are more than %d chunks", mostChunks)
		}
		p.count(func(g *Progress) { g.Chunks++; g.Bytes += int64(c.size) })
		if p.seen[c.sum] {
			continue
		}
		p.seen[c.sum] = true
		data = bytes.Clone(data)
		p.group.Go(func() error { return p.send(c, data) })
	}
}

// send stores a chunk unless the engine has it.
func (p *putter) send(c chunk, data []byte) error {
	key := c.sum.String()
	if c.size > tinyChunk {
		if there, err := p.engine.has(p.ctx, p.chunks, key); there || err != nil {
			return err
		}
	}
	value := compressor().EncodeAll(data, nil)
	if created, err := p.engine.create(p.ctx, p.chunks, key, value); !created {
		return err
	}
	p.count(func(g *Progress) { g.NewChunks++; g.Sent += int64(len(value)) })
	return nil
}

// segment is what a hole consists of: 64 KiB at a multiple of it, all zeros, or the end of a file.
// So the list of a tree depends on the content, and not on which holes a file system has.
const segment = 64 << 10

// extentReader reads the data of a file, and notes where it has holes. sum is the digest of all
// of it, holes included.
type extentReader struct {
	ctx     context.Context
	file    *os.File
	size    int64
	sum     hash.Hash
	extents []extent

	at     int64 // where the next segment begins
	data   int64 // no byte from at to here is other than zero, by the file system
	buffer [segment]byte
	left   []byte // of the segment in buffer
}

func (r *extentReader) Read(b []byte) (int, error) {
	for len(r.left) == 0 {
		if r.at == r.size {
			return 0, io.EOF
		}
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// next reads a segment, or passes one that the file system has as a hole.
func (r *extentReader) next() error {
	n := min(segment, r.size-r.at)
	if err := r.seek(); err != nil {
		return err
	}
	if r.at+n <= r.data {
		r.sum.Write(zeros[:n])
		r.add(true, n)
		return nil
	}
	b := r.buffer[:n]
	if _, err := r.file.ReadAt(b, r.at); errors.Is(err, io.EOF) {
		return inputf("it became shorter while it was read")
	} else if err != nil {
		return &InputError{err}
	}
	r.sum.Write(b)
	hole := bytes.Equal(b, zeros[:n])
	if !hole {
		r.left = b
	}
	r.add(hole, n)
	return nil
}

func (r *extentReader) add(hole bool, n int64) {
	r.at += n
	if last := len(r.extents) - 1; last >= 0 && r.extents[last].hole == hole {
		r.extents[last].n += n
		return
	}
	r.extents = append(r.extents, extent{hole, n})
}

// seek finds where the next data is, once the last is passed.
func (r *extentReader) seek() error {
	if r.at < r.data {
		return nil
	}
	data, err := unix.Seek(int(r.file.Fd()), r.at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		data = r.size
	case errors.Is(err, unix.EINVAL): // the file system does not tell holes
		data = r.at
	case err != nil:
		return &InputError{err}
	}
	r.data = min(data, r.size)
	return nil
}

var zeros [segment]byte

// hashZeros adds n zeros to a digest.
func hashZeros(ctx context.Context, sum hash.Hash, n int64) error {
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := min(n, int64(len(zeros)))
		sum.Write(zeros[:part])
		n -= part
	}
	return nil
}
