package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// dialTime is the time limit of one attempt to connect, attemptTime that of one request, but
	// at most a quarter of the patience.
	dialTime, attemptTime = 10 * time.Second, 15 * time.Second
	// firstPause and longestPause are the pauses between attempts.
	firstPause, longestPause = 50 * time.Millisecond, 2 * time.Second
)

// Engine is a connection to JetStream for one team. Its methods may be called concurrently.
type Engine struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	team     string
	url      string // without secrets
	patience time.Duration
	waiting  waiting

	mutex   sync.Mutex
	buckets map[string]*bucket
}

// Connect connects to a server, and checks that it has JetStream for this user. The connection
// is made again by itself when it breaks. Its errors are an *InputError for wrong options, an
// *UnreachableError, and a *DeniedError.
func Connect(ctx context.Context, o Options) (*Engine, error) {
	o, err := o.checked()
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	security, err := o.security()
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e, err := connect(ctx, o, security)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return e, nil
}

// connect connects with options that were checked.
func connect(ctx context.Context, o Options, more []nats.Option) (*Engine, error) {
	e := &Engine{team: o.Team, url: Redacted(o.URL), patience: o.Patience, buckets: map[string]*bucket{}}
	options := append([]nats.Option{
		nats.Name("diagnose " + o.Team),
		nats.Timeout(dialTime),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(500 * time.Millisecond),
		nats.ReconnectBufSize(-1), // a request fails at once, and run repeats it
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		// Replies of one account's users have one subject unless each team has its own: the
		// permissions of a team leave out the others'.
		nats.CustomInboxPrefix("_INBOX." + o.Team),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				e.waiting.endAll(&DeniedError{err})
			}
		}),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { e.waiting.endAll(nats.ErrDisconnected) }),
	}, more...)
	conn, err := dial(ctx, o.URL, options)
	if err != nil {
		if err = e.sort(err); is[*DeniedError](err) || is[*InputError](err) || ctx.Err() != nil {
			return nil, err
		}
		return nil, &UnreachableError{e.url, err}
	}
	e.conn = conn
	if e.js, err = jetstream.New(conn, jetstream.WithDefaultTimeout(attemptTime)); err == nil {
		err = e.hasJetStream(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

// dial connects, and returns early if the context ends: nats.Connect takes none.
func dial(ctx context.Context, url string, options []nats.Option) (*nats.Conn, error) {
	type result struct {
		conn *nats.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := nats.Connect(url, options...)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.conn != nil {
				r.conn.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// hasJetStream fails if the server has no JetStream for this user.
func (e *Engine) hasJetStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	_, err := attempt(ctx, e, func(ctx context.Context) (struct{}, error) {
		_, err := e.js.AccountInfo(ctx)
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return inputf("the engine %s has no JetStream for this user's account: %w", e.url, err)
	case err != nil && transient(err) && ctx.Err() == nil:
		return &UnreachableError{e.url, err}
	}
	return e.sort(err)
}

// JetStream returns the interface of JetStream.
func (e *Engine) JetStream() jetstream.JetStream { return e.js }

// Team returns the team's name.
func (e *Engine) Team() string { return e.team }

// URL returns the server's URL without passwords and tokens; empty for an embedded server that
// does not listen.
func (e *Engine) URL() string { return e.url }

// Name returns the name of the team's stream or bucket of a kind: diagnose_TEAM_KIND.
func (e *Engine) Name(kind string) string { return "diagnose_" + e.team + "_" + kind }

// Subject returns the team's subject of a kind: diagnose.TEAM.KIND.
func (e *Engine) Subject(kind string) string { return "diagnose." + e.team + "." + kind }

// Close ends the connection.
func (e *Engine) Close() { e.conn.Close() }

// run performs a request, and repeats it while the server is away, for the engine's patience.
// So the request must be one that may be done twice.
func run[T any](ctx context.Context, e *Engine, request func(context.Context) (T, error)) (T, error) {
	began, pause := time.Now(), firstPause
	for {
		value, err := attempt(ctx, e, request)
		if err == nil || !transient(err) {
			return value, e.sort(err)
		}
		if ctx.Err() != nil {
			return value, context.Cause(ctx)
		}
		if time.Since(began)+pause > e.patience {
			return value, &UnreachableError{e.url, err}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return value, context.Cause(ctx)
		}
		pause = min(2*pause, longestPause)
	}
}

// attempt performs a request once, and ends it early if it will have no answer.
func attempt[T any](ctx context.Context, e *Engine, request func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, min(attemptTime, e.patience/4))
	defer cancel()
	ended, end := context.WithCancelCause(limited)
	defer end(nil)
	defer e.waiting.add(end)()
	value, err := request(ended)
	if cause := context.Cause(ended); err != nil && (is[*DeniedError](cause) || errors.Is(cause, nats.ErrDisconnected)) {
		err = cause
	}
	return value, err
}

// waiting are the requests that wait for an answer. A request that the server refuses has none,
// and neither has one whose connection broke: only the connection is told.
type waiting struct {
	mutex sync.Mutex
	next  int
	ends  map[int]context.CancelCauseFunc
}

// add adds a request, until done is called.
func (w *waiting) add(end context.CancelCauseFunc) (done func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.ends == nil {
		w.ends = map[int]context.CancelCauseFunc{}
	}
	w.next++
	n := w.next
	w.ends[n] = end
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.ends, n)
	}
}

// endAll ends all requests with an error.
func (w *waiting) endAll(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, end := range w.ends {
		end(err)
	}
}

func is[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
