package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus/nightly"
)

// errDone says that a job has a result.
var errDone = errors.New("work: the job has a result")

// begin notes that this worker tries a job, and returns the tries before it. If they are too many,
// there is no new one.
func (w *worker) begin(ctx context.Context, m jetstream.Msg, id string) ([]nightly.Try, error) {
	mine := nightly.Try{Worker: w.name, Host: w.host, Began: time.Now().UTC()}
	if meta, err := m.Metadata(); err == nil && meta.NumDelivered == 1 {
		first, err := w.board.create(ctx, w.board.tries, id, tries{List: []nightly.Try{mine}})
		if first || err != nil {
			return nil, err
		}
	}
	if k, err := w.board.get(ctx, w.board.results, id); k != nil || err != nil {
		return nil, errors.Join(err, errDoneIf(k != nil))
	}
	earlier, err := w.tries(ctx, id)
	if err != nil || len(earlier) >= mostTries {
		return earlier, err
	}
	// The note above may have been made though its answer was lost.
	if n := len(earlier); n > 0 && earlier[n-1].Worker == mine.Worker && earlier[n-1].Began.Equal(mine.Began) {
		return earlier[:n-1], nil
	}
	return earlier, w.note(ctx, id, append(earlier[:len(earlier):len(earlier)], mine))
}

func errDoneIf(done bool) error {
	if done {
		return errDone
	}
	return nil
}

// tries returns the tries of a job. A document that cannot be read counts as none.
func (w *worker) tries(ctx context.Context, id string) ([]nightly.Try, error) {
	k, err := w.board.get(ctx, w.board.tries, id)
	if k == nil || err != nil {
		return nil, err
	}
	t, err := decodeTries(k.Value())
	if err != nil {
		return nil, nil
	}
	return t.List, nil
}

func (w *worker) note(ctx context.Context, id string, list []nightly.Try) error {
	return w.board.put(ctx, w.board.tries, id, tries{List: list})
}

// failed gives a job back. If the worker was told to end, that is no try. The last try sets the
// job aside.
func (w *worker) failed(ctx context.Context, m jetstream.Msg, job *Job, earlier []nightly.Try, why error) {
	w.tell(Step{Job: job, Err: why})
	if ctx.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		w.note(ctx, job.ID, earlier)
		m.Nak()
		return
	}
	all := append(earlier[:len(earlier):len(earlier)], nightly.Try{Worker: w.name, Host: w.host, Began: time.Now().UTC(), Error: short(why.Error())})
	if len(all) >= mostTries {
		w.settle(ctx, m, w.aside(job.ID, all), job)
		return
	}
	w.note(ctx, job.ID, all)
	m.NakWithDelay(time.Duration(len(all)) * time.Second)
}

// aside is the result of a job that too many tries did not finish.
func (w *worker) aside(id string, list []nightly.Try) *Result {
	var each []string
	for _, t := range list {
		how := t.Error
		if how == "" {
			how = "the worker ended, or was not heard of any more"
		}
		each = append(each, fmt.Sprintf("on %s at %s: %s", t.Host, t.Began.Format(time.DateTime), how))
	}
	r := w.blank(id, fmt.Sprintf("set aside after %d tries: %s", len(list), strings.Join(each, "; ")))
	r.SetAside, r.Tries = true, list
	return r
}
