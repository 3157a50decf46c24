package work

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
)

// WorkerOptions are the options of a worker.
type WorkerOptions struct {
	// Version, Command and Environ are those of analysis.Options.
	Version string
	Command []string
	Environ []string
	// Jobs is how many jobs are done at once.
	Jobs int
	// Dir is a directory for the files of jobs. It must be the worker's own.
	Dir string
	// Confine restricts the analyses; nil: they may do what this process may.
	Confine analysis.Confiner
	// Idle ends the worker when it had nothing to do for so long; 0: never.
	Idle time.Duration
	// Progress is called, one call at a time, when a job is begun and when it is done; it may be
	// nil.
	Progress func(Step)
}

// Step is a job that is begun or done.
type Step struct {
	Job *Job
	// Result is the result; nil: the job is begun, or Err says why there is none.
	Result *Result
	// Dropped says that another worker's result was there before.
	Dropped bool
	Err     error
}

// worker does jobs until its context ends.
type worker struct {
	WorkerOptions
	board    *board
	analyser *analysis.Analyser
	menu     *menu
	name     string // of the worker, unique
	host     string
	idle     idleness

	mu sync.Mutex // of Progress
}

// Work does jobs until the context ends, which is no error, or until it was idle for too long. Jobs
// that it does then are given back to the queue.
func Work(ctx context.Context, e *engine.Engine, o WorkerOptions) error {
	if o.Jobs < 1 || o.Dir == "" {
		return errors.New("work: jobs or directory is not set")
	}
	b, err := openBoard(ctx, e)
	if err != nil {
		return err
	}
	host, err := thisHost(o.Version)
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	w := &worker{WorkerOptions: o, board: b, name: rand.Text(), menu: newMenu(b, host)}
	if w.host, err = os.Hostname(); err != nil {
		return fmt.Errorf("work: %w", err)
	}
	w.analyser, err = analysis.Open(analysis.Options{Version: o.Version, Command: o.Command, Environ: o.Environ, Scratch: w.scratch, Confine: o.Confine})
	if err != nil {
		return err
	}
	defer w.analyser.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := b.classes.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	defer watch.Stop()
	w.idle.begin(o.Idle, cancel)
	var group sync.WaitGroup
	group.Go(func() { w.menu.follow(ctx, watch, w.name) })
	for slot := range o.Jobs {
		group.Go(func() { w.serve(ctx, slot) })
	}
	group.Wait()
	return nil
}

// scratch makes a directory for one purpose.
func (w *worker) scratch() (string, func(), error) {
	dir, err := os.MkdirTemp(w.Dir, "job-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // a confined analysis passes through
	}
	return dir, func() { os.RemoveAll(dir) }, err
}

// serve does one job after the other.
func (w *worker) serve(ctx context.Context, slot int) {
	for turn := slot; ctx.Err() == nil; turn++ {
		m, claim := w.menu.next(ctx, turn)
		if m == nil {
			continue
		}
		w.idle.busy()
		w.do(ctx, m, claim)
		w.idle.rest()
	}
}

// do does the job of a message, and acknowledges it when its result is stored.
func (w *worker) do(ctx context.Context, m jetstream.Msg, claim time.Duration) {
	defer extend(m, claim)()
	id := m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:]
	if !idForm.MatchString(id) {
		m.TermWithReason("its subject has no id of a job")
		return
	}
	job, err := decodeJob(m.Data())
	if err == nil && job.ID != id {
		err = inputf("the job %s has the subject of another", job.ID)
	}
	if err != nil { // no worker of this version can read it
		w.settle(ctx, m, w.blank(id, err.Error()), &Job{ID: id})
		return
	}
	w.tell(Step{Job: job})
	earlier, err := w.begin(ctx, m, id)
	switch {
	case errors.Is(err, errDone):
		m.DoubleAck(ctx)
		return
	case err != nil: // the engine is away
		m.Nak()
		w.tell(Step{Job: job, Err: err})
		return
	case len(earlier) >= mostTries:
		w.settle(ctx, m, w.aside(id, earlier), job)
		return
	}
	r, err := w.analyse(ctx, job)
	if err != nil {
		w.failed(ctx, m, job, earlier, err)
		return
	}
	r.Tries = earlier
	w.settle(ctx, m, r, job)
}

