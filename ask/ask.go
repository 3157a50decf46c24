package ask

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
)

// Ask answers the question by replays of the recording. The error is an *Error if the question is wrong. Of a replay that diverged
// or got stuck the answer has what came before, together with the error.
func Ask(ctx context.Context, rec *record.Recording, q *Question) (*Answer, error) {
	started := time.Now()
	if q.Image.Files == nil {
		files := image.NewFiles()
		defer files.Close()
		q.Image.Files = files
	}
	log, err := readChronicle(rec, q)
	if err != nil {
		return nil, err
	}
	a := &asker{ctx: ctx, rec: rec, q: q, log: log, answer: &Answer{Recording: filepath.Base(rec.Dir), Failed: !rec.Manifest.Outcome.Passed(),
		Form: q.Form, Asked: q.Asked, Threads: []evidence.ThreadRef{}, Span: spanOf(q, log)}}
	defer a.close()
	if err := a.openCore(); err != nil {
		return nil, err
	}
	err = a.run()
	if err != nil && a.answer.Coverage.Replays == 0 {
		return nil, err
	}
	a.answer.Threads = log.refs(a.code())
	if log.cut != nil {
		a.answer.Coverage.gap(Gap{Kind: GapEnded, Text: log.cut.Error()})
	}
	state, stateErr := rec.StateLimits()
	if stateErr != nil {
		return nil, stateErr
	}
	a.answer.Coverage.Limits = append(state, a.answer.Coverage.Limits...)
	a.answer.Coverage.finish()
	a.answer.Elapsed = time.Since(started)
	return a.answer, err
}

func spanOf(q *Question, log *chronicle) Span {
	s := Span{Events: log.events}
	if q.From != nil {
		x := instant(*q.From, log.from)
		s.From = &x
	}
	if q.Until != nil {
		x := instant(*q.Until, log.until)
		s.Until = &x
	}
	return s
}

// asker answers one question.
type asker struct {
	ctx    context.Context
	rec    *record.Recording
	q      *Question
	log    *chronicle
	answer *Answer
	// process is the process as it is at Question.Until. Its memory can be read only while stand runs, unless it is the core.
	process *image.Process
	// core is the process at the recording's end; nil: the recording has no core.
	core *image.Process
}

func (a *asker) run() error {
	switch a.q.Form {
	case FormWrites, FormLastWrite:
		return a.writes()
	case FormValues:
		return a.values()
	case FormHolders:
		return a.holders()
	case FormCalls:
		return a.calls()
	case FormExecuted:
		return a.executed()
	case FormDid:
		return a.did()
	}
	return fmt.Errorf("ask: there is no form %q", a.q.Form)
}

func (a *asker) close() {
	for _, p := range []*image.Process{a.process, a.core} {
		if p != nil {
			p.Close()
		}
	}
}

func (a *asker) progress(p Progress) {
	if a.q.Progress != nil {
		a.q.Progress(p)
	}
}

// openCore opens the core of the recording's end, if there is one.
func (a *asker) openCore() error {
	path, err := a.rec.Core()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		a.core, err = image.OpenCore(path, a.q.Image)
	}
	if err != nil {
		return &replay.InputError{Err: fmt.Errorf("ask: the recording's core: %w", err)}
	}
	return nil
}

// code is a process whose code can be read at any time, if there is one.
func (a *asker) code() *image.Process {
	if a.core != nil {
		return a.core
	}
	return a.process
}

// stand calls use with the process as it is at Question.Until: the core of the recording's end, or a replay that has come there.
func (a *asker) stand(use func(*image.Process) error) error {
	a.progress(Progress{Stage: StageResolve})
	switch {
	case a.q.Until != nil:
		return a.standIn(replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: *a.q.Until, Do: func(s *replay.Stopped) error {
			if err := a.keep(use)(s); err != nil {
				return err
			}
			return replay.ErrEnough
		}}}}})
	case a.core != nil:
		return use(a.core)
	}
	return a.standIn(replay.PlainRequest{Common: replay.Common{AtEnd: a.keep(use)}})
}

func (a *asker) standIn(r replay.PlainRequest) error {
	r.Image, r.Unnamed = a.q.Image, true
	a.answer.Coverage.Replays++
	_, err := replay.Run(a.ctx, a.rec, r)
	return err
}

// keep calls use with the stopped process, and keeps it for the names of its objects.
func (a *asker) keep(use func(*image.Process) error) func(*replay.Stopped) error {
	return func(s *replay.Stopped) error {
		p, err := s.KeepProcess()
		if err != nil {
			return err
		}
		if a.process != nil {
			err = a.process.Close()
		}
		a.process = p
		return errors.Join(err, use(p))
	}
}
