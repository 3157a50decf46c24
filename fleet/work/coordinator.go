package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
)

// CoordinatorOptions are the options of a Coordinator.
type CoordinatorOptions struct {
	// Version is the version of diagnose that the workers must have.
	Version string
	// Scratch makes an empty directory; discard removes it.
	Scratch func() (dir string, discard func(), err error)
	// Claim is how long a worker's claim holds without a sign of life; 0 is 30 s.
	Claim time.Duration
	// Patience is how long to wait for a worker that can do a job; 0 is 2 minutes.
	Patience time.Duration
}

const (
	defaultClaim    = 30 * time.Second
	defaultPatience = 2 * time.Minute
	// auditEvery is how often a job that has no result yet is looked for in the queue: a watch
	// may miss a result, and an administrator may empty a queue.
	auditEvery = 20 * time.Second
	// resultEvery is how many seconds pass between looks for a result that no watch has told of.
	resultEvery = 3
	// senders is how many failures are sent to the engine at once.
	senders = 4
	// mostPending is how many jobs of a class may be claimed at once.
	mostPending = 10_000
)

// Coordinator has the failures of a night analysed by workers. It is a nightly.Remote.
type Coordinator struct {
	CoordinatorOptions
	board    *board
	watchers []jetstream.KeyWatcher
	stop     context.CancelFunc // of the signs of life
	roster   *roster
	sending  chan struct{}

	mu      sync.Mutex
	waiting map[string]chan struct{} // by job, told that there may be a result
	sent    map[nightly.Place]string // trees of passing recordings
	classes map[string]Needs
	fleet   nightly.Fleet
	workers map[string]*nightly.FleetWorker
}

