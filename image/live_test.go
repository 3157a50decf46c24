package image

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/procmaps"
)

// attach opens a live process, and skips where tracing is not allowed.
func attach(t testing.TB, pid int) *Process {
	t.Helper()
	p, err := OpenLive(pid, Options{})
	if errors.Is(err, os.ErrPermission) {
		t.Skip("not supported here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLive(t *testing.T) {
	running := startWaiting(t)
	p := attach(t, running.cmd.Process.Pid)
	if len(p.Threads) != 3 || p.Failing != -1 || p.Program.PID != running.cmd.Process.Pid {
		t.Errorf("%d threads, failing %d, %+v", len(p.Threads), p.Failing, p.Program)
	}
	var names []string
	for i := range p.Threads {
		thread := &p.Threads[i]
		names = append(names, thread.Ref.Name)
		if thread.Registers.PC() == 0 || thread.Registers.FSBase == 0 || thread.Registers.Vector == nil || thread.Signal != nil {
			t.Errorf("thread %+v", thread)
		}
		if site := p.Symbolize(thread.Registers.PC(), AtInstruction)[0].Site; site.Function == "" {
			t.Errorf("no function at %v", thread.Registers.PC())
		}
		if place := p.Place(thread.Registers.SP()); place.TID != thread.Ref.TID {
			t.Errorf("stack pointer of thread %d is %s", thread.Ref.TID, place.Text)
		}
	}
	if !slices.Contains(names, "waiter") || !slices.Contains(names, "waiting") {
		t.Errorf("thread names %q", names)
	}
	if v := global(t, p, "marker"); v != 0x5eed {
		t.Errorf("marker is %#x", v)
	}
	if p.Exe == nil || p.Exe.Object == nil || len(severe(p)) > 0 {
		t.Errorf("executable %+v, limits %+v", p.Exe, p.AllLimits())
	}
	exercise(p)
	if s := stateOf(t, running.cmd.Process.Pid); s != 't' {
		t.Errorf("state %c while it is read", s)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	running.answers(t)
}

// stateOf returns the state letter of a process's first thread.
func stateOf(t testing.TB, pid int) byte {
	t.Helper()
	s, err := readStatus(pid)
	if err != nil {
		t.Fatal(err)
	}
	return s.state[0]
}

// waitState waits until a process is in a state; the change takes a moment.
func waitState(t testing.TB, pid int, want byte) {
	t.Helper()
	for range 2000 {
		if stateOf(t, pid) == want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("process %d is in state %c, want %c", pid, stateOf(t, pid), want)
}

func TestLiveStoppedStaysStopped(t *testing.T) {
	running := startWaiting(t)
	pid := running.cmd.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitState(t, pid, 'T')
	p := attach(t, pid)
	if len(p.Threads) != 3 {
		t.Errorf("%d threads", len(p.Threads))
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	waitState(t, pid, 'T')
	for range 20 { // it must stay so
		time.Sleep(time.Millisecond)
		if s := stateOf(t, pid); s != 'T' {
			t.Fatalf("a stopped process is in state %c afterwards", s)
		}
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	running.answers(t)
}

// TestLiveFailedAnalysis: the process is resumed after an error, too.
func TestLiveFailedAnalysis(t *testing.T) {
	running := startWaiting(t)
	tr := newTracer(running.cmd.Process.Pid)
	if err := tr.do(tr.stopAll); err != nil {
		tr.detach()
		t.Skip("not supported here: ", err)
	}
	_, err := OpenLive(running.cmd.Process.Pid, Options{})
	if err == nil || !strings.Contains(err.Error(), "already traced by process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("attaching twice: %v", err)
	}
	if err := tr.detach(); err != nil {
		t.Error(err)
	}
	running.answers(t)
	// Once more, with an error between the stop and the end.
	pid := running.cmd.Process.Pid
	tr = newTracer(pid)
	status, err := readStatus(pid)
	if err != nil {
		t.Fatal(err)
	}
	tr.pid = 1 << 30 // no such process
	if _, err := openStopped(tr, &status, Options{}); err == nil {
		t.Error("a process that does not exist was opened")
	}
	tr.detach()
	running.answers(t)
}

// TestLiveMakesThreads attaches while threads come and go.
func TestLiveMakesThreads(t *testing.T) {
	exe := compileText(t, "churn.c", `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *ends(void *arg) { return arg; }
static void *churns(void *arg)
{
	for (;;) {
		pthread_t t;
		if (pthread_create(&t, 0, ends, 0) == 0)
			pthread_join(t, 0);
	}
	return arg;
}
int main(void)
{
	char line[100];
	pthread_t t;
	alarm(300);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, 0, churns, 0);
	do {
		puts("here");
		fflush(stdout);
	} while (fgets(line, sizeof line, stdin));
	_exit(0);
}`, "-pthread")
	running := startInferior(t, exe)
	for range 10 {
		p := attach(t, running.cmd.Process.Pid)
		tids, err := listTasks(running.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, tid := range tids {
			s, err := readStatus(tid)
			if err == nil && !s.zombie() && s.state[0] != 't' {
				t.Errorf("thread %d is in state %s", tid, s.state)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		running.answers(t)
	}
}

func TestLiveDeletedExecutable(t *testing.T) {
	exe := compileText(t, "waiting.c", waitingSource, "-pthread")
	running := startInferior(t, exe)
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	p := attach(t, running.cmd.Process.Pid)
	if p.Exe == nil || p.Exe.Object == nil || p.Exe.Path != exe+deletedSuffix {
		t.Errorf("executable %+v, limits %+v", p.Exe, p.AllLimits())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLiveErrors(t *testing.T) {
	wants := func(pid int, part string) {
		t.Helper()
		_, err := OpenLive(pid, Options{})
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("process %d: %v, want %q", pid, err, part)
		}
	}
	wants(os.Getpid(), "this program itself")
	wants(0, "no process id")
	wants(1<<22+1, "there is no process")

	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitState(t, cmd.Process.Pid, 'Z')
	wants(cmd.Process.Pid, "zombie")
	cmd.Wait()

	if s, err := readStatus(2); err == nil && s.name == "kthreadd" {
		wants(2, "kernel thread")
	}
}

// TestLiveOfAnotherUser: the error gives the reason.
func TestLiveOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not supported here: only root can become another user")
	}
	running := startWaiting(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	helper := filepath.Join("/tmp", "image-live-"+running.pid())
	copyFile(t, self, helper)
	defer os.Remove(helper)
	cmd := exec.Command(helper, "-test.run=^TestHelperAttach$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "ATTACH_TO="+running.pid())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "may not be traced") {
		t.Errorf("%v\n%s", err, out)
	}
	running.answers(t)
}

// TestHelperAttach is not a test: TestLiveOfAnotherUser runs it as another
// user.
func TestHelperAttach(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv("ATTACH_TO"))
	if err != nil {
		t.Skip("not supported here: run by TestLiveOfAnotherUser only")
	}
	_, err = OpenLive(pid, Options{})
	os.Stdout.WriteString("\n" + err.Error() + "\n")
}

// TestPendingSignalArrives stops a thread just before a signal's delivery.
func TestPendingSignalArrives(t *testing.T) {
	exe := compileText(t, "signals.c", `
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t got;
static void count(int s) { got += s != 0; }
int main(void)
{
	char line[100];
	alarm(300);
	signal(SIGUSR1, count);
	do {
		puts("here");
		fflush(stdout);
	} while (fgets(line, sizeof line, stdin) && line[0] != 'q');
	printf("%d\n", got);
	fflush(stdout);
	return 0;
}`)
	running := startInferior(t, exe)
	const rounds = 20
	for range rounds {
		done := make(chan struct{})
		go func() {
			unix.Kill(running.cmd.Process.Pid, unix.SIGUSR1)
			close(done)
		}()
		p := attach(t, running.cmd.Process.Pid)
		<-done
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		running.answers(t)
	}
	if _, err := running.in.Write([]byte("q\n")); err != nil {
		t.Fatal(err)
	}
	running.expect(t, strconv.Itoa(rounds))
}

// TestPendingSignalOutlivesTracer ends the tracing thread without detaching, as
// the death of the whole program does.
func TestPendingSignalOutlivesTracer(t *testing.T) {
	exe := compileText(t, "usr1.c", `
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	alarm(300);
	puts("here");
	fflush(stdout);
	for (;;)
		pause();
}`)
	running := startInferior(t, exe)
	pid := running.cmd.Process.Pid
	tr := newTracer(pid)
	err := tr.do(func() error {
		if err := ptraceCall(ptraceSeize, pid, 0); err != nil {
			return err
		}
		if err := unix.Kill(pid, unix.SIGUSR1); err != nil {
			return err
		}
		tr.await([]int{pid})
		return nil
	})
	if errors.Is(err, unix.EPERM) {
		t.Skip("not supported here: ", err)
	}
	if err != nil || len(tr.threads) != 1 || tr.threads[0].pending != int(unix.SIGUSR1) {
		t.Fatalf("the signal was not stopped at: %v, %+v", err, tr.threads)
	}
	close(tr.calls)
	<-tr.ended
	waitState(t, pid, 'Z') // to wait for it while it is traced would take the signal away
	err = running.cmd.Wait()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != unix.SIGUSR1 {
		t.Errorf("the process ended with %v, want death by its signal", err)
	}
}

func TestMappingsOf(t *testing.T) {
	text := "00400000-00401000 r--p 00000000 fe:00 7                     /a b/c (deleted)\n" +
		"00401000-00402000 r-xp 00001000 fe:00 7                     /with\\012line\n" +
		"00500000-00600000 rw-p 00000000 00:00 0 \n" +
		"00501000-00502000 rw-p 00000000 00:00 0 \n" + // read again after a change
		"7ffd0000-7ffe0000 rw-p 00000000 00:00 0                     [stack]\n"
	lines, err := procmaps.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	list := mappingsOf(lines)
	want := []Mapping{
		{Start: 0x400000, End: 0x401000, Perms: "r--", Path: "/a b/c (deleted)"},
		{Start: 0x401000, End: 0x402000, Perms: "r-x", Path: "/with\nline", Offset: 0x1000},
		{Start: 0x500000, End: 0x600000, Perms: "rw-"},
		{Start: 0x7ffd0000, End: 0x7ffe0000, Perms: "rw-", Path: "[stack]"},
	}
	if !slices.Equal(list, want) {
		t.Errorf("got %+v", list)
	}
}

// TestLiveUninterruptible: a parent that waits in vfork cannot be stopped by
// signals or debuggers.
func TestLiveUninterruptible(t *testing.T) {
	exe := compileText(t, "vforks.c", `
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char c;
	alarm(300);
	puts("here");
	fflush(stdout);
	if (vfork() == 0)
		_exit(read(0, &c, 1) != 1);
	puts("after");
	fflush(stdout);
	return 0;
}`)
	running := startInferior(t, exe)
	pid := running.cmd.Process.Pid
	waitState(t, pid, 'D')
	status, err := readStatus(pid)
	if err != nil {
		t.Fatal(err)
	}
	tr := newTracer(pid)
	tr.limit = 50 * time.Millisecond
	_, err = openStopped(tr, &status, Options{})
	if err == nil || !strings.Contains(err.Error(), "did not stop within 50ms") || !strings.Contains(err.Error(), "state is D") {
		t.Errorf("a thread in vfork: %v", err)
	}
	if err := tr.detach(); err != nil {
		t.Error(err)
	}
	if _, err := running.in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	running.expect(t, "after")
}

// TestLiveWithoutFirstThread attaches to the threads that still run after
// main's thread has ended.
func TestLiveWithoutFirstThread(t *testing.T) {
	exe := compileText(t, "ended.c", `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int marker = 0x5eed;
static void *answers(void *arg)
{
	char line[100];
	pthread_join(*(pthread_t *)arg, 0);
	do {
		puts("here");
		fflush(stdout);
	} while (fgets(line, sizeof line, stdin));
	exit(0);
}
int main(void)
{
	static pthread_t self;
	pthread_t t;
	alarm(300);
	self = pthread_self();
	pthread_create(&t, 0, answers, &self);
	pthread_exit(0);
}`, "-pthread")
	running := startInferior(t, exe)
	waitState(t, running.cmd.Process.Pid, 'Z')
	p := attach(t, running.cmd.Process.Pid)
	if len(p.Threads) != 1 || p.Exe == nil || p.Exe.Object == nil || global(t, p, "marker") != 0x5eed {
		t.Errorf("%d threads, executable %+v, limits %+v", len(p.Threads), p.Exe, p.AllLimits())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	running.answers(t)
}

// TestLive32Bit refuses a 32-bit program before it stops it.
func TestLive32Bit(t *testing.T) {
	code := []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7} // pause(2), again and again
	le := binary.LittleEndian
	const base, headers = 0x8048000, 52 + 32
	b := make([]byte, headers, headers+len(code))
	copy(b, "\x7fELF\x01\x01\x01")
	for at, v := range map[int]uint16{16: 2, 18: 3, 40: 52, 42: 32, 44: 1} {
		le.PutUint16(b[at:], v)
	}
	size := uint32(headers + len(code))
	for at, v := range map[int]uint32{20: 1, 24: base + headers, 28: 52, 52: 1, 60: base, 68: size, 72: size, 76: 5, 80: pageSize} {
		le.PutUint32(b[at:], v)
	}
	exe := path(t, "small")
	if err := os.WriteFile(exe, append(b, code...), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	if err := cmd.Start(); err != nil {
		t.Skip("not supported here: ", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := OpenLive(cmd.Process.Pid, Options{}); err == nil || !strings.Contains(err.Error(), "only x86-64") {
		t.Errorf("a 32-bit process: %v", err)
	}
}

// The advice differs: root is not told to become root.
func TestAttachErrorSaysWhatToDo(t *testing.T) {
	err := attachError(4711, new(procStatus), unix.EPERM)
	want := "run as its owner or as root"
	switch {
	case os.Geteuid() == 0:
		want = "CAP_SYS_PTRACE"
	case yamaScope() > 0:
		want = "ptrace_scope"
	}
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
}
