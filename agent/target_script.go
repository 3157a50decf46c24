package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Limits of the kernel: fs/binfmt_script.c reads so much of a script's first
// line, and fs/exec.c follows so many interpreters that are scripts.
const (
	scriptLine  = 256
	scriptDepth = 5
)

// followScripts returns the ELF file that the kernel runs for a path.
func followScripts(path string) (string, error) {
	for range scriptDepth + 1 {
		line, err := firstLine(path)
		if err != nil {
			return "", err
		}
		if line == "" {
			return path, nil
		}
		next, err := scriptInterpreter(line)
		if err != nil {
			return "", fmt.Errorf("%s: its first line %q: %w", path, line, err)
		}
		path = next
	}
	return "", fmt.Errorf("%s: more than %d scripts interpret each other", path, scriptDepth)
}

// firstLine returns what follows #! in a script, and nothing for other files.
// A file that cannot be read is no script: the kernel would not run it either,
// for the interpreter has to read it.
func firstLine(path string) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	start := make([]byte, scriptLine)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	line, isScript := bytes.CutPrefix(start[:n], []byte("#!"))
	if !isScript {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	text := strings.Trim(string(line), " \t\r")
	if text == "" {
		return "", fmt.Errorf("%s: its first line names no interpreter", path)
	}
	return text, nil
}

// scriptInterpreter is the program of a #! line. env(1) runs the next one.
func scriptInterpreter(line string) (string, error) {
	words := strings.Fields(line)
	if filepath.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				return lookUp(word)
			}
		}
	}
	if _, err := os.Stat(words[0]); err != nil {
		return "", err
	}
	return words[0], nil
}
