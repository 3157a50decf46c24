package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Limits are the limits of a tree that is fetched.
type Limits struct {
	// Files is the maximum number of files; 0 is 65,536, and the maximum.
	Files int
	// Bytes is the maximum size of the files together, holes included; 0 is 64 GiB, and the maximum.
	Bytes int64
}

func (l Limits) orDefaults() Limits {
	if l.Files <= 0 || l.Files > mostFiles {
		l.Files = mostFiles
	}
	if l.Bytes <= 0 || l.Bytes > mostBytes {
		l.Bytes = mostBytes
	}
	return l
}

// GetTree writes the files of a reference into a directory that it makes; dir must not exist.
// Each file has the content that the tree was made of, or the error is an *InputError and the
// directory is removed. Holes are holes again. Files and directories are private to their owner.
func (e *Engine) GetTree(ctx context.Context, reference, dir string, limits Limits) error {
	if err := e.getTree(ctx, reference, dir, limits.orDefaults()); err != nil {
		return fmt.Errorf("engine: the tree %.64s: %w", reference, err)
	}
	return nil
}

// HasTree reports whether the engine has a tree.
func (e *Engine) HasTree(ctx context.Context, reference string) (bool, error) {
	if err := CheckReference(reference); err != nil {
		return false, fmt.Errorf("engine: %w", err)
	}
	trees, err := e.treeBucket(ctx, false)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return false, nil
	}
	there := false
	if err == nil {
		there, err = e.has(ctx, trees, reference)
	}
	if err != nil {
		return false, fmt.Errorf("engine: the tree %.64s: %w", reference, err)
	}
	return there, nil
}

func (e *Engine) getTree(ctx context.Context, reference, dir string, limits Limits) error {
	if err := CheckReference(reference); err != nil {
		return err
	}
	t, err := e.readTree(ctx, reference)
	if err != nil {
		return err
	}
	if err := t.fits(limits); err != nil {
		return err
	}
	chunks, err := e.chunkBucket(ctx, false)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	g := &getter{e, chunks, root}
	for i := range t.files {
		if err := g.file(ctx, &t.files[i]); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", t.files[i].name, err), os.RemoveAll(dir))
		}
	}
	return nil
}

func (t *tree) fits(limits Limits) error {
	total := int64(0)
	for i := range t.files {
		total += t.files[i].size
	}
	if len(t.files) > limits.Files || total > limits.Bytes {
		return inputf("it has %d files and %d bytes, and %d and %d are allowed", len(t.files), total, limits.Files, limits.Bytes)
	}
	return nil
}

// readTree fetches and checks the list of a tree.
func (e *Engine) readTree(ctx context.Context, reference string) (*tree, error) {
	trees, err := e.treeBucket(ctx, false)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, inputf("the engine has no trees of the team %s", e.team)
	}
	if err != nil {
		return nil, err
	}
	head, err := e.get(ctx, trees, reference)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, inputf("the engine does not have it")
	}
	if err != nil {
		return nil, err
	}
	parts, err := decodeHead(head)
	if err != nil {
		return nil, err
	}
	chunks, err := e.chunkBucket(ctx, false)
	if err != nil {
		return nil, err
	}
	var list bytes.Buffer
	if err := e.fetchAll(ctx, chunks, parts, func(b []byte) error { _, err := list.Write(b); return err }); err != nil {
		return nil, err
	}
	if digest(sha256.Sum256(list.Bytes())).String() != reference {
		return nil, inputf("its list has another digest")
	}
	return decodeTree(list.Bytes())
}

// decodeHead reads the chunks of a list, which may be hostile.
func decodeHead(text []byte) ([]chunk, error) {
	rest, found := bytes.CutPrefix(text, []byte(listHead))
	if !found || len(text) > leastPayload {
		return nil, inputf("it is no tree, or of a later version")
	}
	var list []chunk
	total := 0
	for line := range bytes.Lines(rest) {
		what, found := strings.CutPrefix(strings.TrimSuffix(string(line), "\n"), "chunk ")
		if !found {
			return nil, inputf("%.80q is no chunk", line)
		}
		c, err := parseChunk(what)
		if err != nil {
			return nil, err
		}
		if total += c.size; total > mostList {
			return nil, inputf("its list has more than %d bytes", mostList)
		}
		list = append(list, c)
	}
	return list, nil
}

// getter writes the files of a tree.
type getter struct {
	engine *Engine
	chunks *bucket
	root   *os.Root
}

func (g *getter) file(ctx context.Context, f *treeFile) error {
	if dir := path.Dir(f.name); dir != "." {
		if err := g.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	mode := os.FileMode(0o600)
	if f.executable {
		mode = 0o700
	}
	out, err := g.root.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer out.Close()
	w := &extentWriter{ctx: ctx, file: out, extents: slices.Clone(f.layout()), sum: sha256.New()}
	if err := g.engine.fetchAll(ctx, g.chunks, f.chunks, w.write); err != nil {
		return err
	}
	if err := w.write(nil); err != nil { // the hole at the end
		return err
	}
	if err := out.Truncate(f.size); err != nil {
		return err
	}
	if digest(w.sum.Sum(nil)) != f.sum {
		return inputf("it has another digest")
	}
	return out.Close()
}

// fetchAll fetches chunks, some at a time, and passes their content on in their order.
func (e *Engine) fetchAll(ctx context.Context, b *bucket, list []chunk, pass func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		content []byte
		err     error
	}
	results := make(chan chan result, atOnce)
	go func() {
		defer close(results)
		for _, c := range list {
			one := make(chan result, 1)
			select {
			case results <- one:
			case <-ctx.Done():
				return
			}
			go func() {
				content, err := e.fetch(ctx, b, c)
				one <- result{content, err}
			}()
		}
	}()
	for one := range results {
		r := <-one
		if r.err == nil {
			r.err = pass(r.content)
		}
		if r.err != nil {
			return r.err
		}
	}
	return ctx.Err()
}

// extentWriter writes the data of a file to its extents.
type extentWriter struct {
	ctx     context.Context
	file    io.WriterAt
	extents []extent // those that are left
	at      int64
	sum     hash.Hash
}

// write writes data that follows the last, and passes the holes after it.
func (w *extentWriter) write(data []byte) error {
	for len(w.extents) > 0 {
		x := &w.extents[0]
		n := x.n
		if x.hole {
			if err := hashZeros(w.ctx, w.sum, n); err != nil {
				return err
			}
		} else {
			if n = min(n, int64(len(data))); n == 0 {
				return nil
			}
			if _, err := w.file.WriteAt(data[:n], w.at); err != nil {
				return err
			}
			w.sum.Write(data[:n])
			data = data[n:]
		}
		w.at += n
		if x.n == n {
			w.extents = w.extents[1:]
		} else {
			x.n -= n
		}
	}
	return nil
}
