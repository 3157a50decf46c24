package loadguard

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/tracee"
)

// openCall is a call of open(2) or openat(2).
type openCall struct {
	directory int32  // base of a relative path; AT_FDCWD for open(2)
	path      uint64 // the address of the name
	flags     uint64
	register  openRegisters
}

// openRegisters returns the registers of the path and of the flags.
type openRegisters func(regs *ptrace.Registers) (path, flags *uint64)

func flagsOfOpen(r *ptrace.Registers) (path, flags *uint64)   { return &r.Rdi, &r.Rsi }
func flagsOfOpenat(r *ptrace.Registers) (path, flags *uint64) { return &r.Rsi, &r.Rdx }

// opening is a call to open a file. Until its end the process makes it with changed arguments, or
// not at all.
type opening struct {
	// regs are the process's own. The kernel does not change the argument registers.
	regs ptrace.Registers
	// errno is the result of a call that is not made; 0: it is made.
	errno unix.Errno
	// file is the file that is opened. The process opens it through this descriptor of ours, so it
	// gets the file that was checked, whatever its name refers to by then.
	file *os.File
	// at is the address of that descriptor's name in the process. It replaces bytes.
	at    uint64
	bytes []byte
}

// opens allows files to be opened for reading. For a file that is opened for writing the process
// gets the null device, so that a process that had LD_DEBUG_OUTPUT in its environment has a
// descriptor, as recorded. Anything but a file or directory does not exist for the process:
// opening a device or a pipe has effects, and may block for ever.
func (l *Guard) opens(t *tracee.Thread, call openCall) error {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	o := &opening{regs: regs}
	const effects = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	if call.flags&effects != unix.O_RDONLY {
		regs.Orig_rax, regs.Rdi = unix.SYS_DUP, 0
	} else if o.file, o.errno, err = l.lookUp(call); err != nil {
		return err
	} else if o.errno != 0 {
		regs.Orig_rax = ^uint64(0)
	} else if err := o.redirect(l.process, &regs, call); err != nil {
		o.file.Close()
		return err
	}
	l.open = o
	return ptrace.SetRegisters(t.TID, &regs)
}

// redirect makes the call open the file that was found.
func (o *opening) redirect(p *tracee.Process, regs *ptrace.Registers, call openCall) error {
	const redZone = 128 // System V ABI for AMD64, 3.2.2
	name := append(fmt.Appendf(nil, "/proc/%d/fd/%d", os.Getpid(), o.file.Fd()), 0)
	o.at = regs.Rsp - redZone - uint64(len(name))
	o.bytes = make([]byte, len(name))
	if _, err := p.Memory.ReadAt(o.bytes, int64(o.at)); err != nil {
		return err
	}
	if _, err := p.Memory.WriteAt(name, int64(o.at)); err != nil {
		return err
	}
	path, flags := call.register(regs)
	*path = o.at
	*flags &^= unix.O_NOFOLLOW // find has not followed a link, but this name is one
	return nil
}

