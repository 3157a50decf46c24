package verdict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"diagnose/evidence"
)

// progress is how far a diagnosis is: when it has to end, and what it could not do.
type progress struct {
	// ctx ends when no more is to be done.
	ctx context.Context
	// tell, if set, is told what is being done.
	tell func(string)
	// coverage has the limits.
	coverage *evidence.Coverage
	// undone is what was not done any more when ctx had ended.
	undone []string
}

func (p *progress) say(format string, args ...any) {
	if p.tell != nil {
		p.tell(fmt.Sprintf(format, args...))
	}
}

func (p *progress) limit(l evidence.Limit) {
	p.coverage.Limits = evidence.AddLimit(p.coverage.Limits, l)
}

// failedPart notes that a part of the diagnosis was not done, because of an error.
func (p *progress) failedPart(err error) {
	p.limit(evidence.Limit{Code: evidence.LimitFailedPart, Reason: err.Error()})
}

// Why no more is done.
var (
	errTime        = errors.New("the time was used up")
	errInterrupted = errors.New("it was interrupted")
	// errPart: the part of the time that a step may have.
	errPart = errors.New("its part of the time was used up")
)

// ended is why no more is to be done: errTime or errInterrupted; nil if there is more.
func (p *progress) ended() error {
	switch {
	case p.ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(p.ctx), errTime):
		return errTime
	}
	return errInterrupted
}

// stopsBefore reports whether no more is to be done, and notes what is not done for that.
func (p *progress) stopsBefore(what string) bool {
	if p.ended() == nil {
		return false
	}
	p.leftOut(what)
	return true
}

// leftOut notes what is not done, as the time was used up, or the part of it that it may have.
func (p *progress) leftOut(what string) {
	if !slices.Contains(p.undone, what) {
		p.undone = append(p.undone, what)
	}
}

// limitUndone notes what was not done, of a diagnosis that had so much time.
func (p *progress) limitUndone(whole time.Duration) {
	if len(p.undone) == 0 {
		return
	}
	l := evidence.Limit{Code: evidence.LimitInterrupted, Names: p.undone}
	if p.ended() != errInterrupted {
		l.Code, l.Time = evidence.LimitTime, whole.String()
	}
	p.limit(l)
}

// bound ends ctx when the time is used up, of which some was spent before; 0: there is no bound.
func (p *progress) bound(whole, spent time.Duration) context.CancelFunc {
	if whole <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithTimeoutCause(p.ctx, whole-spent, errTime)
	p.ctx = ctx
	return cancel
}

// within ends ctx after some time, until end is called, which reports whether it had ended.
func (p *progress) within(most time.Duration) (end func() bool) {
	outer := p.ctx
	ctx, cancel := context.WithTimeout(outer, most)
	p.ctx = ctx
	return func() bool {
		over := ctx.Err() != nil
		cancel()
		p.ctx = outer
		return over
	}
}
