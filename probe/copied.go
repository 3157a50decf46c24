package probe

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/probe/blocks"
)

// compareCopy compares the lines of a marked copy with the recorded source where that can be found: a file at the path of the debug
// information, with the MD5 there, or if there is none, not changed after the object was. The error is an *Error that names the first
// line that differs. Of several recorded files with the name the copy has to be one.
func (f *finder) compareCopy(s *blocks.Source) error {
	if s.Copied == nil {
		return nil
	}
	var first error
	same := false
	err := f.debugged(func(m *image.Module, info *debuginfo.Info) error {
		files, err := info.SourceFilesNamed(filepath.Base(s.Name))
		if err != nil {
			return fmt.Errorf("probe: %s: %w", m.Path, err)
		}
		for _, file := range files {
			text, known := recordedSource(file, m.Path)
			if !known {
				continue
			}
			differs := firstDifference(s, file.Path, text)
			same = same || differs == nil
			if first == nil {
				first = differs
			}
		}
		return nil
	})
	if err != nil || same {
		return err
	}
	return first
}

// recordedSource returns the text of a source file if it is the one that the object was compiled of.
func recordedSource(file debuginfo.SourceFile, object string) (text []byte, known bool) {
	text, changed, err := readSource(file.Path)
	if err != nil {
		return nil, false
	}
	if file.MD5 != nil {
		sum := md5.Sum(text)
		return text, bytes.Equal(sum[:], file.MD5)
	}
	info, err := os.Stat(strings.TrimSuffix(object, " (deleted)"))
	return text, err == nil && !changed.After(info.ModTime())
}

// readSource reads a file that debug information names, which may be anything.
func readSource(path string) (text []byte, changed time.Time, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, changed, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, changed, err
	}
	if !info.Mode().IsRegular() || info.Size() > blocks.MostBytes {
		return nil, changed, errors.New("no source file")
	}
	text, err = io.ReadAll(io.LimitReader(f, blocks.MostBytes))
	return text, info.ModTime(), err
}

// firstDifference names the first copied line that differs from the recorded source; nil: none does. The recorded text is not shown: the
// path is the recording's.
func firstDifference(s *blocks.Source, path string, text []byte) error {
	n := 0
	for line := range strings.Lines(string(text)) {
		switch {
		case n == len(s.Copied):
			return &Error{Asked: s.Name, Problem: fmt.Sprintf("the copy ends after line %d of the recorded source %s", n, path)}
		case s.Copied[n].Text != strings.TrimRight(line, "\r\n"):
			return &Error{Asked: fmt.Sprintf("%s:%d", s.Name, s.Copied[n].Number),
				Problem: fmt.Sprintf("the line differs from line %d of the recorded source %s", n+1, path)}
		}
		n++
	}
	if n < len(s.Copied) {
		return &Error{Asked: fmt.Sprintf("%s:%d", s.Name, s.Copied[n].Number), Problem: fmt.Sprintf("the recorded source %s ends after %d lines", path, n)}
	}
	return nil
}
