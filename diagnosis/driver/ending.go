package driver

import (
	"context"
	"fmt"

	"diagnose/diagnosis/ending"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
)

// lastWords are what a program wrote and which of its system calls failed before it ended
// itself, by the recording.
func (a *analysis) lastWords(ctx context.Context) error {
	if a.exit == nil && a.declared() == nil {
		return nil
	}
	a.say("replaying what the program wrote last")
	rec := a.failing[0]
	if a.run != nil {
		rec = a.run
	}
	e, err := ending.Of(ctx, rec, a.imageOptions())
	if e == nil {
		return err
	}
	a.result.Ending = e
	a.reported(e)
	return err
}

// reported heads the report with what the runtime of a language said when it gave up.
// The program's own code failed where that was written, and not where it then ended.
func (a *analysis) reported(e *evidence.Ending) {
	if e.Panic == nil || a.result.Failure.Kind != evidence.ExitStatus {
		return
	}
	f := &a.result.Failure
	f.Exception = &evidence.Exception{Type: reportNames[e.Panic.Language], What: e.Panic.Text, Proof: e.Panic.Proof}
	f.Message = e.Panic.Text
	if e.Panic.File != "" {
		f.Message += fmt.Sprintf(" (%s:%d)", e.Panic.File, e.Panic.Line)
	}
	site := &evidence.Site{Function: e.Panic.Function, File: e.Panic.File, Line: e.Panic.Line}
	if by := e.Messages[e.Panic.Message].Site; e.Panic.Language == evidence.Rust && by != nil {
		site = by
	}
	f.Site, f.Source = site, failure.SourceLines(*site, sourceContext, a.sourcePaths(site))
	f.Sentence = failure.Sentence(*f, failure.Names{Threads: len(a.process.Threads)})
}

var reportNames = map[evidence.Language]string{evidence.Rust: "Rust panic", evidence.Go: "Go panic", evidence.Python: "Python exception"}
