package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"diagnose/diagnosis/ending"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
)

// tellLastWords adds what a program wrote and which of its system calls failed before it ended
// itself, according to the recording.
func (r *replayStage) tellLastWords(ctx context.Context) error {
	if r.exit == nil && r.declared() == nil {
		return nil
	}
	r.say("replaying what the program wrote last")
	rec := r.failing[0]
	if r.run != nil {
		rec = r.run
	}
	e, err := ending.Of(ctx, rec, r.req.imageOptions())
	if e == nil {
		return err
	}
	r.result.Ending = e
	r.headByPanic(e)
	r.headByFile(e)
	return errors.Join(err, r.nameReturn(ctx))
}

// headByFile begins the report of a file that differs from the expected one with the code that wrote
// the byte, not with the code that ended the process.
func (r *replayStage) headByFile(e *evidence.Ending) {
	i := slices.IndexFunc(e.Messages, func(m evidence.Message) bool { return m.Differs && m.Site != nil })
	f := &r.result.Failure
	if i < 0 || f.Kind != evidence.DeclaredFailure {
		return
	}
	m := &e.Messages[i]
	f.Site, f.Source = m.Site, r.sources.around(m.Site, sourceContext)
	f.Thread = &m.Thread
	failure.Describe(f, failure.Names{Threads: len(r.process.Threads)})
}

// headByPanic begins the report with the message of a language's runtime that gave up. The
// program's own code failed where that message was written, not where the process then ended.
func (r *replayStage) headByPanic(e *evidence.Ending) {
	if e.Panic == nil || r.result.Failure.Kind != evidence.ExitStatus {
		return
	}
	f := &r.result.Failure
	f.Exception = &evidence.Exception{Type: reportNames[e.Panic.Language], What: e.Panic.Text, Proof: e.Panic.Proof}
	f.Message = e.Panic.Text
	if e.Panic.File != "" {
		f.Message += fmt.Sprintf(" (%s:%d)", e.Panic.File, e.Panic.Line)
	}
	site := &evidence.Site{Function: e.Panic.Function, File: e.Panic.File, Line: e.Panic.Line}
	if by := e.Messages[e.Panic.Message].Site; e.Panic.Language == evidence.Rust && by != nil {
		site = by
	}
	f.Site, f.Source = site, r.sources.around(site, sourceContext)
	failure.Describe(f, failure.Names{Threads: len(r.process.Threads)})
}

var reportNames = map[evidence.Language]string{evidence.Rust: "Rust panic", evidence.Go: "Go panic", evidence.Python: "Python exception"}
