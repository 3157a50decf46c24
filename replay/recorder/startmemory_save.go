package recorder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// saveStart writes the pages of the dynamic linker that differ from its file.
func (r *recording) saveStart(pid int) error {
	pages, err := startPages(pid, &r.manifest.Start)
	if err != nil {
		return fmt.Errorf("the dynamic linker's memory: %w", err)
	}
	var b bytes.Buffer
	for i := range pages {
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(pages[i].Addr)))
		b.Write(pages[i].Data[:])
	}
	return os.WriteFile(filepath.Join(r.path(), record.StartName), b.Bytes(), 0o600)
}

func startPages(pid int, s *record.Start) ([]record.StartPage, error) {
	path := s.Linker()
	if path == "" {
		return nil, nil
	}
	memory, err := ptrace.OpenMemory(pid)
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	file, err := os.Open(fmt.Sprintf("/proc/%d/root%s", pid, path))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var pages []record.StartPage
	for _, m := range s.MappingsOf(path) {
		if m.Permissions[2] == 'x' {
			continue
		}
		for at := m.Start; at < m.End; at += record.StartPageSize {
			page := record.StartPage{Addr: at}
			if _, err := memory.ReadAt(page.Data[:], int64(at)); err != nil {
				return nil, err
			}
			var original [record.StartPageSize]byte
			if m.Path != "" {
				_, err := file.ReadAt(original[:], int64(m.Offset+at-m.Start))
				if err != nil && !errors.Is(err, io.EOF) {
					return nil, err
				}
			}
			if page.Data != original && len(pages) < record.MostStartPages {
				pages = append(pages, page)
			}
		}
	}
	return pages, nil
}
