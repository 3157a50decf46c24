package source

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

// own are the inputs and the main functions of ours.
//
//go:embed inputs drivers
var own embed.FS

// Own writes the folders inputs and drivers into a directory.
func Own(dir string) (inputs, drivers string, err error) {
	inputs, drivers = filepath.Join(dir, "inputs"), filepath.Join(dir, "drivers")
	for _, d := range []string{inputs, drivers} {
		if err := os.RemoveAll(d); err != nil {
			return "", "", fmt.Errorf("source: %w", err)
		}
	}
	if err := os.CopyFS(dir, own); err != nil {
		return "", "", fmt.Errorf("source: %w", err)
	}
	return inputs, drivers, nil
}
