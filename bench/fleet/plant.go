package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/evidence"
	"diagnose/fleet/engine"
	"diagnose/fleet/work"
	"diagnose/reports"
)

const serverPort = "4222"

// plant is a server with workers on a network of their own.
type plant struct {
	dir     string
	net     *network
	self    string // this program
	server  int    // its host
	process *exec.Cmd
	workers []*labourer
	killer  *os.File // a pipe; poison names its worker there, to have it killed
	group   sync.WaitGroup
	done    chan struct{} // closed when workers are not started again
}

// labourer is a worker that is started again when it ends.
type labourer struct {
	host int

	mu      sync.Mutex
	process *os.Process // nil: it is not running
	starts  int
}

// newPlant starts a server and workers.
func newPlant(ctx context.Context, workers int) (*plant, error) {
	net, err := newNetwork()
	if err != nil {
		return nil, err
	}
	p := &plant{net: net, done: make(chan struct{})}
	if err := p.start(ctx, workers); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *plant) start(ctx context.Context, workers int) error {
	var err error
	if p.self, err = os.Executable(); err != nil {
		return err
	}
	// The analyses' users must be able to reach their program.
	if p.dir, err = os.MkdirTemp("", "bench-fleet-"); err != nil {
		return err
	}
	if err := os.Chmod(p.dir, 0o711); err != nil {
		return err
	}
	if err := p.prepare(); err != nil {
		return err
	}
	if p.killer, err = os.OpenFile(p.file("killer"), os.O_RDWR, 0); err != nil {
		return err
	}
	if p.server, err = p.net.add(); err != nil {
		return err
	}
	if err := p.startServer(); err != nil {
		return err
	}
	for range workers {
		host, err := p.net.add()
		if err != nil {
			return err
		}
		w := &labourer{host: host}
		p.workers = append(p.workers, w)
		p.group.Go(func() { p.keep(w) })
	}
	p.group.Go(p.poison)
	return ctx.Err()
}

// prepare makes the program that stands for diagnose, its report, and its log.
func (p *plant) prepare() error {
	source := filepath.Join(p.dir, "diagnose.c")
	if err := os.WriteFile(source, []byte(diagnoseSource), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("cc", "-O1", "-o", p.file("diagnose"), source).CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, out)
	}
	report, err := os.Create(p.file("report.json"))
	if err != nil {
		return err
	}
	defer report.Close()
	c := &evidence.Case{Program: evidence.Program{Exe: "/srv/bin/bench"}, Stacks: []evidence.ThreadGroup{},
		Failure: evidence.Failure{Kind: evidence.Abort, Sentence: "abort in bench", Proof: evidence.FromCore, Site: &evidence.Site{PC: 1, Module: "/srv/bin/bench", Function: "bench"}}}
	err = reports.Write(report, c, reports.Options{Format: reports.JSON, Version: benchVersion})
	return errors.Join(err, os.Chmod(report.Name(), 0o644), os.WriteFile(p.file("log"), nil, 0o666), os.Chmod(p.file("log"), 0o666),
		unix.Mkfifo(p.file("killer"), 0o666), os.Chmod(p.file("killer"), 0o666))
}

func (p *plant) file(name string) string { return filepath.Join(p.dir, name) }

func (p *plant) url() string { return "nats://" + p.net.address(p.server) + ":" + serverPort }

func (p *plant) startServer() error {
	p.process = p.net.command(p.server, p.self, roleServer, p.file("store"), p.net.address(p.server)+":"+serverPort)
	p.process.Stderr = os.Stderr
	p.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p.process.Start()
}

// killServer kills the server, and starts it again after a while.
func (p *plant) killServer(away time.Duration) error {
	p.process.Process.Kill()
	p.process.Wait()
	time.Sleep(away)
	return p.startServer()
}

// keep starts a worker whenever it is not running.
func (p *plant) keep(w *labourer) {
	for {
		cmd := p.net.command(w.host, p.self, roleWorker, p.url(), p.dir, p.file("diagnose"))
		cmd.Env = append(os.Environ(), "FLEET_LOG="+p.file("log"), "FLEET_REPORT="+p.file("report.json"), "FLEET_KILLER="+p.file("killer"))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "fleet:", err)
			return
		}
		w.mu.Lock()
		w.process = cmd.Process
		w.starts++
		w.mu.Unlock()
		cmd.Wait()
		w.mu.Lock()
		w.process = nil
		w.mu.Unlock()
		select {
		case <-p.done:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// kill kills a worker, and reports whether it ran.
func (w *labourer) kill() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process != nil && w.process.Kill() == nil
}

// killOne kills a worker at random. If none runs it waits for one, until the night is over.
func (p *plant) killOne(over chan struct{}) bool {
	for {
		for _, n := range rand.Perm(len(p.workers)) {
			if p.workers[n].kill() {
				return true
			}
		}
		select {
		case <-over:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// poison kills the workers that a poisonous failure names.
func (p *plant) poison() {
	for lines := bufio.NewScanner(p.killer); lines.Scan(); {
		for _, w := range p.workers {
			if pid := w.pid(); pid != 0 && lines.Text() == strconv.Itoa(pid) {
				w.kill()
			}
		}
	}
}

func (w *labourer) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return 0
	}
	return w.process.Pid
}

func (p *plant) close() {
	close(p.done)
	for ended := false; !ended; time.Sleep(20 * time.Millisecond) {
		ended = true
		for _, w := range p.workers {
			ended = !w.kill() && ended
		}
	}
	if p.killer != nil {
		p.killer.Close()
	}
	p.group.Wait()
	if p.process != nil && p.process.Process != nil {
		p.process.Process.Kill()
		p.process.Wait()
	}
	p.net.close()
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// fill makes a corpus with failures, which say what their diagnosis does.
func (p *plant) fill(ctx context.Context, name string, what []string) (*corpus.Corpus, error) {
	c, err := corpus.Create(ctx, p.file(name))
	if err != nil {
		return nil, err
	}
	core := p.file(name + ".core")
	for i, text := range what {
		head := make([]byte, 64) // of an ELF core for x86-64
		copy(head, "\x7fELF\x02\x01\x01")
		head[16], head[18] = 4, 62
		if err := os.WriteFile(core, fmt.Appendf(head, "%s %d\n", text, i), 0o600); err != nil {
			return nil, err
		}
		if _, err := c.Add(ctx, core, corpus.AddOptions{}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// night diagnoses a corpus.
func (p *plant) night(ctx context.Context, c *corpus.Corpus, claim time.Duration, progress func(nightly.Progress)) (*nightly.Run, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	k, err := work.Coordinate(ctx, e, work.CoordinatorOptions{Version: benchVersion, Scratch: c.Scratch, Claim: claim})
	if err != nil {
		return nil, err
	}
	defer k.Close()
	return nightly.Diagnose(ctx, nightly.Options{Corpus: c, Version: benchVersion, Since: 24 * time.Hour, Jobs: 256, Time: time.Minute, Memory: 1 << 30, Remote: k, Progress: progress})
}

// connect waits for the server.
func (p *plant) connect(ctx context.Context) (*engine.Engine, error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		e, err := engine.Connect(ctx, engine.Options{URL: p.url(), Team: benchTeam})
		if err == nil || time.Now().After(deadline) {
			return e, err
		}
	}
}

// executions returns how often each failure's diagnosis began.
func (p *plant) executions() (map[string]int, error) {
	text, err := os.ReadFile(p.file("log"))
	if err != nil {
		return nil, err
	}
	set := map[string]int{}
	for line := range strings.Lines(string(text)) {
		set[line]++
	}
	return set, nil
}
