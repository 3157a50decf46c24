package mutant

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/source"
)

// PassingRuns are inputs on which a mutant writes what the original does, at most as many. There are none before its package was built.
func (k *Kept) PassingRuns(ctx context.Context, f Folders, most int) (list []source.Run, err error) {
	found, err := filepath.Glob(filepath.Join(f.Build, k.Package, "originals-*.json"))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	text, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		return nil, fmt.Errorf("mutant: %w", err)
	}
	var originals []original
	if err := json.Unmarshal(text, &originals); err != nil {
		return nil, fmt.Errorf("mutant: %s: %w", found[len(found)-1], err)
	}
	w := &Workshop{scratch: filepath.Join(f.Scratch, fmt.Sprintf("passing-%d", os.Getpid()))}
	for _, o := range originals {
		if len(list) == most || reflect.DeepEqual(o.Run, k.Run) {
			continue
		}
		r, err := w.runProgram(ctx, k.Program, o.Run)
		if err != nil {
			return nil, err
		}
		if well(r) && bytes.Equal(digest(r.Stdout), o.Outputs[k.Level]) {
			list = append(list, o.Run)
		}
	}
	return list, limit.Empty(w.scratch)
}
