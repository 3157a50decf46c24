package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A tree is told by a list, a text of lines. After listHead each file has a line
//
//	file MODE SIZE SHA256 NAME
//
// MODE is 700 for what its owner may execute, else 600; NAME is quoted as in Go. If the file has
// holes, lines "data N" and "hole N" follow alternately that lay it out. Then "chunk SIZE SHA256"
// for each chunk of its data, in order. The digest of the list is the reference.
const listHead = "diagnose-tree 1\n"

const (
	// mostFiles and mostDepth are the limits of a tree, longestName of a name in it, in bytes.
	mostFiles, mostDepth, longestName = 1 << 16, 64, 1 << 12
	// mostChunks and mostExtents are the limits of a list's lines, mostList of its bytes.
	mostChunks, mostExtents, mostList = 1 << 20, 1 << 20, 128 << 20
	// mostBytes is the maximum size of a tree's files together, holes included.
	mostBytes = 64 << 30
)

type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// parseDigest takes lower-case letters alone, so that a digest has one form.
func parseDigest(text string) (d digest, ok bool) {
	if len(text) != 2*len(d) || strings.Trim(text, "0123456789abcdef") != "" {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil
}

// tree is a list of files, in the order of their names.
type tree struct{ files []treeFile }

type treeFile struct {
	name       string // with slashes
	executable bool
	size       int64  // holes included
	sum        digest // of its content, holes included
	extents    []extent
	chunks     []chunk // of its data
}

// extent is a part of a file: n bytes of data, or a hole.
type extent struct {
	hole bool
	n    int64
}

// chunk is a part of a file's data.
type chunk struct {
	size int
	sum  digest
}

// layout is the extents of a file, also of one without holes, which the list does not have.
func (f *treeFile) layout() []extent {
	if len(f.extents) == 0 && f.size > 0 {
		return []extent{{n: f.size}}
	}
	return f.extents
}

func (t *tree) encode() []byte {
	var b bytes.Buffer
	b.WriteString(listHead)
	for i := range t.files {
		f := &t.files[i]
		mode := "600"
		if f.executable {
			mode = "700"
		}
		fmt.Fprintf(&b, "file %s %d %v %s\n", mode, f.size, f.sum, strconv.Quote(f.name))
		for _, e := range f.extents {
			what := "data"
			if e.hole {
				what = "hole"
			}
			fmt.Fprintf(&b, "%s %d\n", what, e.n)
		}
		appendChunks(&b, f.chunks)
	}
	return b.Bytes()
}

func appendChunks(b *bytes.Buffer, chunks []chunk) {
	for _, c := range chunks {
		fmt.Fprintf(b, "chunk %d %v\n", c.size, c.sum)
	}
}

// treeReader reads a list, which may be hostile.
type treeReader struct {
	tree            tree
	chunks, extents int
}

// decodeTree reads a list. What it returns is consistent: sizes agree, names are in order and
// stay inside of a directory, and the list has the one form that encode gives it.
func decodeTree(text []byte) (*tree, error) {
	if len(text) > mostList || !bytes.HasPrefix(text, []byte(listHead)) {
		return nil, inputf("it is no list of a tree, or of a later version")
	}
	var r treeReader
	number := 1
	for line := range bytes.Lines(text[len(listHead):]) {
		number++
		if err := r.line(string(line)); err != nil {
			return nil, inputf("line %d: %w", number, err)
		}
	}
	if err := r.tree.check(); err != nil {
		return nil, err
	}
	if !bytes.Equal(r.tree.encode(), text) {
		return nil, inputf("the list has another form than it should")
	}
	return &r.tree, nil
}

func (r *treeReader) line(line string) error {
	if len(line) > 6*longestName {
		return inputf("it is too long")
	}
	what, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if what == "file" {
		return r.file(rest)
	}
	if len(r.tree.files) == 0 {
		return inputf("a file is expected")
	}
	f := &r.tree.files[len(r.tree.files)-1]
	switch what {
	case "data", "hole":
		if r.extents++; r.extents > mostExtents {
			return inputf("there are more than %d extents", mostExtents)
		}
		n, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			return &InputError{err}
		}
		f.extents = append(f.extents, extent{what == "hole", n})
		return nil
	case "chunk":
		if r.chunks++; r.chunks > mostChunks {
			return inputf("there are more than %d chunks", mostChunks)
		}
		c, err := parseChunk(rest)
		f.chunks = append(f.chunks, c)
		return err
	}
	return inputf("%.20q is not known", what)
}