// Coordinate begins to coordinate. The engine stays the caller's.
func Coordinate(ctx context.Context, e *engine.Engine, o CoordinatorOptions) (*Coordinator, error) {
	if o.Version == "" || o.Scratch == nil {
		return nil, errors.New("work: version or scratch is not set")
	}
	if o.Claim <= 0 {
		o.Claim = defaultClaim
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	b, err := openBoard(ctx, e)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{CoordinatorOptions: o, board: b, roster: newRoster(), sending: make(chan struct{}, senders), waiting: map[string]chan struct{}{},
		sent: map[nightly.Place]string{}, classes: map[string]Needs{}, workers: map[string]*nightly.FleetWorker{}}
	c.fleet.Engine = e.URL()
	var living context.Context
	living, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.watch(ctx); err != nil {
		c.Close()
		return nil, err
	}
	go c.beat(living)
	return c, nil
}

// Close ends the watches. Jobs that were withdrawn are not in the queue any more.
func (c *Coordinator) Close() {
	c.stop()
	for _, w := range c.watchers {
		w.Stop()
	}
}

// watch follows the results and the workers.
func (c *Coordinator) watch(ctx context.Context) error {
	for _, f := range []struct {
		bucket jetstream.KeyValue
		note   func(jetstream.KeyValueEntry)
	}{
		{c.board.results, func(k jetstream.KeyValueEntry) { c.wake(k.Key()) }},
		{c.board.workers, c.roster.note},
	} {
		w, err := f.bucket.WatchAll(context.WithoutCancel(ctx))
		if err != nil {
			return fmt.Errorf("work: %w", err)
		}
		c.watchers = append(c.watchers, w)
		go func() {
			for k := range w.Updates() {
				if k != nil && k.Operation() == jetstream.KeyValuePut {
					f.note(k)
				}
			}
		}()
	}
	return nil
}

// beat has the engine tell this process something, at times: as long as it does not, nothing is
// known of the workers.
func (c *Coordinator) beat(ctx context.Context) {
	key := rand.Text()
	for {
		c.board.put(ctx, c.board.workers, key, presence{Name: key, Coordinates: true})
		select {
		case <-ctx.Done():
			return
		case <-time.After(beatEvery):
		}
	}
}

func (c *Coordinator) wake(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if told := c.waiting[id]; told != nil {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// Analyse puts a job for a failure into the queue, and waits for its result.
func (c *Coordinator) Analyse(ctx context.Context, t nightly.Task) (*corpus.Result, error) {
	job, class, problem, err := c.job(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("work: %s: %w", t.Entry.ID, err)
	}
	if problem != nil { // of the failure
		return &corpus.Result{Diagnosis: corpus.Diagnosis{Version: c.Version, Started: time.Now().UTC(), Reason: short(problem.Error())}}, nil
	}
	told := make(chan struct{}, 1)
	c.mu.Lock()
	c.waiting[job.ID] = told
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, job.ID)
	}()
	if t.Retry {
		if err := c.Stored(ctx, t.Entry.ID); err != nil {
			return nil, err
		}
	}
	r, err := c.await(ctx, job, class, told)
	if err != nil {
		c.withdraw(ctx, class, job.ID)
		return nil, err
	}
	return c.take(ctx, t, r)
}

// job makes the job of a failure, and sends its files. problem is one of the failure.
func (c *Coordinator) job(ctx context.Context, t nightly.Task) (job *Job, class string, problem, err error) {
	select {
	case c.sending <- struct{}{}:
		defer func() { <-c.sending }()
	case <-ctx.Done():
		return nil, "", nil, ctx.Err()
	}
	needs, problem := needsOf(t.Entry.Kind, filepath.Join(t.Failure.Dir, filepath.FromSlash(t.Failure.Inside)), c.Version)
	if problem != nil {
		return nil, "", problem, nil
	}
	if class, err = c.class(ctx, needs); err != nil {
		return nil, "", nil, err
	}
	if lack, unable := c.roster.unable(class, c.Patience, time.Now()); unable {
		return nil, "", nil, &nightly.UnableError{Lack: lack}
	}
	job = &Job{Version: JobVersion, ID: jobID(t.Entry.ID, c.Version), Entry: t.Entry.ID, Program: t.Entry.Program, Kind: t.Entry.Kind,
		Needs: needs, Time: t.Time, Memory: t.Memory, Priority: t.Priority, Made: time.Now().UTC()}
	var files *engine.InputError
	if job.Failure, err = c.send(ctx, t.Failure); errors.As(err, &files) {
		return nil, "", err, nil
	} else if err != nil {
		return nil, "", nil, err
	}
	for _, p := range t.Passing {
		f, err := c.passing(ctx, p)
		switch {
		case errors.As(err, &files): // it is compared without
		case err != nil:
			return nil, "", nil, err
		default:
			job.Passing = append(job.Passing, f)
		}
	}
	return job, class, job.check(), nil
}

func (c *Coordinator) send(ctx context.Context, p nightly.Place) (Files, error) {
	ref, err := c.board.engine.PutTree(ctx, p.Dir, nil)
	return Files{ref, p.Inside}, err
}

// passing sends a recording to compare with, once a night.
func (c *Coordinator) passing(ctx context.Context, p nightly.Place) (Files, error) {
	c.mu.Lock()
	ref := c.sent[p]
	c.mu.Unlock()
	if ref != "" {
		return Files{ref, p.Inside}, nil
	}
	f, err := c.send(ctx, p)
	if err == nil {
		c.mu.Lock()
		c.sent[p] = f.Tree
		c.mu.Unlock()
	}
	return f, err
}

// class announces what jobs need, and makes the consumer of their class.
func (c *Coordinator) class(ctx context.Context, needs Needs) (string, error) {
	class, err := needs.class()
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	_, known := c.classes[class]
	c.mu.Unlock()
	if known {
		return class, nil
	}
	_, err = engine.Request(ctx, c.board.engine, func(ctx context.Context) (jetstream.Consumer, error) {
		return c.board.jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumer(class), FilterSubject: c.board.subject(class, "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.Claim,
			MaxDeliver: -1, MaxAckPending: mostPending, InactiveThreshold: keepFor,
		})
	})
	if err != nil {
		return "", err
	}
	// Workers look for the consumer when they see the class.
	if err := c.board.put(ctx, c.board.classes, class, needs); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.classes[class] = needs
	return class, nil
}

