package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/load"
)

// timeout ends a run that hangs.
const timeout = 4 * time.Minute

// sample is what one run cost, in seconds; a server's by request.
type sample struct {
	wall     float64 // until the command ended; a server's: of its load
	cpu      float64 // of all processes
	program  float64 // without those of diagnose
	messages string
	requests float64
}

// way is how a program is run.
type way struct {
	name    string
	wrapper []string // command that the program is an argument of
	build   string   // how own programs are built for it
	share   int      // of a hundred: how much of the work it is given
	env     []string
}

// launcher starts programs by launcher/cost.c.
type launcher struct {
	dir, cost, diagnose, cache string
}

// job is one run of a program.
type job struct {
	argv []string
	env  []string
	dir  string
	// serve, if set, is called while the program runs; then it is ended. It
	// returns the number of requests that the cost is divided by, and how long
	// they took.
	serve func() (float64, time.Duration, error)
}

// warm builds the agent's libraries, and has the objects that most programs
// load analysed, as one run before has done.
func (l *launcher) warm() {
	for _, verb := range []string{"run", "record"} {
		cmd := exec.Command(l.diagnose, verb, "--", "/bin/true")
		cmd.Dir, cmd.Env = l.dir, l.environment(l.dir)
		cmd.Run() // the first program will report an error
	}
}

func (l *launcher) environment(home string) []string {
	return append(load.Environment(home), "XDG_CACHE_HOME="+l.cache, "PYTHONHASHSEED=0")
}

// rr says what rr makes of this machine.
func (l *launcher) rr() string {
	cmd := exec.Command("rr", "record", "-n", "-o", filepath.Join(l.dir, "rr"), "/bin/true")
	cmd.Dir, cmd.Env = l.dir, l.environment(l.dir)
	defer os.RemoveAll(filepath.Join(l.dir, "rr"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "it can run here: `rr record` by hand beside these programs"
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return fmt.Sprintf("cannot run here: %v: %s", err, text)
}

func (l *launcher) launch(j job, w way) (sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.cost, append(append([]string{}, w.wrapper...), j.argv...)...)
	cmd.Dir = j.dir
	cmd.Env = append(append(l.environment(l.dir), j.env...), w.env...)
	// The group dies with a run that took too long, not only its leader.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	report, write, err := os.Pipe()
	if err != nil {
		return sample{}, err
	}
	defer report.Close()
	cmd.ExtraFiles = []*os.File{write}
	var messages bytes.Buffer
	cmd.Stderr = &messages
	err = cmd.Start()
	write.Close()
	if err != nil {
		return sample{}, err
	}
	s, err := finish(j, bufio.NewReader(report))
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	if ctx.Err() != nil {
		return sample{}, fmt.Errorf("did not end within %v", timeout)
	}
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, load.Tail(messages.String()))
	}
	s.messages = messages.String()
	return s, nil
}

// finish reads the launcher's report.
func finish(j job, report *bufio.Reader) (sample, error) {
	var pid, status int
	if _, err := fmt.Fscanf(report, "%d\n", &pid); err != nil {
		return sample{}, fmt.Errorf("launcher: %w", err)
	}
	requests, served := 1.0, time.Duration(0)
	var failed error
	if j.serve != nil {
		requests, served, failed = j.serve()
		syscall.Kill(pid, syscall.SIGTERM) // it is gone already if it crashed
	}
	var wall, cpu, tool int64
	if _, err := fmt.Fscanf(report, "%d %d %d %d\n", &wall, &cpu, &tool, &status); err != nil && failed == nil {
		failed = fmt.Errorf("launcher: %w", err)
	}
	// A server may die of the signal that ends it.
	if failed == nil && status != 0 && (j.serve == nil || status != 128+int(syscall.SIGTERM)) {
		failed = fmt.Errorf("exit status %d", status)
	}
	if failed != nil {
		return sample{}, failed
	}
	if j.serve != nil {
		wall = served.Microseconds() // how soon a server starts and ends is of no interest
	}
	const micro = 1e-6
	return sample{wall: float64(wall) * micro / requests, cpu: float64(cpu) * micro / requests,
		program: float64(cpu-tool) * micro / requests, requests: requests}, nil
}
