package tree

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Lines are the numbers of the executed lines of each file, whose path is relative to the
// top of the sources.
type Lines map[string]map[int]bool

// Covered reads which lines the runs of a tree of the variant Coverage executed.
func (t *Tree) Covered(ctx context.Context) (Lines, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	lines := Lines{}
	err := filepath.WalkDir(t.Top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".gcda" {
			return err
		}
		// A relative name in the result is relative to the directory of the compiler.
		cmd := exec.CommandContext(ctx, "gcov", "--stdout", "--json-format", path)
		cmd.Dir = t.Top
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("tree: gcov %s: %w", path, err)
		}
		return lines.add(out, t.Top)
	})
	return lines, err
}

// coverage is the part of gcov's JSON that is used.
type coverage struct {
	Directory string `json:"current_working_directory"`
	Files     []struct {
		File  string `json:"file"`
		Lines []struct {
			Number int   `json:"line_number"`
			Count  int64 `json:"count"`
		} `json:"lines"`
	} `json:"files"`
}

func (l Lines) add(document []byte, top string) error {
	var c coverage
	if err := json.Unmarshal(document, &c); err != nil {
		return fmt.Errorf("tree: gcov: %w", err)
	}
	for _, f := range c.Files {
		path := f.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Directory, path)
		}
		name, err := filepath.Rel(top, path)
		if err != nil || strings.HasPrefix(name, "..") {
			continue // a header of the system
		}
		for _, line := range f.Lines {
			if line.Count > 0 {
				if l[name] == nil {
					l[name] = map[int]bool{}
				}
				l[name][line.Number] = true
			}
		}
	}
	return nil
}
