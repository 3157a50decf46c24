package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"diagnose/diagnosis/driver"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// failRules say when a run that ended well has failed.
type failRules struct {
	output, files, checks []string
	patterns              []*regexp.Regexp
}

func (r *failRules) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&r.output, "fail-if", nil, "the run failed if a line of its standard output or standard error matches this `regexp`")
	flags.StringArrayVar(&r.files, "fail-if-file", nil, "the run failed if it made or changed the file `PATH`; as PATH=EXPECTED, if PATH differs from EXPECTED or is missing")
	flags.StringArrayVar(&r.checks, "check", nil, "run this shell `command` after the program: the run failed if its status is not 0")
}

func (r *failRules) any() bool { return len(r.output)+len(r.files)+len(r.checks) > 0 }

// compile refuses rules that could not be applied after a run.
func (r *failRules) compile() error {
	for _, text := range r.output {
		p, err := regexp.Compile(text)
		if err != nil {
			return usagef("--fail-if: %v (https://go.dev/s/re2syntax)", err)
		}
		if p.MatchString("") {
			return usagef("--fail-if: '%s' matches the empty line", text)
		}
		r.patterns = append(r.patterns, p)
	}
	for _, text := range r.files {
		path, expected, compared := strings.Cut(text, "=")
		if path == "" || compared && expected == "" {
			return usagef("--fail-if-file takes PATH or PATH=EXPECTED, not %q", text)
		}
		if _, err := os.Stat(expected); compared && err != nil {
			return &driver.InputError{Err: fmt.Errorf("--fail-if-file: %w", err)}
		}
	}
	for _, text := range r.checks {
		if strings.TrimSpace(text) == "" {
			return usagef("--check takes a command, not %q", text)
		}
	}
	return nil
}

// before returns the state of the rules' files before a run.
func (r *failRules) before() map[string]os.FileInfo {
	found := map[string]os.FileInfo{}
	for _, text := range r.files {
		path, _, _ := strings.Cut(text, "=")
		if info, err := os.Lstat(path); err == nil {
			found[path] = info
		}
	}
	return found
}

// judge applies the rules to a run that did not fail by itself. If a rule is broken, judge notes
// that in the recording.
func (r *failRules) judge(ctx context.Context, result *recorder.Result, before map[string]os.FileInfo) error {
	if !r.any() || result.Failed {
		return nil
	}
	culprit, d, err := r.broken(ctx, result, before)
	if err != nil && result.Dir != "" {
		err = fmt.Errorf("%w; the recording is in %s", err, shellQuote(relative(result.Dir)))
	}
	if err != nil || d == nil {
		return err
	}
	if result.Dir == "" {
		result.Failed, result.Why, result.Outcome.Declared = true, "the program "+d.Words(), d
		return nil
	}
	return recorder.Declare(result, culprit, d)
}

// broken finds the first rule by which a run failed, and the directory, relative to that of the
// run, of the process that the rule is about.
func (r *failRules) broken(ctx context.Context, result *recorder.Result, before map[string]os.FileInfo) (culprit string, d *record.Declared, err error) {
	if len(r.patterns) > 0 {
		if result.Dir == "" {
			return "", nil, errors.New("--fail-if: there is no recording of the run, so its output is not known")
		}
		if culprit, d, err = r.matched(result.Dir); d != nil || err != nil {
			return culprit, d, err
		}
	}
	for _, text := range r.files {
		path, expected, _ := strings.Cut(text, "=")
		if d, err = record.MatchFile(path, expected, before[path]); d != nil || err != nil {
			if err != nil {
				err = fmt.Errorf("--fail-if-file %s: %w", text, err)
			}
			return "", d, err
		}
	}
	for _, command := range r.checks {
		status, err := checkStatus(ctx, command)
		if err != nil {
			return "", nil, err
		}
		if status != 0 {
			return "", &record.Declared{Rule: record.RuleCheck, Command: record.Text(command), Status: status}, nil
		}
	}
	return "", nil, nil
}

// matched searches the output of the processes of a run, beginning with the program that was
// started.
func (r *failRules) matched(dir string) (culprit string, d *record.Declared, err error) {
	rec, err := record.Open(dir)
	if err != nil {
		return "", nil, err
	}
	defer rec.Close()
	for _, p := range record.ReadFamily(rec).Processes {
		if p.Unrecorded {
			continue
		}
		if d, err = r.matchedIn(filepath.Join(dir, filepath.FromSlash(p.Dir))); d != nil || err != nil {
			if culprit = p.Dir; culprit == "." {
				culprit = ""
			}
			return culprit, d, err
		}
	}
	return "", nil, nil
}

func (r *failRules) matchedIn(dir string) (*record.Declared, error) {
	rec, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	for _, p := range r.patterns {
		if d, err := rec.MatchOutput(p); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// longestCheck bounds a command of --check.
const longestCheck = 10 * time.Minute

// checkStatus runs a command and returns its status, or 128 plus the number of the signal that
// ended it. The command's output goes to standard error. It is a process group of its own, which
// ends with ctx.
func checkStatus(ctx context.Context, command string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // those that SIGTERM did not end
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return 0, fmt.Errorf("--check '%s': it did not end within %v", command, longestCheck)
	case ctx.Err() != nil:
		return 0, fmt.Errorf("--check '%s': it was interrupted, so whether the run failed is not known: %w", command, ctx.Err())
	case !errors.As(err, &exit):
		return 0, fmt.Errorf("--check '%s': %w", command, err)
	}
	status := exit.ExitCode()
	if w := exit.Sys().(syscall.WaitStatus); w.Signaled() {
		status = 128 + int(w.Signal())
	}
	return status, nil
}

// statusOf returns the status that the command ends with after a run.
func statusOf(result *recorder.Result) syscall.WaitStatus {
	const failed = 1 << 8 // an exit with status 1 (wait(2))
	if result.Failed && result.Outcome.Declared != nil && result.Status == 0 {
		return failed
	}
	return result.Status
}