// await queues a job, and waits for a result.
func (c *Coordinator) await(ctx context.Context, job *Job, class string, told chan struct{}) (*Result, error) {
	audit := time.NewTicker(auditEvery)
	defer audit.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for ensure, looks := true, 0; ; {
		r, err := c.result(ctx, job.ID)
		if r != nil || err != nil {
			return r, err
		}
		if ensure {
			if err := c.enqueue(ctx, job, class); err != nil {
				return nil, err
			}
			ensure = false
		}
	wait:
		for {
			select {
			case <-told:
				break wait
			case <-audit.C:
				m, err := c.board.queued(ctx, class, job.ID)
				if err != nil {
					return nil, err
				}
				// The worker stores the result first, so that it is there if the message is not.
				ensure = m == nil
				break wait
			case <-look.C:
				if lack, unable := c.roster.unable(class, c.Patience, time.Now()); unable {
					return nil, &nightly.UnableError{Lack: lack}
				}
				if looks++; looks%resultEvery == 0 {
					break wait
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

// result reads the result of a job; nil: there is none. One that cannot be used is removed, so
// that the job is done again.
func (c *Coordinator) result(ctx context.Context, id string) (*Result, error) {
	k, err := c.board.get(ctx, c.board.results, id)
	if k == nil || err != nil {
		return nil, err
	}
	r, err := decodeResult(id, k.Value())
	if err == nil && r.Diagnose != c.Version {
		err = inputf("the result is of diagnose %.80q", r.Diagnose)
	}
	if err != nil {
		return nil, c.board.remove(ctx, c.board.results, id)
	}
	return r, nil
}

// enqueue puts a job into the queue, unless it is there.
func (c *Coordinator) enqueue(ctx context.Context, job *Job, class string) error {
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	// If the answer is lost, the message is published again, perhaps after a worker finished it.
	// The stream knows it by this id.
	once := jetstream.WithMsgID(job.ID + "-" + rand.Text())
	_, err = engine.Request(ctx, c.board.engine, func(ctx context.Context) (struct{}, error) {
		_, err := c.board.engine.JetStream().Publish(ctx, c.board.subject(class, job.ID), text, once)
		if isQueued(err) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// isQueued reports whether an error says that the subject has a message. The limits of a stream
// have one code, and the server tells them apart only by their description.
func isQueued(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && server.ErrorIdentifier(api.ErrorCode) == server.JSStreamStoreFailedF && api.Description == server.ErrMaxMsgsPerSubject.Error()
}

// withdraw takes a job out of the queue. A worker that has it finishes it, and the next night
// finds the result.
func (c *Coordinator) withdraw(ctx context.Context, class, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if m, err := c.board.queued(ctx, class, id); err == nil && m != nil {
		c.board.jobs.DeleteMsg(ctx, m.Sequence) // or it is worked on in vain
	}
}

// take makes of a worker's result what the corpus stores, and counts it.
func (c *Coordinator) take(ctx context.Context, t nightly.Task, r *Result) (*corpus.Result, error) {
	report, err := c.report(ctx, r)
	var input *engine.InputError
	var bad *InputError
	if err != nil && !errors.As(err, &input) && !errors.As(err, &bad) {
		return nil, err
	}
	var out *corpus.Result
	if err == nil {
		out, err = r.finish(report)
	}
	if err != nil { // of this result
		out = &corpus.Result{Diagnosis: corpus.Diagnosis{Version: c.Version, Started: time.Now().UTC(), Reason: short(fmt.Sprintf("what the worker %s sent: %v", r.Worker.Name, err))}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workers[r.Worker.Name]
	if w == nil {
		w = &r.Worker
		w.Failures = 0
		c.workers[w.Name] = w
	}
	w.Failures++
	if len(r.Tries) > 0 {
		c.fleet.Repeated++
	}
	if r.SetAside {
		c.fleet.SetAside = append(c.fleet.SetAside, nightly.SetAside{Entry: t.Entry.ID, Program: t.Entry.Name(), Tries: r.Tries})
	}
	return out, nil
}

// report returns the report that a result has or leads to; nil: there is none.
func (c *Coordinator) report(ctx context.Context, r *Result) ([]byte, error) {
	switch {
	case r.Report != nil:
		return unpack(r.Report)
	case r.Tree == "":
		return nil, nil
	}
	scratch, discard, err := c.Scratch()
	if err != nil {
		return nil, err
	}
	defer discard()
	dir := filepath.Join(scratch, "report")
	if err := c.board.engine.GetTree(ctx, r.Tree, dir, engine.Limits{Files: 1, Bytes: analysis.MostReport}); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, reportName))
	if errors.Is(err, os.ErrNotExist) {
		err = inputf("the result's tree has no %s", reportName)
	}
	return text, err
}

// Stored forgets the result of an entry, and the tries.
func (c *Coordinator) Stored(ctx context.Context, entry string) error {
	id := jobID(entry, c.Version)
	return errors.Join(c.board.remove(ctx, c.board.results, id), c.board.remove(ctx, c.board.tries, id))
}

// Fleet describes the work so far.
func (c *Coordinator) Fleet() *nightly.Fleet {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fleet
	f.Workers = []nightly.FleetWorker{}
	for _, w := range c.workers {
		f.Workers = append(f.Workers, *w)
	}
	sortWorkers(f.Workers)
	return &f
}
