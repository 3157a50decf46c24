package loadguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/replay/launch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// Guard guards a process from its exec until its engine starts (DG_TRAP_HELLO). Until then the
// system calls of the dynamic linker are really made, and their effects follow from the recorded
// environment: LD_AUDIT, LD_PRELOAD and LD_LIBRARY_PATH name code to load, LD_DEBUG_OUTPUT and
// LD_PROFILE_OUTPUT files to write. A recording may come from another person. So every call is
// checked, whatever caused it. Files are opened only for reading, and no devices or pipes. Code is
// mapped only from files that the recorded start has mapped. A call with an effect beyond the
// process is refused. This also confines a program that does not load the engine, although the
// manifest says so.
//
// The process has only one thread then, so the memory that a call's arguments point to does not
// change during the check.
type Guard struct {
	process  *tracee.Process
	manifest *record.Manifest
	// objects are the mappings of the recorded start, by path.
	objects map[string]*record.Mapping
	// trusted are the files that were found to be recorded ones.
	trusted map[fileID]bool
	// open is the opening whose call ends next; nil: none.
	open *opening
	// cache is the dynamic linker's recorded cache, which the process gets in the place of this
	// system's; keptCache is false for a recording without.
	cache     []byte
	keptCache bool
}

// fileID distinguishes files while they are open.
type fileID struct{ device, inode uint64 }

// New returns the guard of a process that was just executed for a recording. An error is a
// tracee.InputError: the recording is damaged.
func New(p *tracee.Process, rec *record.Recording) (*Guard, error) {
	m := rec.Manifest
	l := &Guard{process: p, manifest: m, objects: map[string]*record.Mapping{}, trusted: map[fileID]bool{}}
	var err error
	if l.cache, l.keptCache, err = rec.LinkerCache(); err != nil {
		return nil, &tracee.InputError{Err: err}
	}
	for i := range m.Start.Mappings {
		x := &m.Start.Mappings[i]
		if len(x.Path) > 0 && x.Path[0] == '/' && l.objects[string(x.Path)] == nil {
			l.objects[string(x.Path)] = x
		}
	}
	return l, nil
}

// CheckExecuted checks the result of execve(2) before the process's first instruction: the
// program, and the dynamic linker that it asks for.
func (l *Guard) CheckExecuted() error {
	want := string(l.manifest.Program.Path)
	if len(l.objects) == 0 {
		return tracee.Inputf("replay: the recording ended before its start was written down")
	}
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", l.process.PID)); err != nil {
		return fmt.Errorf("replay: %w", err)
	} else if got != want {
		return tracee.Inputf("replay: what the recording says was executed is %s, not the recorded program %s", got, want)
	}
	maps, err := tracee.ReadMaps(l.process.PID)
	if err != nil {
		return err
	}
	return l.allRecorded(maps, 0, ^uint64(0))
}

