package privateroot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	noFollow = unix.O_NOFOLLOW
	// inside is the directory of the root that has the tool.
	inside = "/.diagnose"
	// temporary is for temporary files. /tmp has the files that were recorded there.
	temporary = inside + "/tmp"
	// entering is the name by which a command of Wrap starts itself.
	entering = "diagnose-private-root"
	// statusFailed is the exit status of a command that could not be started inside: that of a shell
	// that cannot execute.
	statusFailed = 126
)

// UnsupportedError says what this machine or tool cannot do.
type UnsupportedError struct {
	What string
	Err  error // nil: none
}

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return "private root: " + e.What
	}
	return fmt.Sprintf("private root: %s: %v", e.What, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// entry is what a process needs to enter a root.
type entry struct {
	Root            string
	Shown, Writable []string
	Args            []string
	Directory       string
}

// Wrap changes a command of this tool so that it runs in the root, whatever the path of its program
// is. It runs as the user that this process has, or as the user and group with these ids if this
// process is root's; it has no rights beyond those, and cannot get any. The files of the root and
// those that are shown must be readable for that user, and of this process's environment it sees
// only what concerns language and terminal.
func (r *Root) Wrap(cmd *exec.Cmd, uid, gid int) error {
	self, err := r.Tool, error(nil)
	if self == "" {
		self, err = os.Executable()
	}
	if err != nil {
		return fmt.Errorf("private root: %w", err)
	}
	if err := checkStatic(self); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		uid, gid = os.Geteuid(), os.Getegid()
	} else if uid == 0 {
		return &UnsupportedError{What: "root's replays need another user to run as"}
	}
	if err := r.mountPoints(); err != nil {
		return fmt.Errorf("private root: %w", err)
	}
	text, err := json.Marshal(entry{Root: r.Dir, Shown: r.Shown, Writable: r.Writable, Args: cmd.Args, Directory: cmd.Dir})
	if err != nil {
		return fmt.Errorf("private root: %w", err)
	}
	cmd.Err = nil // of looking for the command's program, which does not matter
	cmd.Path, cmd.Args, cmd.Dir, cmd.Env = self, []string{entering, string(text)}, "/", harmless(cmd.Environ())
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	a := cmd.SysProcAttr
	a.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	a.GidMappingsEnableSetgroups = os.Geteuid() == 0
	a.Credential = &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: os.Geteuid() != 0}
	return nil
}

// mountPoints makes the places at which the tool, and the files of this machine that are shown, appear. The user
// that enters it may not change its files.
func (r *Root) mountPoints() error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.WriteFile(local(inside+"/diagnose"), nil, 0o644); err != nil {
		return err
	}
	for _, p := range slices.Concat(r.Shown, r.Writable) {
		if !inRoot(p) {
			return fmt.Errorf("%s cannot be shown in a private root", p)
		}
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		if info.IsDir() {
			err = root.MkdirAll(local(p), 0o755)
		} else if err = root.MkdirAll(local(filepath.Dir(p)), 0o755); err == nil {
			err = root.WriteFile(local(p), nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// harmless returns the variables that a command may see. Others may be secrets of this machine.
func harmless(environ []string) (kept []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "LC_") || slices.Contains([]string{"LANG", "TZ", "TERM", "NO_COLOR", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK"}, name) {
			kept = append(kept, v)
		}
	}
	return kept
}

// checkStatic refuses a program that needs libraries of this machine: there are none in a root.
func checkStatic(program string) error {
	file, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("private root: %w", err)
	}
	defer file.Close()
	if _, interpreter := namesOf(file); interpreter != "" {
		return &UnsupportedError{What: "this diagnose needs shared libraries; build it with CGO_ENABLED=0, or with -tags=netgo,osusergo as make does"}
	}
	return nil
}

// Init enters a root, in a process that a command of Wrap started. It does not return there, and does
// nothing elsewhere. The program calls it first.
func Init() {
	if len(os.Args) != 2 || os.Args[0] != entering {
		return
	}
	var e entry
	err := json.Unmarshal([]byte(os.Args[1]), &e)
	if err == nil {
		err = e.enter()
	}
	status := statusFailed
	if err == nil {
		status, err = e.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "diagnose: private root:", err)
	}
	os.Exit(status)
}

