package analysis

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// descendants starts a shell in its own process group, with a child in another group, one whose
// parent has ended, and an ordinary one. It returns the ids of the shell and of the children.
func descendants(t testing.TB) (leader int, list []int) {
	t.Helper()
	const script = `setsid sh -c 'echo $$; exec sleep 600' & (sleep 600 >/dev/null & echo $!); sleep 600 & echo $!; wait`
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	leader = cmd.Process.Pid
	t.Cleanup(func() {
		for _, pid := range append(list, leader) {
			unix.Kill(pid, unix.SIGKILL)
		}
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for len(list) < 3 && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	if len(list) < 3 {
		t.Fatalf("the shell says of three processes %v", list)
	}
	return leader, list
}

// atRest stops processes: a process that has not executed its program yet still grows.
func atRest(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range pids {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			p, err := openProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			p.close()
			if p.state == 'T' {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d does not stop: %+v", pid, p.status)
			}
		}
	}
}

// Every descendant is found: a child by its parent at once, and one whose parent ended by its
// group, at the latest when all processes are examined.
func TestFamily(t *testing.T) {
	for name, surveys := range map[string]int{"children": surveyEvery, "all processes": 1} {
		t.Run(name, func(t *testing.T) {
			if surveys > 1 && !listsChildren() {
				t.Skip("not supported here: the kernel lists no children")
			}
			leader, pids := descendants(t)
			f := newFamily(leader)
			f.surveys = surveys
			atRest(t, append(pids, leader))
			orphans := 0
			size := f.measureMemory()
			for _, pid := range pids {
				p, err := openProcess(pid)
				if err != nil {
					t.Fatal(err)
				}
				p.close()
				if p.parent != leader {
					orphans++
				} else if f.members[pid] != p.started {
					t.Errorf("the child %d is not found: %v", pid, f.members)
				}
			}
			if orphans != 1 {
				t.Errorf("%d of %v have no parent here", orphans, pids)
			}
			for range surveys {
				size = f.measureMemory()
			}
			want := int64(0)
			for _, pid := range append(pids, leader) {
				p, err := openProcess(pid)
				if err != nil {
					t.Fatal(err)
				}
				want += p.resident()
				p.close()
				if f.members[pid] != p.started {
					t.Errorf("%d is not found: %v", pid, f.members)
				}
			}
			if size <= 0 || size != want {
				t.Errorf("%d bytes, want %d", size, want)
			}
			f.kill()
			for _, pid := range pids {
				if p, err := openProcess(pid); err == nil {
					p.close()
					if p.state != 'Z' {
						t.Errorf("%d is left: %+v", pid, p.status)
					}
				}
			}
		})
	}
}

// A number that another process has by now belongs to no member.
func TestFamilyOfUsedNumbers(t *testing.T) {
	self, err := openProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self.close()
	f := &family{leader: 1 << 30, members: map[int]uint64{self.pid: self.started - 1, 1 << 30: 7}, surveys: surveyEvery}
	if size := f.measureMemory(); size != 0 || len(f.members) != 0 {
		t.Errorf("%d bytes of %v", size, f.members)
	}
}

// BenchmarkLook examines a family of four on a machine with 200 more processes.
func BenchmarkLook(b *testing.B) {
	others := exec.Command("sh", "-c", strings.Repeat("sleep 600 & ", 200)+"echo; wait")
	others.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := others.StdoutPipe()
	if err == nil {
		err = others.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		unix.Kill(-others.Process.Pid, unix.SIGKILL)
		others.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	leader, _ := descendants(b)
	f := newFamily(leader)
	began := cpuTime(b)
	for b.Loop() {
		f.measureMemory()
	}
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(len(processes())), "processes")
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
