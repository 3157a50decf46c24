package corpus

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// changing are the system calls that change files.
var changing = map[uint64]bool{
	unix.SYS_WRITE: true, unix.SYS_PWRITE64: true, unix.SYS_FSYNC: true, unix.SYS_FDATASYNC: true, unix.SYS_FTRUNCATE: true,
	unix.SYS_RENAME: true, unix.SYS_RENAMEAT: true, unix.SYS_RENAMEAT2: true, unix.SYS_UNLINK: true, unix.SYS_UNLINKAT: true, unix.SYS_RMDIR: true,
	unix.SYS_MKDIR: true, unix.SYS_MKDIRAT: true, unix.SYS_OPENAT: true, unix.SYS_FLOCK: true, unix.SYS_FCHMOD: true,
}

// killedAt runs a command and kills it at its n-th system call that changes files,
// before that is done. It returns false if the command ended by itself.
func killedAt(t *testing.T, cmd *exec.Cmd, n int) bool {
	t.Helper()
	killed, _ := traced(t, cmd, n)
	return killed
}

// traced is killedAt that also counts the calls.
func traced(t *testing.T, cmd *exec.Cmd, n int) (killed bool, calls int) {
	t.Helper()
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	inside, tid, signal := map[int]bool{}, pid, 0
	for {
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
		var err error
		if tid, err = unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil); err != nil {
			t.Fatal(err)
		}
		signal = 0
		switch {
		case status.Exited() || status.Signaled():
			if tid != pid {
				continue // a thread's end: the next PtraceSyscall finds it gone
			}
			if !killed && status.ExitStatus() != 0 {
				t.Fatalf("%v failed by itself: %v", cmd.Args, status)
			}
			return killed, calls
		case status.Stopped() && status.StopSignal() == unix.SIGTRAP|0x80:
			inside[tid] = !inside[tid]
			var regs unix.PtraceRegs
			if !inside[tid] || unix.PtraceGetRegs(tid, &regs) != nil || !changing[regs.Orig_rax] ||
				regs.Orig_rax == unix.SYS_OPENAT && regs.Rdx&(unix.O_CREAT|unix.O_TRUNC) == 0 {
				continue
			}
			if calls++; calls == n {
				killed = true
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		case status.Stopped() && status.StopSignal() != unix.SIGTRAP && status.StopSignal() != unix.SIGSTOP:
			signal = int(status.StopSignal())
		}
	}
}

// everyCall reports whether to kill at every system call rather than at some.
func everyCall() bool { return os.Getenv("DIAGNOSE_MATRIX") == "full" }

// An addition that is killed before any of its system calls leaves the corpus intact, with the
// entry or without it, and the next addition adds it.
func TestKilledWhileAdding(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "corpus")
	before, name := recording(t, filepath.Join(from, "before"), 0), recording(t, filepath.Join(from, "r"), 1)
	c, err := Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	first := add(t, c, before)
	c.Close()
	_, calls := traced(t, adder(dir, name), 0)
	if calls < 20 {
		t.Fatalf("an addition makes %d calls", calls)
	}
	with, without := 0, 0
	for n := 1; n <= calls; n++ {
		// The transaction and its end are in the last third.
		if !everyCall() && n%7 != 0 && (n < calls*2/3 || n%2 != 0) {
			continue
		}
		c, err := Change(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range listed(t, c, Filter{}) {
			if e.ID != first {
				if err := c.Remove(t.Context(), e.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Close()
		killedAt(t, adder(dir, name), n) // or it ends: the runtime's own calls differ by a few
		if c, err = Change(t.Context(), dir); err != nil {
			t.Fatalf("killed at call %d: %v", n, err)
		}
		switch entries := whole(t, c); {
		case len(entries) == 1 && entries[0].ID == first:
			without++
			add(t, c, name)
		case len(entries) == 2 && entries[0].Labels["host"] == "ci-1":
			with++
		default:
			t.Errorf("%+v", entries)
		}
		if entries := whole(t, c); len(entries) != 2 || t.Failed() {
			t.Fatalf("killed at call %d, and added again: %+v", n, entries)
		}
		c.Close()
	}
	if without < 5 || everyCall() && with == 0 {
		t.Errorf("of %d calls: %d kills without the entry, %d with it", calls, without, with)
	}
	t.Logf("of %d calls: %d kills without the entry, %d with it", calls, without, with)
}

// So does the first addition, which creates the corpus.
func TestKilledWhileCreating(t *testing.T) {
	stride := 9
	if everyCall() {
		stride = 1
	}
	name := recording(t, filepath.Join(t.TempDir(), "r"), 1)
	above := t.TempDir()
	for n := 1; ; n += stride {
		dir := filepath.Join(above, "corpus")
		if !killedAt(t, adder(dir, name), n) {
			if n < 3*stride {
				t.Errorf("it took %d calls", n)
			}
			return
		}
		c, err := Create(t.Context(), dir)
		if err != nil {
			t.Fatalf("killed at call %d: %v", n, err)
		}
		whole(t, c)
		add(t, c, name)
		if entries := whole(t, c); len(entries) != 1 || t.Failed() {
			t.Fatalf("killed at call %d and added again: %+v", n, entries)
		}
		c.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A full disk fails the addition and nothing else.
func TestFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := unix.Mount("none", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	defer unix.Unmount(small, unix.MNT_DETACH)
	c, err := Create(t.Context(), filepath.Join(small, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from := t.TempDir()
	first := add(t, c, recording(t, filepath.Join(from, "first"), 0))
	large := recording(t, filepath.Join(from, "large"), 1)
	data := make([]byte, 4<<20)
	for i := range data {
		data[i] = 1
	}
	if err := os.WriteFile(filepath.Join(large, "data"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(t.Context(), large, AddOptions{Move: true}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(large, "data")); err != nil {
		t.Errorf("a file that was not added was moved: %v", err)
	}
	if e := whole(t, c); len(e) != 1 || e[0].ID != first {
		t.Errorf("%+v", e)
	}
	// If not even the database has room, it is not changed.
	full := filepath.Join(small, "full")
	if err := os.WriteFile(full, data, 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("%v", err)
	}
	if _, err := c.Add(t.Context(), recording(t, filepath.Join(from, "second"), 2), AddOptions{}); err == nil {
		t.Error("added to a full disk")
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	add(t, c, recording(t, filepath.Join(from, "second"), 2))
	if n := len(whole(t, c)); n != 2 {
		t.Errorf("%d entries", n)
	}
}
