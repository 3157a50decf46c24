package driver

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image/gocore"
)

// goroutines adds the findings of a Go program's runtime, which knows more about the end than the
// signal does.
func (a *analysis) goroutines() error {
	exe := a.process.Exe
	if exe == nil || exe.File == "" || exe.Object == nil || exe.Object.Section(".go.buildinfo") == nil {
		return nil
	}
	if a.result.Program.Source == evidence.SourceLive || a.process.CoreFile() == "" {
		a.limit(evidence.Limit{Code: evidence.LimitGoroutines, Subject: exe.Path, Reason: "goroutines are listed for core files only"}.Worded())
		return nil
	}
	result, err := gocore.Read(gocore.Options{Core: a.process.CoreFile(), Exe: exe.File, DebugDirs: a.req.DebugDirs})
	if err != nil {
		return fmt.Errorf("goroutines of %s: %w", exe.Path, err)
	}
	a.limit(result.Limits...)
	a.result.Goroutines = result.Goroutines
	if result.Failure != nil {
		a.goFailure(result.Failure)
	}
	return nil
}

// goFailure replaces the judgement by the signal with the runtime's own.
func (a *analysis) goFailure(f *evidence.Failure) {
	old := &a.result.Failure
	f.Signal, f.Thread = old.Signal, old.Thread
	if f.Site != nil {
		f.Source = a.sources().around(f.Site, sourceContext)
	}
	a.result.Failure = *f
}