func (r *treeReader) file(rest string) error {
	if len(r.tree.files) == mostFiles {
		return inputf("there are more than %d files", mostFiles)
	}
	fields := strings.SplitN(rest, " ", 4)
	if len(fields) != 4 {
		return inputf("a file's line has %d fields", len(fields))
	}
	f := treeFile{executable: fields[0] == "700"}
	var err error
	if f.size, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
		return &InputError{err}
	}
	var ok bool
	if f.sum, ok = parseDigest(fields[2]); !ok {
		return inputf("%.80q is no digest", fields[2])
	}
	if f.name, err = strconv.Unquote(fields[3]); err != nil {
		return inputf("a name: %w", err)
	}
	r.tree.files = append(r.tree.files, f)
	return nil
}

// parseChunk reads "SIZE SHA256".
func parseChunk(text string) (chunk, error) {
	size, sum, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 1 || n > mostChunk {
		return chunk{}, inputf("%.40q is no size of a chunk", size)
	}
	d, ok := parseDigest(sum)
	if !ok {
		return chunk{}, inputf("%.80q is no digest", sum)
	}
	return chunk{int(n), d}, nil
}

// check checks the names, and each file's sizes.
func (t *tree) check() error {
	names := make(map[string]bool, len(t.files))
	total := int64(0)
	for i := range t.files {
		f := &t.files[i]
		if err := checkName(f.name); err != nil {
			return err
		}
		if i > 0 && t.files[i-1].name >= f.name {
			return inputf("%.200q is not in order", f.name)
		}
		names[f.name] = true
		if err := f.check(); err != nil {
			return inputf("%.200q: %w", f.name, err)
		}
		if total += f.size; total > mostBytes {
			return inputf("the files have more than %d bytes", int64(mostBytes))
		}
	}
	for i := range t.files {
		for dir := path.Dir(t.files[i].name); dir != "."; dir = path.Dir(dir) {
			if names[dir] {
				return inputf("%.200q is a file and a directory", dir)
			}
		}
	}
	return nil
}

// checkName refuses names that leave the directory, that cannot be printed, or that are not the
// shortest of their file.
func checkName(name string) error {
	if name == "." || len(name) > longestName || !filepath.IsLocal(name) || path.Clean(name) != name || !utf8.ValidString(name) ||
		strings.Count(name, "/") >= mostDepth || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == utf8.RuneError }) {
		return inputf("%.200q: such a name is not taken", name)
	}
	return nil
}

// check checks that the extents cover the file, and the chunks its data.
func (f *treeFile) check() error {
	if f.size < 0 || f.size > mostBytes {
		return inputf("it has %d bytes", f.size)
	}
	covered, data := int64(0), f.size
	if len(f.extents) > 0 {
		data = 0
	}
	for i, e := range f.extents {
		if e.n <= 0 || e.n > f.size-covered || i > 0 && f.extents[i-1].hole == e.hole {
			return inputf("its extent %d does not fit", i)
		}
		covered += e.n
		if !e.hole {
			data += e.n
		}
	}
	if len(f.extents) > 0 && (covered != f.size || data == f.size) {
		return inputf("its extents are not those of a file with holes")
	}
	for _, c := range f.chunks {
		data -= int64(c.size)
	}
	if data != 0 {
		return inputf("its chunks do not fit its data")
	}
	return nil
}

// CheckReference refuses text that is not the reference of a tree.
func CheckReference(reference string) error {
	if _, ok := parseDigest(reference); !ok {
		return inputf("%.80q is no reference of a tree", reference)
	}
	return nil
}
