package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Change replaces a file and builds the program again. Restore must follow, also after an
// error.
func (t *Tree) Change(ctx context.Context, name string, content []byte) error {
	if t.changed != "" {
		return fmt.Errorf("tree: %s is still changed", t.changed)
	}
	if err := os.WriteFile(t.journal(), []byte(name), 0o644); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	t.changed = name
	if err := t.write(name, content); err != nil {
		return err
	}
	// A program that remains from the build before would be taken for the mutant.
	if err := os.Remove(t.Executable()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("tree: %w", err)
	}
	return t.shell(ctx, t.makeCommand(), fileLimit)
}

// Restore makes the changed file that of the sources again. The next build compiles it.
func (t *Tree) Restore() error {
	if t.changed == "" {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(t.Dir, t.changed))
	if err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	if err := errors.Join(t.write(t.changed, content), os.Remove(t.journal())); err != nil {
		return err
	}
	t.changed = ""
	return nil
}

// write gives the file a time after that of every object, so that make compiles it.
func (t *Tree) write(name string, content []byte) error {
	path := filepath.Join(t.Top, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	now := time.Now()
	return os.Chtimes(path, now, now)
}