// extend keeps the claim on a message until the returned function is called.
func extend(m jetstream.Msg, claim time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(max(claim/3, 10*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				m.InProgress() // if the server is away, the next one counts
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// blank is a result without a report.
func (w *worker) blank(id, reason string) *Result {
	r := &Result{Version: JobVersion, Job: id, Diagnose: w.Version, Reason: short(reason), Started: time.Now().UTC(),
		Worker: nightly.FleetWorker{Name: w.name, Host: w.host}}
	by, why := w.analyser.Enforcement()
	r.Worker.MemoryBy, r.Worker.MemoryWhy = by, short(why)
	confined, why := w.analyser.Confinement()
	r.Worker.Confined, r.Worker.FreeWhy = confined, short(why)
	return r
}

// analyse fetches the files of a job, and analyses the failure.
func (w *worker) analyse(ctx context.Context, job *Job) (*Result, error) {
	dir, discard, err := w.scratch()
	if err != nil {
		return nil, err
	}
	defer discard()
	f := analysis.Failure{Kind: job.Kind, Time: job.Time, Memory: job.Memory}
	for i, files := range append([]Files{job.Failure}, job.Passing...) {
		tree := filepath.Join(dir, fmt.Sprintf("tree-%d", i))
		if err := w.board.engine.GetTree(ctx, files.Tree, tree, engine.Limits{}); err != nil {
			return nil, err
		}
		f.Needed = append(f.Needed, tree)
		if inside := filepath.Join(tree, filepath.FromSlash(files.Inside)); i == 0 {
			f.Dir = inside
		} else {
			f.Passing = append(f.Passing, inside)
		}
	}
	found, err := w.analyser.Analyse(ctx, f)
	if err != nil {
		return nil, err
	}
	return w.result(ctx, job, found, dir)
}

// result makes the document of what an analysis found. A large report becomes a tree.
func (w *worker) result(ctx context.Context, job *Job, found *corpus.Result, dir string) (*Result, error) {
	r := w.blank(job.ID, found.Reason)
	r.Started, r.Took, r.CPU, r.Memory = found.Started, found.Took, found.CPU, found.Memory
	if !found.Diagnosed {
		return r, nil
	}
	packed, err := pack(found.Report)
	if err != nil || len(packed) <= mostInline {
		r.Report = packed
		return r, err
	}
	own := filepath.Join(dir, "report")
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(own, reportName), found.Report, 0o600); err != nil {
		return nil, err
	}
	r.Tree, err = w.board.engine.PutTree(ctx, own, nil)
	return r, err
}

// storeFor is how long a result is kept for a server that is away.
const storeFor = time.Hour

// settle stores the result of a job, if it is the first one, and then acknowledges the job. A
// worker that is told to end still stores a finished result.
func (w *worker) settle(ctx context.Context, m jetstream.Msg, r *Result, job *Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeFor)
	defer cancel()
	for {
		first, err := w.board.create(ctx, w.board.results, r.Job, r)
		var away *engine.UnreachableError
		if errors.As(err, &away) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			_, err = engine.Request(ctx, w.board.engine, func(ctx context.Context) (struct{}, error) { return struct{}{}, ackOnce(ctx, m) })
		}
		w.tell(Step{Job: job, Result: r, Dropped: !first, Err: err})
		return
	}
}

// ackOnce acknowledges a message. One that was acknowledged before is fine.
func ackOnce(ctx context.Context, m jetstream.Msg) error {
	err := m.DoubleAck(ctx)
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return err
}

func (w *worker) tell(s Step) {
	if w.Progress == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Progress(s)
}
