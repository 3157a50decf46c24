package collected

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names in the directory.
const (
	CoreName    = "core"
	FactsName   = "entry.json"
	ObjectsName = "objects"
)

// Version is the version of Facts that is written.
const Version = 1

// mostFacts bounds the size of entry.json, in bytes: a process has some hundred objects.
const mostFacts = 4 << 20

// Facts are the facts of a crash that its host knew. Texts come from the crashed process, which may be
// hostile.
type Facts struct {
	Version int `json:"version"`
	// Program is the executable's path in the process's mount namespace, Command the kernel's short
	// name of the thread that failed. BuildID is the executable's, "" if it has none.
	Program string `json:"program"`
	Command string `json:"command"`
	BuildID string `json:"build_id,omitempty"`
	// PID and TID are numbers of the host's namespace, UID and GID those of the process's user there.
	PID int `json:"pid"`
	TID int `json:"tid"`
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Signal is the number of the signal that ended it, Time when the kernel wrote the core.
	Signal int       `json:"signal"`
	Time   time.Time `json:"time"`
	Host   string    `json:"host"`
	// Container is the container's id, "" outside of one. Cgroup is the control group of the process.
	Container string `json:"container,omitempty"`
	Cgroup    string `json:"cgroup,omitempty"`
	// Kernel is the release of the host's kernel.
	Kernel string `json:"kernel"`
	// Signature is equal for crashes that look alike before they are diagnosed: of one executable, of
	// one signal, at one place.
	Signature string `json:"signature"`
	// Core has the sizes of the core.
	Core Core `json:"core"`
	// Objects are the files in ObjectsName. Lacking are those that could not be had, and why.
	Objects []Object  `json:"objects"`
	Lacking []Lacking `json:"lacking,omitempty"`
	// Redacted says which secrets are not in the core.
	Redacted Redacted `json:"redacted"`
}

// Core has the sizes of a core, in bytes.
type Core struct {
	// Whole is the size of the core that the kernel wrote, Kept the size of the one that is kept, and
	// Stored its size when compressed.
	Whole  uint64 `json:"whole"`
	Kept   uint64 `json:"kept"`
	Stored int64  `json:"stored"`
	// LeftOut is the memory that is in Objects instead. Missing is the memory that the stream lacked,
	// because it ended early.
	LeftOut uint64 `json:"left_out"`
	Missing uint64 `json:"missing,omitempty"`
}

// Object is a file that the process had mapped.
type Object struct {
	// Path is the path in the process's mount namespace. File is the name in ObjectsName.
	Path string `json:"path"`
	File string `json:"file"`
	// BuildID is "" if it has none.
	BuildID string `json:"build_id,omitempty"`
	Bytes   int64  `json:"bytes"`
}

// Lacking is a file that the process had mapped and that is not kept.
type Lacking struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Redacted says which secrets were blanked.
type Redacted struct {
	// Names are those of the variables of the environment whose values, or parts of them, were blanked.
	Names []string `json:"names"`
	// Places counts the strings and copies that were blanked.
	Places int `json:"places"`
	// Everywhere says that copies in all of the memory were blanked. Otherwise the environment could
	// not be read before the core, and only the environment itself was searched.
	Everywhere bool `json:"everywhere"`
}

// Is reports whether a directory looks like a collected core.
func Is(dir string) bool {
	for _, name := range []string{CoreName, FactsName} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// Read reads the facts of a directory.
func Read(dir string) (*Facts, error) {
	f, err := os.OpenFile(filepath.Join(dir, FactsName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostFacts+1))
	if err != nil {
		return nil, err
	}
	facts := new(Facts)
	if len(text) > mostFacts {
		err = errors.New("it is too large")
	} else {
		err = json.Unmarshal(text, facts)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if facts.Version < 1 || facts.Version > Version {
		return nil, fmt.Errorf("%s: it has the form %d, and this diagnose knows %d", f.Name(), facts.Version, Version)
	}
	return facts, nil
}

// FileName is the name in ObjectsName for a file with that build-id and path, "" if its name is none
// that is taken.
func FileName(buildID, path string) string {
	const longest = 200
	if buildID != "" {
		return buildID
	}
	name := filepath.Base(strings.TrimSuffix(path, " (deleted)"))
	if name == "." || name == ".." || name == "/" || len(name) > longest ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' }) {
		return ""
	}
	return name
}
