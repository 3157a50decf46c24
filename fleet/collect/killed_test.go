package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"diagnose/fleet/collect/spool"
	"diagnose/image/collected"
	"diagnose/internal/crashtest"
)

// handlerSpool is the variable that makes this test a handler of a core on standard input.
// Cores of different handlerSignal do not look alike.
const (
	handlerSpool  = "COLLECT_TEST_SPOOL"
	handlerSignal = "COLLECT_TEST_SIGNAL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(handlerSpool); dir != "" {
		os.Exit(runHandler(dir))
	}
	crashtest.Main(m)
}

// roomy are limits that allow every core, unless it looks like another.
func roomy(window time.Duration) spool.Limits {
	return spool.Limits{Window: window, ProgramRate: 1 << 20, TotalRate: 1 << 20, ProgramBytes: 64 << 20, TotalBytes: 64 << 20, EntryBytes: 32 << 20, Handlers: 64}
}

func runHandler(dir string) int {
	s, err := spool.Open(dir, roomy(time.Hour))
	signal, _ := strconv.Atoi(os.Getenv(handlerSignal)) // 0 is that of the core
	if err == nil {
		_, err = Handle(s, os.Stdin, Crash{PID: 1 << 30, Signal: signal, Time: time.Now()})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// handlerProcess is a process that handles a core.
func handlerProcess(t *testing.T, dir, core string, signal int) *exec.Cmd {
	t.Helper()
	in, err := os.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), handlerSpool+"="+dir, fmt.Sprintf("%s=%d", handlerSignal, signal))
	cmd.Stdin, cmd.Stderr = in, new(bytes.Buffer)
	return cmd
}

func nullCore(t *testing.T) string {
	t.Helper()
	crashtest.NeedKernelCores(t)
	withFiles(t)
	return crashtest.Core(t, compile(t, "gcc", "-O1", "-Wl,--build-id"), crashtest.Run{Env: []string{"DB_PASSWORD=" + secret}})
}

// checkWhole checks that each entry is whole.
func checkWhole(t *testing.T, dir string) int {
	t.Helper()
	s, err := spool.Open(dir, roomy(0))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		facts, err := collected.Read(e.Dir)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(e.Dir, collected.CoreName))
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, z)
		if err != nil || uint64(n) != facts.Core.Kept {
			t.Errorf("%s: %d bytes of %d, %v", e.ID, n, facts.Core.Kept, err)
		}
		z.Close()
		f.Close()
		for _, o := range facts.Objects {
			if info, err := os.Stat(filepath.Join(e.Dir, collected.ObjectsName, o.File)); err != nil || info.Size() != o.Bytes {
				t.Errorf("%s: %s: %v", e.ID, o.File, err)
			}
		}
	}
	return len(entries)
}

// TestKilled: whenever a handler is killed, the entries are whole, and the next handler removes the
// rest.
func TestKilled(t *testing.T) {
	core, dir := nullCore(t), filepath.Join(t.TempDir(), "spool")
	begun, kills := time.Now(), 40
	if err := handlerProcess(t, dir, core, 1).Run(); err != nil {
		t.Fatal(err)
	}
	took, killed, partial, unfinished := time.Since(begun), 0, 0, 0
	for i := range kills {
		cmd := handlerProcess(t, dir, core, 100+i)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(took))
		cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
		list, err := os.ReadDir(filepath.Join(dir, "incoming"))
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > unfinished {
			partial++
		}
		unfinished = len(list)
	}
	before := checkWhole(t, dir)
	last := handlerProcess(t, dir, core, 2)
	if err := last.Run(); err != nil {
		t.Fatal(err, last.Stderr)
	}
	if got := checkWhole(t, dir); got != before+1 {
		t.Errorf("%d entries, and %d before", got, before)
	}
	if list, err := os.ReadDir(filepath.Join(dir, "incoming")); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	t.Logf("%d of %d were killed, %d left an unfinished entry, %d entries", killed, kills, partial, before+1)
	if killed == 0 {
		t.Error("no handler was killed")
	}
}

// TestStorm: of crashes that look alike, many at a time, one is kept and all are counted.
func TestStorm(t *testing.T) {
	const handlers, each = 8, 15
	core, dir := nullCore(t), filepath.Join(t.TempDir(), "spool")
	var wait sync.WaitGroup
	for range handlers {
		wait.Go(func() {
			for range each {
				cmd := handlerProcess(t, dir, core, 0)
				if err := cmd.Run(); err != nil {
					t.Errorf("%v: %s", err, cmd.Stderr)
				}
			}
		})
	}
	wait.Wait()
	s, err := spool.Open(dir, roomy(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	status, err := s.Status()
	if err != nil || len(status.Entries) != 1 || status.Kept != 1 || status.Refused[spool.Same] != handlers*each-1 {
		t.Fatalf("%+v, %v", status, err)
	}
	if n, err := s.Crashes(status.Entries[0]); n != handlers*each || err != nil {
		t.Errorf("%d crashes, %v", n, err)
	}
}

// TestFullDisk: on a full disk a core is not kept, nothing of it is left, the older ones stay, and the error
// says so.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not supported here: mounting a disk needs root")
	}
	core := nullCore(t)
	small := crashtest.Core(t, compile(t, "gcc", "-O0", "-static", "-Wl,--build-id"), crashtest.Run{Env: []string{"DB_PASSWORD=" + secret}})
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=2600k,mode=700"); err != nil {
		t.Skipf("not supported here: tmpfs: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	limits := roomy(time.Hour)
	s, err := spool.Open(filepath.Join(disk, "spool"), limits)
	if err != nil {
		t.Fatal(err)
	}
	if o := handle(t, s, core, Crash{PID: 1 << 30, Signal: 11}); o.Dir == "" {
		t.Fatal(o.Refused)
	}
	in, err := os.Open(small)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := Handle(s, in, Crash{PID: 1 << 30, Signal: 11}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if n := checkWhole(t, s.Dir); n != 1 {
		t.Errorf("%d entries", n)
	}
	for _, name := range []string{"incoming"} {
		if list, err := os.ReadDir(filepath.Join(s.Dir, name)); err != nil || len(list) > 0 {
			t.Errorf("%v, %v", list, err)
		}
	}
	status, err := s.Status()
	if err != nil || status.Refused[spool.Full] != 1 {
		t.Errorf("%+v, %v", status, err)
	}
	// With more room the same kind is kept: it was not counted as kept.
	if err := unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT, "size=40m"); err != nil {
		t.Fatal(err)
	}
	if o := handle(t, s, small, Crash{PID: 1 << 30, Signal: 11}); o.Dir == "" {
		t.Error(o.Refused)
	}
}
