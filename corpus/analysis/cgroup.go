package analysis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// UnsupportedError says that a night cannot make control groups here.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return e.What }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}

// hierarchy is the tree of control groups of version 2 (cgroups(7), and the kernel's
// Documentation/admin-guide/cgroup-v2.rst).
type hierarchy struct {
	// mount is where it is mounted, own the directory of this process's group in it.
	mount, own string
	// write writes to a file of a group.
	write func(name, text string) error
}

// hierarchyOf parses the texts of /proc/self/mountinfo and /proc/self/cgroup.
func hierarchyOf(mounts, groups string) (*hierarchy, error) {
	own := ""
	for line := range strings.Lines(groups) {
		if path, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); found {
			own = path
		}
	}
	if own == "" || strings.HasPrefix(own, "/..") {
		return nil, unsupported("this process is in no control group of version 2 that can be seen from here")
	}
	for line := range strings.Lines(mounts) {
		front, back, found := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		const root, mount = 3, 4
		if !found || !strings.HasPrefix(back, "cgroup2 ") || len(fields) <= mount {
			continue
		}
		inside, err := filepath.Rel(fields[root], own)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		at := unescapeMount(fields[mount])
		return &hierarchy{mount: at, own: filepath.Join(at, inside), write: writeControl}, nil
	}
	return nil, unsupported("no control groups of version 2 are mounted")
}

// unescapeMount decodes mountinfo's escapes of spaces and the like (proc_pid_mountinfo(5)).
func unescapeMount(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}

// writeControl writes to an existing file, in one call as the kernel requires.
func writeControl(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// words returns the words of a file of a group.
func words(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	return strings.Fields(string(text)), err
}

// controlGroups makes a group for each of a night's processes.
type controlGroups struct {
	h   *hierarchy
	dir string // directory of the groups
	// enabled says that the memory controller was enabled for them, and moved that this process
	// was moved to the group self for that.
	enabled, moved bool
	number         atomic.Int64
}

// groupPrefix begins the names of groups. The number of the process that made them follows.
const groupPrefix = "diagnose-night-"

// openControlGroups finds where this process may make groups with limited memory. It fails with
// an *UnsupportedError if it may not.
func openControlGroups() (*controlGroups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, unsupported("%v", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, unsupported("%v", err)
	}
	h, err := hierarchyOf(string(mounts), string(groups))
	if err != nil {
		return nil, err
	}
	return h.open()
}

// open walks up from this process's own group as long as it may change the groups: a service
// may be started in a group below its own.
func (h *hierarchy) open() (*controlGroups, error) {
	var first error
	for dir := h.own; ; dir = filepath.Dir(dir) {
		if !h.delegated(dir) {
			if first == nil {
				first = unsupported("the control group %s is not this process's to change; systemd gives it away with Delegate=yes", dir)
			}
			return nil, first
		}
		g, err := h.use(dir)
		if err == nil {
			return g, nil
		}
		if first == nil {
			first = err
		}
		if dir == h.mount {
			return nil, first
		}
	}
}

// delegated reports whether a group was delegated to this process: systemd marks such groups
// (systemd.resource-control(5), Delegate=) and makes the user their owner. A process that is
// root in everything it sees, and in no group below it, has no manager.
func (h *hierarchy) delegated(dir string) bool {
	var value [8]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	if dir == h.own && dir == h.mount {
		return unix.Access(dir, unix.W_OK) == nil
	}
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() == 0 {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

// use prepares a group for groups below it.
func (h *hierarchy) use(dir string) (*controlGroups, error) {
	can, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, unsupported("%v", err)
	}
	if !slices.Contains(can, "memory") {
		return nil, unsupported("the control group %s has no memory controller", dir)
	}
	has, err := words(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return nil, unsupported("%v", err)
	}
	g := &controlGroups{h: h, dir: dir}
	if !slices.Contains(has, "memory") {
		if err := g.enable(); err != nil {
			g.close()
			return nil, err
		}
	}
	g.sweep()
	trial, err := g.new(1 << 30)
	if err != nil {
		g.close()
		return nil, unsupported("%v", err)
	}
	trial.close()
	return g, nil
}

// enable enables the memory controller for the groups below. Apart from the root, only a group
// without its own processes can have it.
func (g *controlGroups) enable() error {
	pids, err := words(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return unsupported("%v", err)
	}
	_, err = os.Stat(filepath.Join(g.dir, "cgroup.type"))
	if root := errors.Is(err, os.ErrNotExist); !root && len(pids) > 0 {
		if !slices.Equal(pids, []string{strconv.Itoa(os.Getpid())}) {
			return unsupported("other processes are in the control group %s", g.dir)
		}
		if err := os.Mkdir(g.self(), 0o755); err != nil {
			return unsupported("%v", err)
		}
		g.moved = true
		if err := g.h.write(filepath.Join(g.self(), "cgroup.procs"), "0"); err != nil {
			return unsupported("%v", err)
		}
	}
	if err := g.h.write(filepath.Join(g.dir, "cgroup.subtree_control"), "+memory"); err != nil {
		return unsupported("%v", err)
	}
	g.enabled = true
	return nil
}

// self is the name of this process's group while its former group has groups below it.
func (g *controlGroups) self() string { return g.name("self") }

func (g *controlGroups) name(what string) string {
	return filepath.Join(g.dir, fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), what))
}