// enter makes the process's mounts and changes its root. It has the rights for that in its own
// namespaces.
func (e *entry) enter() error {
	if len(e.Args) == 0 {
		return errors.New("no command")
	}
	tool, err := os.Executable()
	if err != nil {
		return err
	}
	private := func(flags uintptr) error { return unix.Mount("none", "/", "", flags, "") }
	if err := private(unix.MS_REC | unix.MS_PRIVATE); err != nil {
		return fmt.Errorf("mounts of one's own: %w", err)
	}
	if err := unix.Mount(e.Root, e.Root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("%s: %w", e.Root, err)
	}
	if err := e.devices(); err != nil {
		return err
	}
	if err := bind(tool, filepath.Join(e.Root, inside, "diagnose"), true); err != nil {
		return err
	}
	for _, p := range e.Shown {
		if err := bind(p, filepath.Join(e.Root, p), true); err != nil {
			return err
		}
	}
	for _, p := range e.Writable {
		if err := bind(p, filepath.Join(e.Root, p), false); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(e.Root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	old := filepath.Join(e.Root, inside)
	if err := unix.PivotRoot(e.Root, filepath.Join(old, "old")); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := errors.Join(unix.Chdir("/"), unix.Unmount(inside+"/old", unix.MNT_DETACH)); err != nil {
		return err
	}
	if err := unix.Mount("none", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	return nil
}

// devices gives the root the devices without effects, and memory for temporary files.
func (e *entry) devices() error {
	dev := filepath.Join(e.Root, "dev")
	for at, options := range map[string]string{dev: "mode=755,size=64k", filepath.Join(e.Root, temporary): "mode=1777,size=1g"} {
		if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID, options); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		if err := bind("/dev/"+name, filepath.Join(dev, name), false); err != nil {
			return err
		}
	}
	return os.Mkdir(filepath.Join(dev, "shm"), 0o1777)
}

// bind shows a file or directory at another place. Below /dev, which is the namespace's own,
// there are no mount points yet.
func bind(from, to string, readOnly bool) error {
	if err := mountPoint(from, to); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if !readOnly {
		return nil
	}
	// A mount of a user namespace keeps the flags that the machine's has (mount_namespaces(7)).
	var now unix.Statfs_t
	if err := unix.Statfs(to, &now); err != nil {
		return err
	}
	kept := uintptr(now.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
	if err := unix.Mount("none", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept, ""); err != nil {
		return fmt.Errorf("%s: read-only: %w", from, err)
	}
	return nil
}

func mountPoint(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(to, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, nil, 0o644)
}

// run runs the command to its end, and reaps what it leaves: this process is the first of its
// namespace, and when it ends the kernel kills all others.
func (e *entry) run() (status int, err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	pid, err := e.start()
	if err != nil {
		return statusFailed, err
	}
	go func() {
		for s := range signals {
			unix.Kill(pid, s.(syscall.Signal))
		}
	}()
	for {
		var w unix.WaitStatus
		ended, err := unix.Wait4(-1, &w, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return statusFailed, fmt.Errorf("wait: %w", err)
		case ended == pid && w.Signaled():
			return 128 + int(w.Signal()), nil
		case ended == pid && w.Exited():
			return w.ExitStatus(), nil
		}
	}
}

// start starts the command without any right of the namespace's root, and without a way to get one.
func (e *entry) start() (int, error) {
	runtime.LockOSThread() // rights are a thread's, and the child gets those of this one
	defer runtime.UnlockOSThread()
	for right := uintptr(0); right <= unix.CAP_LAST_CAP; right++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return 0, fmt.Errorf("rights: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("rights: %w", err)
	}
	directory := e.Directory
	if directory == "" {
		directory = "/"
	}
	return syscall.ForkExec(inside+"/diagnose", e.Args, &syscall.ProcAttr{Dir: directory, Env: append(os.Environ(), "HOME="+temporary, "TMPDIR="+temporary), Files: []uintptr{0, 1, 2}})
}
