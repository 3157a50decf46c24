package gocore

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"

	"diagnose/evidence"

	"github.com/go-delve/delve/pkg/goversion"
	"github.com/go-delve/delve/pkg/proc"
	"github.com/go-delve/delve/pkg/proc/core"
)

// Options says which core to read, and how much of it.
type Options struct {
	// Core is an uncompressed core file, Exe the executable that dumped it.
	Core, Exe string
	// DebugDirs are searched for separate debug files.
	DebugDirs []string
	// Goroutines bounds how many are listed; 0 is 1000. Depth bounds each
	// stack; 0 is 64 frames.
	Goroutines, Depth int
}

// complete sets the bounds that were not given.
func (o *Options) complete() {
	if o.Goroutines <= 0 {
		o.Goroutines = 1000
	}
	if o.Depth <= 0 {
		o.Depth = 64
	}
}

// Result is the Go-specific content of a core.
type Result struct {
	// Version is the toolchain's, "go1.26.8".
	Version string
	// Goroutines, the failing one first.
	Goroutines []evidence.Goroutine
	// Failure is nil when the runtime recorded neither a panic nor a fatal
	// error. Its Kind is GoPanic, or Deadlock when the runtime says that all
	// goroutines are asleep.
	Failure *evidence.Failure
	Limits  []evidence.Limit
}

// IsGo reports whether an ELF file was made by the Go linker.
func IsGo(exe string) bool {
	f, err := elf.Open(exe)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Section(".go.buildinfo") != nil
}

// Read lists the goroutines of a core and finds the failure that ended the
// process. An error means that nothing could be read; missing parts are limits.
func Read(opts Options) (*Result, error) {
	opts.complete()
	result := &Result{}
	if err := result.version(opts.Exe); err != nil {
		return nil, err
	}
	err := guarded(func() error { return result.read(opts) })
	if err != nil {
		return nil, fmt.Errorf("go core %s: %w", opts.Core, err)
	}
	return result, nil
}

// guarded turns a panic of delve, which hostile files can cause, into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("delve panicked: %v", r)
		}
	}()
	return f()
}

// version checks that delve supports the toolchain, and that it will find
// DWARF: without DWARF it prints a warning.
func (r *Result) version(exe string) error {
	info, err := buildinfo.ReadFile(exe)
	if err != nil {
		return fmt.Errorf("go build information of %s: %w", exe, err)
	}
	r.Version = info.GoVersion
	f, err := elf.Open(exe)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Section(".debug_info") == nil && f.Section(".zdebug_info") == nil {
		return fmt.Errorf("%s: it has no DWARF, so its goroutines cannot be listed", exe)
	}
	v, ok := goversion.Parse(info.GoVersion)
	oldest := goversion.GoVersion{Major: goversion.MinSupportedVersionOfGoMajor, Minor: goversion.MinSupportedVersionOfGoMinor}
	newest := goversion.GoVersion{Major: goversion.MaxSupportedVersionOfGoMajor, Minor: goversion.MaxSupportedVersionOfGoMinor + 1}
	if !ok || !v.AfterOrEqual(oldest) || v.AfterOrEqual(newest) {
		r.limit(exe, fmt.Sprintf("made by %s, which is not among the versions whose runtime is known (1.%d to 1.%d): goroutines may be wrong",
			info.GoVersion, oldest.Minor, newest.Minor-1))
	}
	return nil
}

func (r *Result) limit(subject, text string) {
	r.Limits = append(r.Limits, evidence.Limit{Code: evidence.LimitGoroutines, Subject: subject, Reason: text}.Worded())
}

// reader is one opened core.
type reader struct {
	*Result
	opts   Options
	target *proc.Target
	// waitReasons are the runtime's own texts.
	waitReasons []string
}

func (r *Result) read(opts Options) error {
	group, err := core.OpenCore(opts.Core, opts.Exe, opts.DebugDirs)
	if err != nil {
		return err
	}
	defer guarded(func() error { return group.Detach(false) })
	if group.Selected == nil {
		return fmt.Errorf("no process in it")
	}
	rd := &reader{Result: r, opts: opts, target: group.Selected}
	if err := rd.goroutines(); err != nil {
		return err
	}
	if err := guarded(rd.failure); err != nil {
		r.limit("", "the panic cannot be read: "+err.Error())
	}
	return nil
}