// ended reverts the changes to a call, and sets the result of a call that was not made.
func (o *opening) ended(p *tracee.Process, t *tracee.Thread) error {
	if o == nil {
		return nil
	}
	if o.file != nil {
		o.file.Close()
	}
	if len(o.bytes) > 0 {
		if _, err := p.Memory.WriteAt(o.bytes, int64(o.at)); err != nil {
			return err
		}
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	regs.Rdi, regs.Rsi, regs.Rdx = o.regs.Rdi, o.regs.Rsi, o.regs.Rdx
	if o.errno != 0 {
		regs.Rax = uint64(-int64(o.errno))
	}
	return ptrace.SetRegisters(t.TID, &regs)
}

// lookUp looks up the file that a call is to open, as the process would, without opening
// it: O_PATH of open(2). errno is the result of the call if it must not be made.
func (l *Guard) lookUp(call openCall) (file *os.File, errno unix.Errno, err error) {
	text, err := l.process.Memory.String(call.path, unix.PathMax)
	if err != nil {
		return nil, unix.EFAULT, nil
	}
	if l.keptCache && string(text) == record.LinkerCachePath {
		return l.recordedCache()
	}
	from := -1
	if !strings.HasPrefix(string(text), "/") {
		at := fmt.Sprintf("/proc/%d/cwd", l.process.PID)
		if call.directory != unix.AT_FDCWD {
			at = fmt.Sprintf("/proc/%d/fd/%d", l.process.PID, call.directory)
		}
		if from, err = unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return nil, unix.ENOENT, nil
		}
		defer unix.Close(from)
	}
	fd, err := openPath(from, l.ownProc(string(text)), call.flags)
	if err != nil {
		if found, ok := err.(unix.Errno); ok {
			return nil, found, nil
		}
		return nil, 0, fmt.Errorf("replay: %s: %w", text, err)
	}
	if errno = openable(fd, call.flags); errno != 0 {
		unix.Close(fd)
		return nil, errno, nil
	}
	return os.NewFile(uintptr(fd), string(text)), 0, nil
}

// recordedCache returns a file with the contents that the linker's cache had when the program was
// recorded. What is loaded by it is checked like everything else.
func (l *Guard) recordedCache() (file *os.File, errno unix.Errno, err error) {
	if len(l.cache) == 0 {
		return nil, unix.ENOENT, nil
	}
	fd, err := unix.MemfdCreate("ld.so.cache", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, 0, fmt.Errorf("replay: memfd_create: %w", err)
	}
	file = os.NewFile(uintptr(fd), record.LinkerCachePath)
	if _, err := file.Write(l.cache); err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("replay: the dynamic linker's cache: %w", err)
	}
	return file, 0, nil
}

// ownProc makes a path in the process's own directory of /proc valid for this process.
func (l *Guard) ownProc(path string) string {
	for _, own := range []string{"/proc/self/", "/proc/thread-self/"} {
		if rest, found := strings.CutPrefix(path, own); found {
			return fmt.Sprintf("/proc/%d/%s", l.process.PID, rest)
		}
	}
	return path
}

// openPath does not follow links to open files of a process, which openat2(2) calls magic links. A
// kernel or sandbox without that call follows them. The file found is checked in any case.
func openPath(from int, path string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags&(unix.O_DIRECTORY|unix.O_NOFOLLOW), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(from, path, &how)
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Openat(from, path, int(how.Flags), 0)
	}
	return fd, err
}

// quiet are the devices that can be opened and read without an effect: null, zero, full, random
// and urandom of the memory devices (Documentation/admin-guide/devices.txt).
var quiet = []uint64{unix.Mkdev(1, 3), unix.Mkdev(1, 5), unix.Mkdev(1, 7), unix.Mkdev(1, 8), unix.Mkdev(1, 9)}

// openable returns the error for a file that must not be opened; 0: it may be.
func openable(fd int, flags uint64) unix.Errno {
	var info unix.Stat_t
	var system unix.Statfs_t
	if unix.Fstat(fd, &info) != nil || unix.Fstatfs(fd, &system) != nil {
		return unix.ENOENT
	}
	switch kind := info.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR,
		kind == unix.S_IFREG && readable(int64(system.Type), info.Mode),
		kind == unix.S_IFCHR && slices.Contains(quiet, info.Rdev):
		return 0
	case kind == unix.S_IFLNK && flags&unix.O_PATH == 0:
		return unix.ELOOP
	}
	return unix.ENOENT
}

// readable reports whether reading a file has no effect. Some files of the kernel, such as those
// of tracing, are consumed by reading them. In proc and sysfs only privileged users may read such
// files.
func readable(system int64, mode uint32) bool {
	switch system {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC:
		return mode&unix.S_IROTH != 0
	case unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC:
		return false
	}
	return true
}
