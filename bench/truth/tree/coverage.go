package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Lines are the executed lines of each file, whose path is relative to the top of the
// sources.
type Lines map[string]map[int]Extent

// Extent is how much of a line was executed. A line that was not is absent.
type Extent int

// The extents. Of a line that is executed partly a branch was not taken.
const (
	Partly Extent = iota + 1
	Wholly
)

// Forget removes what earlier runs of a tree of the variant Coverage executed.
func (t *Tree) Forget() error {
	files, err := t.counters()
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// counters are the files in which runs count what they execute.
func (t *Tree) counters() (files []string, err error) {
	err = filepath.WalkDir(t.Top, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".gcda" {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// Covered reads which lines the runs of a tree of the variant Coverage executed.
func (t *Tree) Covered(ctx context.Context) (Lines, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	files, err := t.counters()
	if len(files) == 0 || err != nil {
		return nil, err
	}
	// A relative name in the result is relative to the directory of the compiler.
	cmd := exec.CommandContext(ctx, "gcov", append([]string{"--stdout", "--json-format"}, files...)...)
	cmd.Dir = t.Top
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("tree: gcov: %w", err)
	}
	lines := Lines{}
	return lines, lines.addDocuments(out, t.Top)
}

// coverage is the part of gcov's JSON that is used.
type coverage struct {
	Directory string `json:"current_working_directory"`
	Files     []struct {
		File  string `json:"file"`
		Lines []struct {
			Number     int   `json:"line_number"`
			Count      int64 `json:"count"`
			Unexecuted bool  `json:"unexecuted_block"`
		} `json:"lines"`
	} `json:"files"`
}

// addDocuments reads documents of gcov, one for each file of counters.
func (l Lines) addDocuments(documents []byte, top string) error {
	for decoder := json.NewDecoder(bytes.NewReader(documents)); ; {
		var c coverage
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("tree: gcov: %w", err)
		}
		l.addDocument(&c, top)
	}
}

func (l Lines) addDocument(c *coverage, top string) {
	for _, f := range c.Files {
		path := f.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Directory, path)
		}
		name, err := filepath.Rel(top, path)
		if err != nil || strings.HasPrefix(name, "..") {
			continue // a header of the system
		}
		if l[name] == nil {
			l[name] = map[int]Extent{}
		}
		for _, line := range f.Lines {
			switch {
			case line.Count > 0 && line.Unexecuted:
				l[name][line.Number] = max(Partly, l[name][line.Number])
			case line.Count > 0:
				l[name][line.Number] = Wholly
			}
		}
	}
}
