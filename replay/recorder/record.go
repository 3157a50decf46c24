package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
)

// Options say what to record and what to keep.
type Options struct {
	// Path is the program's file, Args its arguments with args[0].
	Path string
	Args []string
	// Environ is the program's environment, made by agent.RecordEnvironment.
	Environ []string
	// Library is the recording library's path (agent.RecordLibrary).
	Library string
	// Output is the directory in which the recording's directory is created.
	Output string
	// Portable copies the files that the program has mapped into the recording.
	Portable bool
	// All keeps the recordings of runs that passed.
	All bool
	// MaxSize is the maximum size of a process's log and data, in bytes each; 0 is no limit. At
	// the limit the recording ends and the program continues.
	MaxSize int64
	// KeepOutput stores in the log what the program writes to its standard output and standard
	// error, for Rules.
	KeepOutput bool
	// Ignored are signals that are ignored when the program starts.
	Ignored []os.Signal
	// Signals are passed on to the program.
	Signals <-chan os.Signal
	// Prepared, unless nil, traces this run. Of several runs it traces the first.
	Prepared *Prepared
	// Hunt, unless nil, determines the order in which the program's threads run.
	Hunt *record.Hunt
	// Turns, unless nil, makes the program's threads take turns; Hunt is nil then.
	Turns *record.Turns
	// Atomics orders the program's atomic instructions too; Hunt and Turns are nil then.
	Atomics bool
	// Producer is the version of diagnose.
	Producer string
	// Warn is called with a line that the user should know; it may be nil.
	Warn func(text string)
	// Progress is called with the progress of a long analysis of the program's libraries; it
	// may be nil.
	Progress func(sites.Analysis)
}

// Result is how a recorded run ended.
type Result struct {
	PID int
	// Status is the status of the program, as from wait(2).
	Status syscall.WaitStatus
	// Dir is the recording's directory; empty if it was dropped.
	Dir     string `json:"-"`
	Outcome record.Outcome
	// Failed: the run is kept by default. Why describes which process did what.
	Failed bool
	Why    string
	// Culprit is the path in Dir of the recording of the process that failed; empty if that is
	// the recording of the program as it was started.
	Culprit string
	// Others are other child processes that failed, in the order of their ends.
	Others []FailedProcess
	// Cut: the recording ends before the process does. Empty: it has no events.
	Cut, Empty bool
	// Refused are the system calls of that process that the recorder refused.
	Refused []record.Refused
	// Running is the number of processes that the program left and that are still recorded. The
	// recording is in Dir, and may be removed or renamed when they end.
	Running int
	// Hunted is the result of Options.Hunt; nil if the program's process ended without
	// reporting it.
	Hunted *record.Hunted
}

// FailedProcess is a child process that crashed, or ended with a status other than 0 or
// by a signal.
type FailedProcess struct {
	PID     int
	Program record.Text // its executable; empty if it is not known
	Deed    string      // how it ended, from Outcome.Deed
	// Dir is the path of its recording in Result.Dir. Unrecorded: the program that it executed
	// last was not recorded; Dir, unless empty, is of an earlier one.
	Dir        string
	Unrecorded bool
}

// Run records a run of a program that has the standard streams of this process, and waits for
// its end. The program's failure is no error. A *StartError says that the program cannot be
// run, an *UnsupportedError that it cannot be recorded here. If ctx is done the program is
// killed.
func Run(ctx context.Context, o Options) (Result, error) {
	work, err := o.order()
	if err != nil {
		return Result{}, err
	}
	p := o.Prepared
	if p == nil || p.used {
		p = Prepare()
	}
	if p.used = true; p.err != nil {
		return Result{}, p.err
	}
	defer p.Close()
	if err := json.NewEncoder(p.conn).Encode(work); err != nil {
		return Result{}, fmt.Errorf("record: the tracer: %w", err)
	}
	r := &runner{options: o, tracer: p.tracer}
	return r.follow(ctx, p.conn)
}

func (o *Options) order() (*order, error) {
	if o.Hunt != nil {
		if err := o.Hunt.Check(); err != nil {
			return nil, err
		}
	}
	base, err := filepath.Abs(o.Output)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	w := &order{Path: record.Text(o.Path), Library: record.Text(o.Library), Output: record.Text(base), Args: record.Texts(o.Args),
		Environ: record.Texts(o.Environ), Group: unix.Getpgrp(), Portable: o.Portable, All: o.All, KeepOutput: o.KeepOutput,
		MaxSize: o.MaxSize, Producer: o.Producer, Hunt: o.Hunt, Turns: o.Turns, Atomics: o.Atomics}
	for _, s := range o.Ignored {
		if n, ok := s.(syscall.Signal); ok {
			w.Ignored = append(w.Ignored, int(n))
		}
	}
	return w, nil
}

// runner is the launcher's side of a run.
type runner struct {
	options Options
	tracer  *exec.Cmd
	pid     int
	early   []os.Signal // received before the program started
}

// Prepared is a tracer process that waits to be told what to record.
type Prepared struct {
	conn   net.Conn
	tracer *exec.Cmd
	err    error
	used   bool
}

