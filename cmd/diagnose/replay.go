package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/reports"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	verify, echo, gdb bool
	until             string
	wait              time.Duration
	timing, format    string
	noSearch, resume  bool
	redactFlag
	budget time.Duration
}

const timingAuto = "auto"

func newReplay() *cobra.Command {
	f := &replayFlags{}
	c := &cobra.Command{
		Use:   "replay RECORDING",
		Short: "Run a recording again, identically, to its end",
		Long: `replay runs a recorded program again, one thread at a time, to the same end:
with the same addresses, values and order of events. Nothing leaves it: what the
program would write or send is compared with the recording and dropped.

RECORDING is a directory that 'diagnose record' made. The program and its
libraries must still be those that were recorded.

--verify compares the end with the recorded one, byte by byte: registers,
stacks, heap and globals of all threads. If the replay diverges from the recording,
replay says which event of which thread differed, and how.

Between two of its events a thread's code runs either eagerly, right after the first,
or lazily, right before the second. If threads read variables that no event orders (a
flag, a counter), only one of the two may lead to the recorded end. Unless --timing
names one, both are tried, and the one that worked is written into the recording.

Where neither leads to the recorded end, threads of the program communicate through
memory that no event orders. Then replay searches: it preempts threads near the place
where the replay diverged, first after events, then right before single accesses to
memory, and keeps the schedules that get further. The schedule that leads to the
recorded end is written into the recording, too. --budget limits the time of the
search.

Where the recording has the order of atomic instructions (--races=atomics), replay first
looks for plain accesses to memory that nothing orders. It keeps the instructions in the
user's cache directory, by the build-id of their object, and the next recording of the
program at this level orders them, too.

A MOMENT is THREAD:EVENT[:PC[:COUNT]]: the thread's number, the number of its
last event, and there the address PC when it is reached for the COUNT-th time.
Reports name moments, and 'diagnose recording show --events' lists the events.
` + foreignHelp + `
Exit status:

      0  the replay reached the recorded end, or the moment; with --verify
         it is identical
      1  the tool itself failed
      2  the command line is wrong
      3  the recording cannot be used here: it is damaged, or the program changed
      4  the replay diverged from the recording, got stuck or is not identical
    130  it was interrupted`,
		Example: `  diagnose replay recordings/server-0001-SIGSEGV --verify
  diagnose replay recordings/server-0001-SIGSEGV --gdb
  diagnose replay recordings/server-0001-SIGSEGV --until 3:1204 --gdb`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("replay takes one recording, not %d (see '%s --help')", len(args), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error { return f.replayRecording(c, args[0]) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.verify, "verify", false, "compare the end with the recorded one")
	flags.BoolVar(&f.echo, "echo", false, "show what the program writes to its standard output and error, on standard error")
	flags.StringVar(&f.until, "until", "", "stop at a `moment`")
	flags.BoolVar(&f.gdb, "gdb", false, "leave the process to gdb, at the moment or at the end")
	flags.DurationVar(&f.wait, "wait", 0, "give up after this `time` without an event; 10s while all threads sleep and at least 1m while one computes, unless it is set")
	flags.StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the result: text, json")
	choices(c, "format", string(reports.Text), string(reports.JSON))
	f.registerLocalRedact(c)
	flags.StringVar(&f.timing, "timing", timingAuto, "`when` code between two events runs: eager, lazy, or auto for what works")
	choices(c, "timing", timingAuto, string(record.TimingEager), string(record.TimingLazy))
	flags.BoolVar(&f.noSearch, "no-search", false, "do not search for preemptions with which the recorded end is reached")
	flags.BoolVar(&f.resume, "resume", false, "continue an earlier search")
	flags.DurationVar(&f.budget, "budget", 5*time.Minute, "search for no more than this `time`")
	complete(c, "until", cobra.NoFileCompletions)
	complete(c, "wait", cobra.NoFileCompletions)
	complete(c, "budget", cobra.NoFileCompletions)
	return c
}

func (f *replayFlags) replayRecording(c *cobra.Command, dir string) error {
	if f.wait < 0 {
		return usagef("--wait takes a time such as 30s, not %v", f.wait)
	}
	if f.budget <= 0 {
		return usagef("--budget takes a time such as 5m, not %v", f.budget)
	}
	if f.verify && f.until != "" {
		return usagef("--verify and --until exclude each other: only the end was recorded")
	}
	if err := f.checkRedact(); err != nil {
		return err
	}
	if f.echo && f.redaction != nil {
		return usagef("--redact and --echo exclude each other: what the program writes is shown as it is")
	}
	rec, err := openRecording(c.Context(), dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	report := &replayReport{Recording: dir}
	options, err := f.options(c.Context(), rec, report)
	if err != nil {
		return err
	}
	progress := newProgress(os.Stderr)
	options.Progress = func(done, total uint64) {
		progress.say(fmt.Sprintf("replaying, %d of %d events", done, total))
	}
	result, err := replay.Run(c.Context(), rec, options)
	progress.clear()
	report.Learning = f.learn(c.Context(), rec, progress, result, err)
	if f.searches(rec, result, err) {
		if report.Search, err = f.search(c.Context(), rec, progress, result, err); report.Search == nil {
			return err
		}
		if report.Search.Reproduced {
			result, err = replay.Run(c.Context(), rec, options)
			progress.clear()
		}
	}
	if result == nil {
		return err
	}
	report.fill(rec, result, err)
	if err := f.show(c.OutOrStdout(), f.format == string(reports.JSON), func(w io.Writer) error { return report.write(w, f.format) }); err != nil {
		return err
	}
	if err == nil && report.identical() {
		return nil
	}
	return &notReplayedError{}
}

// notReplayedError is returned if a replay ran and did not reach the recorded end. The report says
// so.
type notReplayedError struct{}

func (*notReplayedError) Error() string { return "the replay is not identical" }

// openRecording opens a recording's directory. Its error helps users who name the parent directory.
func openRecording(ctx context.Context, dir string) (*record.Recording, error) {
	rec, err := record.OpenContext(ctx, dir)
	if err == nil {
		return rec, nil
	}
	if errors.Is(err, os.ErrNotExist) {
		if found, _ := filepath.Glob(filepath.Join(dir, "*", record.ManifestName)); len(found) > 0 {
			var names []string
			for _, path := range found[:min(len(found), 5)] {
				names = append(names, filepath.Dir(path))
			}
			err = fmt.Errorf("%s is no recording; there are some in it: %s", dir, strings.Join(names, ", "))
		} else if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			err = fmt.Errorf("%s is no recording: it has no %s", dir, record.ManifestName)
		}
	}
	return nil, &replay.InputError{Err: err}
}

func (f *replayFlags) options(ctx context.Context, rec *record.Recording, report *replayReport) (replay.PlainRequest, error) {
	o := replay.PlainRequest{Common: replay.Common{Sleeping: f.wait, Computing: f.wait}, Verify: f.verify}
	if f.timing != timingAuto {
		o.Timing = record.Timing(f.timing)
	}
	if f.echo {
		o.Echo = os.Stderr
	}
	at := func(s *replay.Stopped) error {
		report.fillStopped(s)
		if !f.gdb {
			return nil
		}
		return s.HandOver(func(pid int) error { return waitForDebugger(ctx, pid, s, rec) })
	}
	if f.until == "" {
		o.AtEnd = at
		return o, nil
	}
	moment, err := evidence.ParseMoment(f.until)
	if err != nil {
		return o, usagef("--until: %w", err)
	}
	o.Hooks = []replay.Hook{{At: moment, Do: func(s *replay.Stopped) error {
		if err := at(s); err != nil {
			return err
		}
		return replay.ErrEnough
	}}}
	return o, nil
}

// waitForDebugger tells how to attach, and returns when gdb has attached and detached, the process
// has ended, or the user interrupts.
func waitForDebugger(ctx context.Context, pid int, s *replay.Stopped, rec *record.Recording) error {
	say(fmt.Sprintf("the process is stopped; attach with: gdb -p %d %s", pid, shellQuote(string(rec.Manifest.Program.Path))))
	if tid := s.TID(); tid != pid {
		say(fmt.Sprintf("thread %d, which it is stopped for, is LWP %d in gdb's 'info threads'", s.Moment.Thread, tid))
	}
	if isatty.IsTerminal(os.Stderr.Fd()) {
		say("it ends when gdb leaves it, or with Ctrl-C")
	}
	attached := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		tracer, alive := tracerOf(pid)
		switch {
		case !alive || attached && tracer == 0:
			return nil
		case tracer != 0:
			attached = true
		}
	}
}

// tracerOf returns the number of the process that traces a process, 0 if there is none.
func tracerOf(pid int) (tracer int, alive bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	alive = true
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "TracerPid:"); ok {
			fmt.Sscan(value, &tracer)
		}
		if value, ok := strings.CutPrefix(line, "State:"); ok {
			alive = !strings.HasPrefix(strings.TrimSpace(value), "Z")
		}
	}
	return tracer, alive
}
