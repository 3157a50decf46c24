package started

import (
	"errors"
	"fmt"
	"io"
	"os"

	"diagnose/internal/wording"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// Pages returns the pages of the dynamic linker that differ from its file.
func Pages(pid int, s *record.Start) ([]record.StartPage, error) {
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

// LinkerCache returns the contents of record.LinkerCachePath as the process sees it; empty if there
// is none.
func LinkerCache(pid int) ([]byte, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/root%s", pid, record.LinkerCachePath))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, record.MostLinkerCache+1))
	if len(data) > record.MostLinkerCache {
		return nil, fmt.Errorf("%s is larger than %s", record.LinkerCachePath, wording.Size(record.MostLinkerCache))
	}
	return data, err
}