// close restores the former state as far as possible. Any group that it leaves is empty.
func (g *controlGroups) close() {
	if g.enabled {
		g.h.write(filepath.Join(g.dir, "cgroup.subtree_control"), "-memory")
	}
	if g.moved {
		g.h.write(filepath.Join(g.dir, "cgroup.procs"), "0")
		os.Remove(g.self())
	}
}

// sweep removes the empty groups of nights that were killed: the kernel removes only empty
// ones.
func (g *controlGroups) sweep() {
	left, err := filepath.Glob(filepath.Join(g.dir, groupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			os.Remove(dir)
		}
	}
}

// controlGroup limits the memory of one process and of all its descendants.
type controlGroup struct {
	dir string
	h   *hierarchy
	// fd is the directory, for clone3.
	fd *os.File
}

// new makes a group with that many bytes of memory, and no swap. If a process of it needs more,
// the kernel kills all of them.
func (g *controlGroups) new(memory int64) (*controlGroup, error) {
	c := &controlGroup{dir: g.name(strconv.FormatInt(g.number.Add(1), 10)), h: g.h}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, err
	}
	err := g.h.write(filepath.Join(c.dir, "memory.max"), strconv.FormatInt(memory, 10))
	for name, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
		// The former does not exist without swap, the latter before Linux 4.19.
		if e := g.h.write(filepath.Join(c.dir, name), value); err == nil && !errors.Is(e, os.ErrNotExist) {
			err = e
		}
	}
	if err == nil {
		c.fd, err = os.Open(c.dir)
	}
	if err != nil {
		os.Remove(c.dir)
		return nil, err
	}
	return c, nil
}

// killed reports whether the kernel killed a process of the group because of its budget, or
// because there was no memory outside of the group.
func (c *controlGroup) killed() (budget, outside bool, err error) {
	list, err := words(filepath.Join(c.dir, "memory.events"))
	if err != nil {
		return false, false, err
	}
	counts := map[string]uint64{}
	for i := 0; i+1 < len(list); i += 2 {
		if counts[list[i]], err = strconv.ParseUint(list[i+1], 10, 64); err != nil {
			return false, false, err
		}
	}
	kills, found := counts["oom_kill"]
	if !found {
		return false, false, fmt.Errorf("%s/memory.events has no oom_kill", c.dir)
	}
	// "oom" counts how often the group reached its own limit.
	return kills > 0 && counts["oom"] > 0, kills > 0 && counts["oom"] == 0, nil
}

// close kills the processes left in the group, and removes it.
func (c *controlGroup) close() {
	c.fd.Close()
	const rounds = 500
	for range rounds {
		if c.h.write(filepath.Join(c.dir, "cgroup.kill"), "1") != nil { // before Linux 5.14
			pids, err := words(filepath.Join(c.dir, "cgroup.procs"))
			for _, text := range pids {
				if pid, e := strconv.Atoi(text); err == nil && e == nil && pid > 0 {
					unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
		if err := os.Remove(c.dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
