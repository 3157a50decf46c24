package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/fleet/collect/corestream"
	"diagnose/internal/procmaps"
)

// mostText bounds the environment and the command line, in bytes: three quarters of the stack's
// default limit.
const mostText = 6 << 20

// errGone says that the process that crashed is there no more.
var errGone = errors.New("the process has ended: kernel.core_pipe_limit is 0, or the core is not from the kernel")

// process is the crashed process as /proc shows it.
type process struct {
	dir string // /proc/PID
}

// openProcess finds the process of a core; errGone if it has ended. Its number may be another's by
// then, so the mappings are compared with those of the core.
func openProcess(pid int, h *corestream.Head) (*process, error) {
	const compared = 64
	if pid <= 0 || len(h.Files) == 0 {
		return nil, errGone
	}
	maps, err := procmaps.ReadProcess(pid)
	if err != nil {
		return nil, errGone
	}
	at := map[uint64]*procmaps.Mapping{}
	for i := range maps {
		at[uint64(maps[i].Start)] = &maps[i]
	}
	for _, f := range h.Files[:min(len(h.Files), compared)] {
		m := at[f.Start]
		if m == nil || uint64(m.End) != f.End || m.Offset != f.Offset {
			return nil, errGone
		}
	}
	return &process{dir: filepath.Join("/proc", strconv.Itoa(pid))}, nil
}

// text reads a file of the process. Nothing is known if it cannot be read.
func (p *process) text(name string) []byte {
	f, err := os.Open(filepath.Join(p.dir, name))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return nil
	}
	return b
}

// program is the path of the executable in the process's mount namespace, "" if it is not known.
func (p *process) program() string {
	name, err := os.Readlink(filepath.Join(p.dir, "exe"))
	if err != nil {
		return ""
	}
	return name
}

// cgroup is the control group of the process (cgroups(7)); of version 1, the first that is named.
func (p *process) cgroup() string {
	for line := range bytes.Lines(p.text("cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if path := fields[len(fields)-1]; len(fields) == 3 && path != "/" {
			return path
		}
	}
	return ""
}

// containerID is the form of the ids that containerd, Docker, CRI-O and Podman put into the names of
// control groups.
var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

func containerOf(cgroup string) string {
	ids := containerID.FindAllString(cgroup, -1)
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// memory reads the process's memory at an address, at most len(b) bytes.
func (p *process) memory(addr uint64, b []byte) []byte {
	f, err := os.Open(filepath.Join(p.dir, "mem"))
	if err != nil || addr >= 1<<63 {
		return nil
	}
	defer f.Close()
	n, _ := f.ReadAt(b, int64(addr)) // what could be read before an error counts
	return b[:n]
}

// mapped opens the file of a mapping: the very file that was mapped (/proc/PID/map_files), which may
// have lost its name, or else the one of that name in the process's mount namespace.
func (p *process) mapped(m *corestream.FileMapping) (*os.File, error) {
	fd, err := unix.Open(fmt.Sprintf("%s/map_files/%x-%x", p.dir, m.Start, m.End), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		return regular(fd)
	}
	root, err := unix.Open(filepath.Join(p.dir, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return openBelow(root, m.Path)
}

// openBelow opens a regular file below a root, which links do not leave.
func openBelow(root int, path string) (*os.File, error) {
	fd, err := unix.Openat2(root, strings.TrimSuffix(path, " (deleted)"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, err
	}
	return regular(fd)
}

// regular opens what a descriptor of O_PATH names, if it is a regular file: opening a device or a pipe
// may have effects, or block.
func regular(fd int) (*os.File, error) {
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is not a regular file")
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
}
