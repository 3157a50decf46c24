package image

import (
	"path/filepath"
	"strings"

	"diagnose/image/collected"
	"diagnose/image/object"
)

// deletedSuffix is what the kernel appends to the path of a mapped file that
// was unlinked (d_path in fs/d_path.c).
const deletedSuffix = " (deleted)"

// fileSource finds the files that a process had mapped.
type fileSource struct {
	exe    string // Options.Exe
	finder *object.Finder
	files  *Files
	// beside is the core's folder, "" for a live process. A collector puts the objects there
	// (package collected).
	beside string
	// live returns paths under /proc through which a live process's file can
	// be opened even in another mount namespace or without a name; nil for a
	// core.
	live func(m *Module) []string
}

// candidate is a place where a module's file may be.
type candidate struct {
	path string
	// inTarget paths are the process's, beneath the sysroot; others are of
	// this machine.
	inTarget bool
}

func (s *fileSource) openCandidate(c candidate) (*loadedFile, error) {
	files, open := s.files, object.Open
	if c.inTarget {
		if open = s.finder.Open; s.finder.Sysroot != "" {
			files = nil // the path is beneath another root
		}
	}
	return files.open(c.path, func() (*object.File, error) { return open(c.path) })
}

// candidates lists where a module's file may be, the best first.
func (s *fileSource) candidates(m *Module, exe bool) []candidate {
	if exe && s.exe != "" {
		return []candidate{{path: s.exe}}
	}
	var list []candidate
	path := m.Path
	if s.beside != "" && m.BuildID != "" {
		list = append(list, candidate{path: filepath.Join(s.beside, collected.ObjectsName, m.BuildID)})
	}
	if strings.HasPrefix(path, "/") && !pseudoFile(path) {
		list = append(list, candidate{path, true})
		if plain, ok := strings.CutSuffix(path, deletedSuffix); ok {
			path = plain
			list = append(list, candidate{plain, true})
		}
	}
	if s.live != nil {
		for _, found := range s.live(m) {
			list = append(list, candidate{path: found})
		}
	}
	if s.beside != "" && path != "" && path[0] != '[' {
		list = append(list, candidate{path: filepath.Join(s.beside, filepath.Base(path))})
		if name := collected.FileName("", path); name != "" {
			list = append(list, candidate{path: filepath.Join(s.beside, collected.ObjectsName, name)})
		}
	}
	return list
}

// pseudoFile reports whether a path names no file of a disk: memfd, SysV
// shared memory, and files whose reading is an action of the kernel.
func pseudoFile(path string) bool {
	for _, prefix := range []string{"/memfd:", "/SYSV", "/proc/", "/sys/", "/dev/zero", "/anon_hugepage"} {
		if strings.HasPrefix(filepath.Clean(path), prefix) {
			return true
		}
	}
	return false
}
