package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// declare notes, in memory alone, that the user says where the first recording failed.
func (a *analysis) declare() {
	if a.req.FailedAt != "" {
		a.failing[0].Manifest.Outcome.Declared = &record.Declared{Rule: record.RulePlace, Place: record.Text(a.req.FailedAt)}
	}
}

// declared is why the first recording's run failed that ended well; nil: it does not say.
func (a *analysis) declared() *record.Declared {
	if len(a.failing) == 0 {
		return nil
	}
	return a.failing[0].Manifest.Outcome.Declared
}

// atMoment reports whether the failure is at a moment of the run, and not at its end.
func (a *analysis) atMoment() bool {
	d := a.declared()
	return d != nil && (d.Rule == record.RulePlace || d.Rule == record.RuleOutput) && a.req.Core == ""
}

// atDeclared analyses the process as it is at the moment at which the run is said to have
// failed. What comes later is no part of the recording then.
func (a *analysis) atDeclared(ctx context.Context, replays chan<- struct{}) error {
	whole, d := a.failing[0], a.declared()
	at := evidence.Moment{Thread: d.Thread, Ordinal: d.Ordinal}
	if d.Rule == record.RulePlace {
		var err error
		if at, err = a.placeMoment(ctx, whole); err != nil {
			return &InputError{err}
		}
	}
	part, err := whole.Until(at, d.Rule == record.RulePlace)
	if err != nil {
		return &InputError{fmt.Errorf("recording %s: %w", whole.Dir, err)}
	}
	defer whole.Close()
	a.run, a.failing[0], a.moment = whole, part, &at
	use := func(p *image.Process) error {
		a.process = p
		if err := a.asRecorded(); err != nil {
			return err
		}
		p.Failing = slices.IndexFunc(p.Threads, func(t image.Thread) bool { return t.Ref.Number == int(at.Thread) })
		if err := a.chooseThread(); err != nil {
			return &InputError{err}
		}
		return a.whole(ctx, replays)
	}
	if d.Rule == record.RuleOutput {
		a.say("replaying up to the write that matches")
		err = watchtrace.AtEnd(ctx, part, a.imageOptions(), func(p *image.Process) error {
			if buffered(p, at.Thread) {
				return errBuffered
			}
			return use(p)
		})
		if errors.Is(err, errBuffered) {
			err = a.composed(ctx, whole, &at, use)
		}
	} else {
		a.say("replaying up to the place of the failure")
		err = a.at(ctx, part, at, use)
	}
	var input *InputError
	if err == nil || errors.As(err, &input) || ctx.Err() != nil {
		return err
	}
	return &InputError{fmt.Errorf("recording %s: the replay does not reach the failure (%v): %w", whole.Dir, at, err)}
}

// errBuffered says that a write was of a buffer, which other code had filled.
var errBuffered = errors.New("driver: the text was written from a buffer")

// buffered reports whether the C library made a thread's write to empty the buffer of a stream
// (glibc, libio/fileops.c), or whether the write is not known to be the program's own.
func buffered(p *image.Process, thread uint32) bool {
	i := slices.IndexFunc(p.Threads, func(t image.Thread) bool { return t.Ref.Number == int(thread) })
	if i < 0 {
		return false
	}
	const most = 64
	u := unwind.New(p)
	frames := u.Walk(&p.Threads[i], most).Frames
	u.Symbolize(frames)
	own := false
	for i := range frames {
		for _, c := range frames[i].Calls {
			if strings.HasPrefix(image.CanonicalName(c.Site.Function), "_IO_new_file_write") {
				return true
			}
			own = own || c.Site.Module != "" && !image.LibraryCode(&c.Site)
		}
	}
	return !own
}

// composed calls use with the process where the line was put into the buffer that was
// written later: after the last store to its first bytes. at becomes that moment. Where
// no store is seen it is the write.
func (a *analysis) composed(ctx context.Context, whole *record.Recording, at *evidence.Moment, use func(*image.Process) error) error {
	part, d := a.failing[0], a.declared()
	const word = 8
	target := watchtrace.Target{Name: "the line", Addr: d.Address, Size: max(1, min(word, len(d.Line))), Writes: true}
	plan, err := watchtrace.NewPlan(part, []watchtrace.Target{target}, watchtrace.Options{Image: a.imageOptions()})
	if err != nil {
		return err
	}
	log, err := plan.Trace(ctx)
	if err != nil {
		return err
	}
	last := len(log.Accesses) - 1
	for last >= 0 && log.Accesses[last].By != evidence.ByProgram {
		last--
	}
	if last < 0 {
		return watchtrace.AtEnd(ctx, part, a.imageOptions(), use)
	}
	store := &log.Accesses[last]
	*at = evidence.Moment{Thread: store.Thread, Ordinal: store.Ordinal}
	if a.failing[0], err = whole.Until(*at, true); err != nil {
		return err
	}
	return plan.Visit(ctx, log, []int{last}, func(_ int, _ *replay.Hit, s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		return use(p)
	})
}

// at calls use with the process where a replay is at a moment.
func (a *analysis) at(ctx context.Context, rec *record.Recording, at evidence.Moment, use func(*image.Process) error) error {
	hook := replay.Hook{At: at, Do: func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		if err := use(p); err != nil {
			return err
		}
		return replay.ErrEnough
	}}
	_, err := replay.Run(ctx, rec, replay.Options{Image: a.imageOptions(), Hooks: []replay.Hook{hook}})
	return err
}

// declareFailure heads the report with the rule, and with the program's own code where
// the process is.
func (a *analysis) declareFailure(f *evidence.Failure) {
	d := a.declared()
	if d == nil {
		return
	}
	site := f.Site
	if site == nil || image.LibraryCode(site) {
		site = a.ownSite()
	}
	*f = evidence.Failure{Kind: evidence.DeclaredFailure, Message: "it " + d.Words(), Thread: f.Thread, Site: site, Proof: evidence.Replayed,
		Declared: &evidence.Declaration{Rule: evidence.DeclaredRule(d.Rule), Detail: string(d.Pattern + d.Path + d.Command + d.Place), Line: string(d.Line), Moment: a.moment}}
	if f.Thread == nil && a.thread != nil {
		f.Thread = &a.thread.Ref
	}
	f.Sentence = failure.Sentence(*f, failure.Names{Threads: len(a.process.Threads)})
}

// ownSite is the innermost place of the program's own code that the thread under judgement
// is in; nil if it is in none.
func (a *analysis) ownSite() *evidence.Site {
	if a.thread == nil || len(a.stacks) == 0 {
		return nil
	}
	frames := a.stacks[0].stack.Frames
	for i := range frames {
		for j := range frames[i].Calls {
			if s := &frames[i].Calls[j].Site; s.Module != "" && !image.LibraryCode(s) {
				return s
			}
		}
	}
	return nil
}
