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

// declaredMoment is the moment at which a run that ended well failed, according to a rule or the
// user.
type declaredMoment struct {
	// whole is the recording of the run, and part the recording up to the moment.
	whole, part *record.Recording
	rule        *record.Declared
	at          evidence.Moment
	images      image.Options
	say         func(string)
}

// findDeclared finds the moment that a rule of a recording declares. The error says whether place
// is not reached, or is no place.
func findDeclared(ctx context.Context, whole *record.Recording, req *Request, say func(string)) (*declaredMoment, error) {
	rule := whole.Manifest.Outcome.Declared
	m := &declaredMoment{whole: whole, rule: rule, at: evidence.Moment{Thread: rule.Thread, Ordinal: rule.Ordinal}, images: req.imageOptions(), say: say}
	var err error
	if rule.Rule == record.RulePlace {
		if m.at, err = lastMomentAt(ctx, whole, req.FailedAt, m.images, say); err != nil {
			return nil, err
		}
	}
	if m.part, err = whole.Until(m.at, rule.Rule == record.RulePlace); err != nil {
		return nil, fmt.Errorf("recording %s: %w", whole.Dir, err)
	}
	return m, nil
}

// replayUpTo calls use with the process at the moment. If the rule names output that was written
// from a buffer, the moment becomes that of the store into the buffer.
func (m *declaredMoment) replayUpTo(ctx context.Context, use func(*image.Process) error) error {
	if m.rule.Rule != record.RuleOutput {
		m.say("replaying up to the place of the failure")
		return m.stopAt(ctx, use)
	}
	m.say("replaying up to the write that matches")
	err := watchtrace.AtEnd(ctx, m.part, m.images, func(p *image.Process) error {
		if buffered(p, m.at.Thread) {
			return errBuffered
		}
		return use(p)
	})
	if errors.Is(err, errBuffered) {
		return m.stopAtStore(ctx, use)
	}
	return err
}

// stopAt calls use with the process when a replay is at the moment.
func (m *declaredMoment) stopAt(ctx context.Context, use func(*image.Process) error) error {
	hook := replay.Hook{At: m.at, Do: func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		if err := use(p); err != nil {
			return err
		}
		return replay.ErrEnough
	}}
	_, err := replay.Run(ctx, m.part, replay.PlainRequest{Common: replay.Common{Image: m.images, Hooks: []replay.Hook{hook}}})
	return err
}

// stopAtStore calls use with the process when the line is put into the buffer that is written
// later: after the last store to the line's first bytes. The moment becomes that of the store. If
// no store is seen it remains that of the write.
func (m *declaredMoment) stopAtStore(ctx context.Context, use func(*image.Process) error) error {
	const word = 8
	target := watchtrace.Target{Name: "the line", Addr: m.rule.Address, Size: max(1, min(word, len(m.rule.Line))), Writes: true}
	plan, err := watchtrace.NewPlan(m.part, []watchtrace.Target{target}, watchtrace.Options{Image: m.images})
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
		return watchtrace.AtEnd(ctx, m.part, m.images, use)
	}
	store := &log.Accesses[last]
	m.at = evidence.Moment{Thread: store.Thread, Ordinal: store.Ordinal}
	if m.part, err = m.whole.Until(m.at, true); err != nil {
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

// atDeclared analyses the process at the moment at which the run is declared to have failed. Later
// events are then no part of the recording.
func (a *analysis) atDeclared(ctx context.Context, replays chan<- struct{}) error {
	m, err := findDeclared(ctx, a.failing[0], &a.req, a.say)
	if err != nil {
		return &InputError{err}
	}
	defer m.whole.Close()
	a.run, a.failing[0], a.moment = m.whole, m.part, &m.at
	err = m.replayUpTo(ctx, func(p *image.Process) error {
		a.failing[0], a.process = m.part, p
		if err := a.numberReplayed(p); err != nil {
			return err
		}
		p.Failing = slices.IndexFunc(p.Threads, func(t image.Thread) bool { return t.Ref.Number == int(m.at.Thread) })
		if err := a.chooseThread(a.req.Thread); err != nil {
			return &InputError{err}
		}
		return a.whole(ctx, replays)
	})
	var input *InputError
	if err == nil || errors.As(err, &input) || ctx.Err() != nil {
		return err
	}
	return &InputError{fmt.Errorf("recording %s: the replay does not reach the failure (%v): %w", m.whole.Dir, m.at, err)}
}

// declareFailure begins the report with the rule, and with the program's own code at the moment.
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
	failure.Describe(f, failure.Names{Threads: len(a.process.Threads)})
}
