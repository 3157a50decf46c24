package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Save writes a value as JSON to a file.
func Save(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return Write(path, text)
}

// Write writes a file and the directories that it is in. It appears under its name as a whole or not at all.
func Write(path string, text []byte) error {
	part := path + ".part"
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(part, text, 0o644)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Load reads a value from a file that Save wrote; known is false if there is none.
func Load(path string, v any) (known bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, fmt.Errorf("store: %s: %w", path, err)
	}
	return true, nil
}

// Under is the path of a file of a checkout, whose name is relative to the root unless it is absolute.
func Under(root, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(root, name)
}
