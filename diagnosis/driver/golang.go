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
	if exe == nil || exe.File == "" || exe.Object == nil {
		return nil
	}
	table, err := exe.GoTable()
	if table == nil && err == nil && exe.Object.Section(".go.buildinfo") == nil {
		return nil
	}
	opts := gocore.Options{Core: a.process.CoreFile(), Exe: exe.File, DebugDirs: a.req.DebugDirs}
	var result *gocore.Result
	if opts.Core != "" && a.result.Program.Source != evidence.SourceLive && exe.Object.Section(".debug_info") != nil {
		result, err = gocore.Read(opts)
	} else {
		result, err = gocore.ReadProcess(a.process, a.unwinder, opts)
	}
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
