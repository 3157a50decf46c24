package analysis

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family is a process with all its descendants, including those with their own process groups:
// replayed programs have such groups.
type family struct {
	leader  int
	members map[int]uint64 // start times, to detect a reused number
	// Every so many looks examine all processes; the others only the members' children.
	surveys int
	looks   int
}

// surveyEvery is the number of looks until all processes are examined: a child whose parent
// ended is not the child of a known process, but may be in the group.
const surveyEvery = 10

// newFamily returns the family of a process that was not waited for yet.
func newFamily(leader int) *family {
	f := &family{leader: leader, members: map[int]uint64{}, surveys: 1}
	if listsChildren() {
		f.surveys = surveyEvery
	}
	if p, err := openProcess(leader); err == nil {
		f.members[leader] = p.started
		p.close()
	}
	return f
}

// listsChildren reports whether the kernel lists a thread's children (proc_tid_children(5): if
// built with CONFIG_PROC_CHILDREN).
var listsChildren = sync.OnceValue(func() bool {
	return unix.Access("/proc/thread-self/children", unix.R_OK) == nil
})

// measureMemory updates the members, and returns how much memory is theirs alone, in bytes.
func (f *family) measureMemory() int64 {
	if f.looks++; f.looks%f.surveys == 0 {
		f.survey()
	}
	pids := slices.Collect(maps.Keys(f.members))
	var total int64
	for len(pids) > 0 {
		pid := pids[0]
		pids = pids[1:]
		p, err := openProcess(pid)
		if err != nil {
			delete(f.members, pid)
			continue
		}
		if p.started == f.members[pid] {
			total += p.resident()
			pids = append(pids, f.adopt(p)...)
		} else { // another process has the number
			delete(f.members, pid)
		}
		p.close()
	}
	return total
}

// adopt adds the children of a member that are not known yet, and returns them.
func (f *family) adopt(parent *openedProcess) []int {
	if f.surveys == 1 {
		return nil
	}
	var list []int
	for _, pid := range parent.children() {
		if _, known := f.members[pid]; known {
			continue
		}
		p, err := openProcess(pid)
		if err != nil {
			continue
		}
		if p.parent == parent.pid { // otherwise another process has the number by now
			f.members[pid] = p.started
			list = append(list, pid)
		}
		p.close()
	}
	return list
}

// survey updates the members from all processes, and returns all processes.
func (f *family) survey() map[int]status {
	list := processes()
	for changed := true; changed; {
		changed = false
		for pid, p := range list {
			if _, known := f.members[pid]; known {
				continue
			}
			parent, there := list[p.parent]
			started, member := f.members[p.parent]
			if there && member && started == parent.started || p.group == f.leader {
				f.members[pid] = p.started
				changed = true
			}
		}
	}
	return list
}

// kill kills all members, and those that they start meanwhile. Call it before the leader is
// waited for.
func (f *family) kill() {
	const rounds = 200
	for range rounds {
		list, any := f.survey(), false
		for pid, started := range f.members {
			if p, there := list[pid]; there && p.started == started && p.state != 'Z' {
				any = true
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		if !any {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// status is the status of a process, from /proc/PID/stat (proc_pid_stat(5)).
type status struct {
	parent, group int
	state         byte
	started       uint64
}

func processes() map[int]status {
	list := map[int]status{}
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return list
	}
	defer unix.Close(dir)
	for _, pid := range numbers(dir) {
		if text, err := readAt(dir, strconv.Itoa(pid)+"/stat"); err == nil {
			if s, ok := parseStat(text); ok {
				list[pid] = s
			}
		}
	}
	return list
}

// parseStat parses the text after the name, which may contain spaces and brackets.
func parseStat(text []byte) (status, bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const state, parent, group, started = 0, 1, 2, 19
	if len(fields) <= started || len(fields[state]) != 1 {
		return status{}, false
	}
	s := status{state: fields[state][0]}
	var err1, err2, err3 error
	s.parent, err1 = strconv.Atoi(string(fields[parent]))
	s.group, err2 = strconv.Atoi(string(fields[group]))
	s.started, err3 = strconv.ParseUint(string(fields[started]), 10, 64)
	return s, err1 == nil && err2 == nil && err3 == nil
}

// openedProcess is a process by its directory in /proc. The directory stays that of the process
// when its number is reused.
type openedProcess struct {
	status
	pid, dir int
}

func openProcess(pid int) (*openedProcess, error) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &openedProcess{pid: pid, dir: dir}
	text, err := readAt(dir, "stat")
	if err == nil {
		var ok bool
		if p.status, ok = parseStat(text); !ok {
			err = unix.EINVAL
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *openedProcess) close() { unix.Close(p.dir) }

// resident returns the resident memory of a process without what it shares with files, in
// bytes; 0 for one that has ended.
func (p *openedProcess) resident() int64 {
	text, err := readAt(p.dir, "statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0
	}
	all, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (all - shared) * int64(unix.Getpagesize())
}

// children returns the children that its threads started. The kernel may leave some out while
// others end.
func (p *openedProcess) children() []int {
	tasks, err := unix.Openat(p.dir, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(tasks)
	var list []int
	for _, tid := range numbers(tasks) {
		text, err := readAt(tasks, strconv.Itoa(tid)+"/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}

// numbers returns the numeric names in a directory.
func numbers(dir int) []int {
	var list []int
	var names []string
	buffer := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(dir, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return list
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names[:0])
		for _, name := range names {
			if number, err := strconv.Atoi(name); err == nil {
				list = append(list, number)
			}
		}
	}
}

// readAt reads a file of /proc. It makes half as many system calls as os.ReadFile.
func readAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 512)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return text, err
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}