// Prepare starts the process that traces, which takes as long as this process took to get here.
// Run reports its errors.
func Prepare() *Prepared {
	p := &Prepared{}
	p.conn, p.err = p.start()
	return p
}

// Close ends a process that was not used.
func (p *Prepared) Close() {
	if p.conn != nil {
		p.conn.Close()
	}
}

// start starts it in its own process group, so that signals from a terminal do not reach it
// before it can handle them (see tracer.apart). The link has any free descriptor: the program
// inherits the descriptors that this process was given, with their numbers.
func (p *Prepared) start() (net.Conn, error) {
	if !initialised {
		return nil, errors.New("record: Init was not called")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "link")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		unix.Close(pair[1])
		return nil, fmt.Errorf("record: %w", err)
	}
	p.tracer = &exec.Cmd{Path: "/proc/self/exe", Args: []string{tracerName, strconv.Itoa(pair[1])}, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setpgid: unix.Getpgrp() != 0}}
	unix.FcntlInt(uintptr(pair[1]), unix.F_SETFD, 0)
	err = p.tracer.Start()
	unix.Close(pair[1])
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("record: the tracer: %w", err)
	}
	return conn, nil
}

// follow handles the tracer's notices until the program has ended.
func (r *runner) follow(ctx context.Context, conn io.ReadWriter) (Result, error) {
	notices := make(chan notice)
	go func() {
		defer close(notices)
		for d := json.NewDecoder(conn); ; {
			var n notice
			if d.Decode(&n) != nil {
				return
			}
			notices <- n
		}
	}()
	var stopped syscall.Signal
	var since time.Time
	for {
		var settled <-chan time.Time
		if stopped != 0 {
			settled = time.After(stopDelay)
		}
		select {
		case n, open := <-notices:
			if !open {
				return Result{}, r.lost()
			}
			stopped, since = 0, time.Now()
			switch {
			case n.Failed != nil:
				return Result{}, n.Failed.err()
			case n.Ended != nil:
				n.Ended.Dir = string(n.Dir)
				go r.tracer.Wait() // it may still run
				return *n.Ended, nil
			case n.Started != 0:
				r.pid = n.Started
				for _, s := range r.early {
					r.forward(s)
				}
			case n.Warning != "" && r.options.Warn != nil:
				r.options.Warn(n.Warning)
			case n.Analysing != nil:
				if r.options.Progress != nil {
					r.options.Progress(*n.Analysing)
				}
				if n.Analysing.Ended() {
					conn.Write([]byte{'\n'}) // the tracer waits for it
				}
			case n.Stopped != 0:
				stopped = syscall.Signal(n.Stopped)
			}
		case <-settled:
			// The terminal's stop reaches this process as well. When it continues, so does the
			// program, and the notice about that will follow.
			if time.Since(since) < 4*stopDelay {
				unix.Kill(os.Getpid(), stopped)
				r.resume()
				stopped = 0
			}
			since = time.Now()
		case s := <-r.options.Signals:
			r.forward(s)
		case <-ctx.Done():
			r.forward(unix.SIGKILL)
			ctx = context.WithoutCancel(ctx)
		}
	}
}

// stopDelay is how long the program must be stopped before this process stops as well, so that
// a shell sees it.
const stopDelay = 50 * time.Millisecond

func (r *runner) forward(s os.Signal) {
	if r.pid == 0 {
		r.early = append(r.early, s)
	} else if n, ok := s.(syscall.Signal); ok {
		unix.Kill(r.pid, n) // it fails if the program ended just now
	}
}

// resume: a SIGCONT for this process is meant for the program. If it was sent to the whole
// group, the program already continues, and a second SIGCONT has no effect.
func (r *runner) resume() { r.forward(unix.SIGCONT) }

// lost: the tracer ended without a notice, so it was killed. The program continues without it.
func (r *runner) lost() error {
	err := r.tracer.Wait()
	if r.pid == 0 {
		return fmt.Errorf("record: the tracer ended: %v", err)
	}
	return fmt.Errorf("record: the tracer ended: %v; process %d continues, and is not recorded any more", err, r.pid)
}

// Declare writes to the recording of a run that ended normally why it failed, and renames the
// run's directory as for a failed run. culprit is the recording's directory in result.Dir,
// empty for that of the program as it was started.
func Declare(result *Result, culprit string, d *record.Declared) error {
	dir := filepath.Join(result.Dir, filepath.FromSlash(culprit))
	r, err := record.Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	m := *r.Manifest
	m.Outcome.Declared = d
	if err := m.Write(dir); err != nil {
		return err
	}
	result.Failed, result.Culprit, result.Outcome = true, culprit, m.Outcome
	result.Why = "the program " + d.Words()
	if culprit != "" {
		result.Why = fmt.Sprintf("its child process %d %s", m.PID, d.Words())
	}
	if base, passed := strings.CutSuffix(result.Dir, "-passed"); passed && result.Running == 0 {
		named := base + "-failed-" + string(d.Rule)
		if err := os.Rename(result.Dir, named); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		result.Dir = named
	}
	return nil
}