// allRecorded checks that the files mapped in a range are recorded ones.
func (l *Guard) allRecorded(maps tracee.Mappings, from, to uint64) error {
	for i := range maps {
		if m := &maps[i]; m.Start < to && from < m.End && strings.HasPrefix(m.Path, "/") {
			if err := l.recorded(m.Path, m.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// recorded checks that the recorded start has mapped the file. path is its name, and open a name
// to open it by.
func (l *Guard) recorded(path, open string) error {
	var info unix.Stat_t
	if err := unix.Stat(open, &info); err != nil {
		return tracee.Inputf("replay: %s: %w", path, err)
	}
	id := fileID{info.Dev, info.Ino}
	if l.trusted[id] {
		return nil
	}
	x := l.objects[path]
	if x == nil {
		return l.refuse("to load code from %s, which the recorded process had not loaded", path)
	}
	if in := broughtBy(path); in != "" {
		return l.refuse("to load code from %s: files that come with recordings are not executed (%s)", path, in)
	}
	same := x.File != nil && x.File.Size != 0 && info.Size == x.File.Size && info.Mtim.Nano() == x.File.MTimeNS
	if !same {
		if err := recorded.CheckBuild(open, x.BuildID); err != nil {
			var input *tracee.InputError
			errors.As(err, &input)
			return tracee.Inputf("%s: %w", path, err)
		}
	}
	if err := sameContents(path, open, x.File); err != nil {
		return err
	}
	l.trusted[id] = true
	return nil
}

// sameContents compares a file that all users may change with the recorded digest: sizes,
// times and build-ids are easily made equal. path is its name, open a name to open it by.
func sameContents(path, open string, recorded *record.File) error {
	shared, err := record.SharedFile(path)
	switch {
	case err != nil:
		return tracee.Inputf("replay: %w", err)
	case shared != record.SharedByAll:
		return nil
	case recorded == nil || recorded.SHA256 == "":
		return tracee.Inputf("replay: all users may change %s or replace it, and the recording has no digest of it: "+
			"change the permissions of the file or of its directories", path)
	}
	sum, err := record.FileSum(open)
	if err != nil {
		return tracee.Inputf("replay: %s: %w", path, err)
	}
	if sum != recorded.SHA256 {
		return tracee.Inputf("replay: all users may change %s or replace it, and it has another digest than it had in the recording", path)
	}
	return nil
}

// broughtBy returns the recording or corpus that a file is in; empty: none. The files in it may
// have come from elsewhere.
func broughtBy(path string) string {
	there := func(dir, name string) bool {
		info, err := os.Lstat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if there(dir, record.ManifestName) && there(dir, record.LogName) || there(dir, "corpus.db") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// refuse returns the error for a refused request, with the variables that may have caused it.
func (l *Guard) refuse(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	var names []string
	for _, r := range l.manifest.EnvironmentRisks() {
		names = append(names, r.Variable)
	}
	if len(names) > 0 {
		text += "; its recorded environment has " + strings.Join(names, ", ")
	}
	return tracee.Inputf("replay: before the recorder starts in it, the program wants %s", text)
}

// CheckCall checks a system call at its start, and reverts changes to it at its end.
func (l *Guard) CheckCall(t *tracee.Thread) error {
	call, err := ptrace.GetCall(t.TID)
	switch {
	case errors.Is(err, unix.EIO):
		return &launch.UnsupportedError{What: "the kernel does not tell a tracer of system calls (PTRACE_GET_SYSCALL_INFO, Linux 5.3)", Err: err}
	case err != nil:
		return err
	case call.Op == ptrace.CallExit:
		o := l.open
		l.open = nil
		return o.ended(l.process, t)
	}
	err = l.allowed(t, call)
	if err != nil { // the call must not be made even if the process is killed
		if regs, e := ptrace.GetRegisters(t.TID); e == nil {
			regs.Orig_rax = ^uint64(0)
			ptrace.SetRegisters(t.TID, &regs)
		}
	}
	return err
}

const archX8664 = 0xc000003e // AUDIT_ARCH_X86_64 of linux/audit.h

// harmless are calls that change nothing beyond the process whatever their arguments are. Dynamic
// linkers make them, and the engine before it starts.
var harmless = []uint64{
	unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_PREADV, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_DUP,
	unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS,
	unix.SYS_ACCESS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINK, unix.SYS_READLINKAT, unix.SYS_GETCWD, unix.SYS_GETDENTS64,
	unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE,
	unix.SYS_ARCH_PRCTL, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_FUTEX, unix.SYS_SCHED_YIELD,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRANDOM, unix.SYS_GETRLIMIT, unix.SYS_GETRUSAGE, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_TIME, unix.SYS_GETTIMEOFDAY, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// Descriptors that can be written to are the null device or Common.Echo.
	unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64,
}

func (l *Guard) allowed(t *tracee.Thread, call *ptrace.Call) error {
	if call.Arch != archX8664 {
		return l.refuse("to make a system call of another architecture")
	}
	switch a := &call.Args; call.Number {
	case unix.SYS_OPEN:
		return l.opens(t, openCall{directory: unix.AT_FDCWD, path: a[0], flags: a[1], register: flagsOfOpen})
	case unix.SYS_OPENAT:
		return l.opens(t, openCall{directory: int32(a[0]), path: a[1], flags: a[2], register: flagsOfOpenat})
	case unix.SYS_MMAP:
		if a[2]&unix.PROT_EXEC != 0 && a[3]&unix.MAP_ANONYMOUS == 0 {
			return l.mapped(uint32(a[4]))
		}
		return nil
	case unix.SYS_MPROTECT:
		if a[2]&unix.PROT_EXEC == 0 {
			return nil
		}
		maps, err := tracee.ReadMaps(l.process.PID)
		if err != nil {
			return err
		}
		return l.allRecorded(maps, a[0], a[0]+a[1])
	case unix.SYS_FCNTL:
		if slices.Contains([]uint64{unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL}, a[1]) {
			return nil
		}
	case unix.SYS_PRLIMIT64:
		if a[2] == 0 {
			return nil
		}
	case unix.SYS_PRCTL:
		if slices.Contains([]uint64{unix.PR_SET_VMA, unix.PR_GET_NAME, unix.PR_GET_DUMPABLE, unix.PR_GET_TID_ADDRESS, unix.PR_GET_THP_DISABLE}, a[0]) {
			return nil
		}
	}
	if slices.Contains(harmless, call.Number) {
		return nil
	}
	return l.refuse("to make the system call %s(%#x)", eventlog.SyscallName(call.Number), call.Args[0])
}

// mapped checks that a file that code is mapped from is a recorded one.
func (l *Guard) mapped(fd uint32) error {
	link := fmt.Sprintf("/proc/%d/fd/%d", l.process.PID, fd)
	path, err := os.Readlink(link)
	if err != nil {
		return nil // no such descriptor: the call fails
	}
	return l.recorded(path, link)
}
