package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
)

// Inputs are made once and are the same everywhere: the generators start from
// fixed numbers.

// words is a text of lines whose words have the frequencies of a language.
func words(lines int) []byte {
	r := rand.New(rand.NewSource(1))
	frequency := rand.NewZipf(r, 1.2, 8, 30000)
	var text bytes.Buffer
	for range lines {
		for n := 4 + r.Intn(10); n > 0; n-- {
			word(&text, frequency.Uint64())
			if n > 1 {
				text.WriteByte(' ')
			}
		}
		text.WriteByte('\n')
	}
	return text.Bytes()
}

func word(text *bytes.Buffer, number uint64) {
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	for n := number*2654435761%(1<<32) | 1; n > 0; n /= 977 {
		text.WriteByte(consonants[n%16])
		text.WriteByte(vowels[n/16%5])
	}
}

// input makes a file if it is not there.
func input(path string, content func() ([]byte, error)) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := content()
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}

func text(path string, lines int) error {
	return input(path, func() ([]byte, error) { return words(lines), nil })
}

// history makes a repository of many small changes.
func history(path string) error {
	if _, err := os.Stat(filepath.Join(path, "HEAD")); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("git", "init", "-q", "--bare", path).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	cmd := exec.Command("git", "-C", path, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet")
	cmd.Stdin = bytes.NewReader(commits(5000))
	if out, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(path)
		return fmt.Errorf("git fast-import: %w: %s", err, out)
	}
	return nil
}

// commits is a stream for git fast-import.
func commits(n int) []byte {
	r := rand.New(rand.NewSource(2))
	all := bytes.SplitAfter(words(20000), []byte("\n"))
	files := make([][][]byte, 120)
	var stream bytes.Buffer
	for c := range n {
		message := fmt.Sprintf("change %d", c)
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter A U Thor <author@example.org> %d +0000\ndata %d\n%s\n",
			1600000000+c*1000, len(message), message)
		for range 1 + r.Intn(4) {
			f := r.Intn(len(files))
			files[f] = edit(r, files[f], all)
			content := bytes.Join(files[f], nil)
			fmt.Fprintf(&stream, "M 100644 inline part%d/file%d.txt\ndata %d\n%s\n", f%11, f, len(content), content)
		}
	}
	return stream.Bytes()
}

func edit(r *rand.Rand, file, all [][]byte) [][]byte {
	if len(file) == 0 {
		return append(file, all[r.Intn(1000):][:200+r.Intn(400)]...)
	}
	for range 1 + r.Intn(8) {
		file[r.Intn(len(file))] = all[r.Intn(len(all))]
	}
	return file
}
