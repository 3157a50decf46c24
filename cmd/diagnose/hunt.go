package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/replay/explore"
	"diagnose/replay/launch"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
	"diagnose/reports"
)

// huntFlags are the flags of hunt and minimize.
type huntFlags struct {
	suppressFlag
	output, strategy, failIf, format string
	seeds, depth, jobs               int
	first, length                    uint64
	budget, timeout                  time.Duration
	diagnose, resume, globals        bool
	redactFlag
}

func newHunt() *cobra.Command {
	f := &huntFlags{}
	c := &cobra.Command{
		Use:   "hunt [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program with one schedule of its threads after another until it fails",
		Long: `hunt searches for a schedule of a program's threads with which it fails. It runs the
program again and again, one thread at a time, and chooses the next thread at every
lock, condition variable, other synchronisation and system call. The seed determines
every choice, so a seed that fails fails again.

A run fails if a signal ends it, if it exits with a status other than 0, if its
heap holds evidence of a corruption, if its threads deadlock, if it makes
no progress any more, or, with --fail-if, if what it writes matches.

hunt then reduces the failing schedule to the fewest decisions with which the program
still fails: these are often the bug. It keeps two recordings, one of that schedule and
one of the nearest schedule that passes. 'diagnose crash' finds the cause from both;
--diagnose does that at once.

Strategies:

    pct     the thread with the highest of random priorities runs; --depth less one
            times the running thread's becomes the lowest
    random  any thread that can run
    delay   a thread runs until it waits; --depth times the next one's turn comes

Time is virtual: clocks advance with the threads' work, and a sleep or a time-out
ends when no thread has anything else to do. So a test with sleeps in it is quick, and
has the same result each time. Random numbers from the kernel are the same in each run,
and so are addresses.

Threads are preempted at their operations, after a release or a signal, before a wait
on a condition variable, and where the program's own code names a global variable. They
are not preempted between accesses through pointers, unless the program is built with
'diagnose cc' or 'diagnose c++'. Without that, a thread that polls a variable through a
pointer, without a call, keeps the others from running; such a run is ended after
--timeout, and counted. The program must not depend on anything outside of it, such as
other processes or files that change; it has no input, and its output is not shown.

` + recordEnvironment + `
Exit status:

      0  no schedule that was tried fails
      1  the tool itself failed
      2  the command line is wrong
      3  the program cannot be run, or cannot be recorded here
      4  a schedule that fails was found
    130  it was interrupted`,
		Example: `  diagnose hunt -- ./test
  diagnose hunt --strategy random --jobs 4 --budget 30m --diagnose -- ./server --self-test
  diagnose hunt --fail-if 'lost [0-9]+ items' -- ./queue`,
		Args:              aProgram,
		ValidArgsFunction: programArgs,
		RunE:              f.hunt,
	}
	flags := c.Flags()
	flags.SetInterspersed(false)
	flags.IntVar(&f.seeds, "seeds", 0, "try `N` seeds; without, as many as --budget allows")
	flags.StringVar(&f.strategy, "strategy", string(record.HuntPCT), "choose threads by this `strategy`: pct, random, delay")
	flags.DurationVar(&f.budget, "budget", 5*time.Minute, "search for this `time` at most")
	flags.IntVar(&f.jobs, "jobs", 1, "run `N` schedules at a time; 0 is one for each processor")
	flags.IntVar(&f.depth, "depth", 3, "`N` of pct (one more than preemptions) and delay (delays)")
	flags.Uint64Var(&f.first, "first-seed", 1, "begin with `seed`")
	flags.Uint64Var(&f.length, "length", 0, "assume that a run has this many `steps`; without, as many as one without preemptions has")
	flags.BoolVar(&f.globals, "globals", true, "preempt threads where the program's own code accesses global variables, too")
	flags.BoolVar(&f.resume, "resume", false, "continue with the seeds where the last hunt of the same program stopped")
	f.register(c)
	choices(c, "strategy", explore.Strategies()...)
	for _, name := range []string{"seeds", "budget", "jobs", "depth", "first-seed", "length"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	return c
}

// register adds what hunt and minimize have in common.
func (f *huntFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.failIf, "fail-if", "", "a run fails as well if its output matches this `expression` (RE2)")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "end a run that takes more `time`")
	flags.BoolVar(&f.diagnose, "diagnose", false, "find the cause at once, as 'diagnose crash' does")
	flags.StringVarP(&f.output, "output", "o", "recordings", "`directory` that recordings are made in; it is created")
	f.registerSuppressions(c)
	flags.StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the result: text, json")
	choices(c, "format", string(reports.Text), string(reports.JSON))
	f.registerLocalRedact(c)
	must(c.MarkFlagDirname("output"))
	for _, name := range []string{"fail-if", "timeout"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

// options returns the options of a command line, with those of the program if there is one.
func (f *huntFlags) options(c *cobra.Command, args []string) (explore.HuntOptions, error) {
	o := explore.HuntOptions{Strategy: record.HuntStrategy(f.strategy), Depth: f.depth, First: f.first, Seeds: f.seeds, Length: f.length,
		Budget: f.budget, Timeout: f.timeout, Jobs: f.jobs, NoGlobals: !f.globals}
	if err := f.check(c); err != nil {
		return o, err
	}
	if f.jobs == 0 {
		o.Jobs = runtime.NumCPU()
	}
	if f.failIf != "" {
		expression, err := regexp.Compile(f.failIf)
		if err != nil {
			return o, usagef("--fail-if: %w", err)
		}
		o.FailIf = expression
	}
	library, err := buildAgent(c, agent.BuildOptions{Recording: true})
	if err != nil {
		return o, err
	}
	o.Record = recorder.Options{Library: library, Output: f.output, Producer: version(), Warn: func(string) {}}
	if len(args) == 0 {
		return o, nil
	}
	target, err := agent.FindTarget(args[0])
	if err != nil {
		return o, &driver.InputError{Err: err}
	}
	for _, warning := range target.Warnings {
		say("warning: " + warning)
	}
	settings := agent.ParseOptions(os.Getenv(agent.OptionsVariable))
	o.Record.Path, o.Record.Args = target.Path, args
	o.Record.Environ = agent.RecordEnvironment(target.Environ(os.Environ()), library, settings)
	return o, nil
}

func (f *huntFlags) check(c *cobra.Command) error {
	help := fmt.Sprintf("(see '%s --help')", c.CommandPath())
	switch {
	case f.seeds < 0 || f.jobs < 0:
		return usagef("--seeds and --jobs take no negative numbers %s", help)
	case c.Flags().Lookup("depth") != nil && (f.depth < 1 || f.depth > 64):
		return usagef("--depth takes a number from 1 to 64, not %d %s", f.depth, help)
	case c.Flags().Lookup("budget") != nil && f.budget <= 0:
		return usagef("--budget takes a time such as 5m, not %v %s", f.budget, help)
	case f.timeout <= 0:
		return usagef("--timeout takes a time such as 10s, not %v %s", f.timeout, help)
	case c.Flags().Lookup("first-seed") != nil && f.first == 0:
		return usagef("--first-seed takes a number from 1 on, not 0 %s", help)
	case f.diagnose && f.format == string(reports.JSON):
		return usagef("--diagnose writes the report of 'diagnose crash', so --format json is that command's %s", help)
	}
	return f.checkRedact()
}

func (f *huntFlags) hunt(c *cobra.Command, args []string) error {
	if _, err := f.readSuppressions(); err != nil { // before the hunt is made in vain
		return err
	}
	o, err := f.options(c, args)
	if err != nil {
		return err
	}
	if f.resume {
		if err := o.Resume(); err != nil {
			return &driver.InputError{Err: err}
		}
	}
	result, err := f.follow(&o, func() (*explore.HuntResult, error) { return explore.Hunt(c.Context(), o) })
	if result == nil || err != nil && c.Context().Err() == nil {
		return inputOf(err)
	}
	if err := o.Stopped(result); err != nil {
		say("warning: " + err.Error())
	}
	if err := f.tell(c, &huntReport{Version: huntReportVersion, Program: args, HuntResult: result}); err != nil {
		return err
	}
	if err := c.Context().Err(); err != nil {
		return err
	}
	return f.then(c, result)
}

// follow shows how far a hunt is.
func (f *huntFlags) follow(o *explore.HuntOptions, hunt func() (*explore.HuntResult, error)) (*explore.HuntResult, error) {
	progress := newProgress(os.Stderr)
	defer progress.clear()
	o.Progress = func(p explore.HuntProgress) {
		text := fmt.Sprintf("%d schedules, %.0f per second", p.Schedules, float64(p.Schedules)/p.Elapsed.Seconds())
		if p.Hung > 0 {
			text += fmt.Sprintf(", %d without an end", p.Hung)
		}
		if p.Minimising {
			text = fmt.Sprintf("it fails; %d schedules, %d decisions left", p.Schedules, p.Left)
		}
		progress.say(text)
	}
	return hunt()
}

// inputOf separates errors of the program from errors of the tool.
func inputOf(err error) error {
	var start *launch.StartError
	var unsupported *launch.UnsupportedError
	var endless *explore.NoEndError
	if errors.As(err, &start) || errors.As(err, &unsupported) || errors.As(err, &endless) {
		return &driver.InputError{Err: err}
	}
	return err
}

// failingScheduleError is returned by a hunt that found a failing schedule.
type failingScheduleError struct{}

func (*failingScheduleError) Error() string { return "a schedule that fails was found" }

// then runs what follows the report: the search for the cause, if it is wanted.
func (f *huntFlags) then(c *cobra.Command, r *explore.HuntResult) error {
	if !r.Found {
		return nil
	}
	hidden, err := f.suppressed(c, r)
	if err != nil {
		return err
	}
	if hidden {
		return nil
	}
	if f.diagnose && r.Minimal != nil && r.Minimal.FailingDir != "" {
		args := []string{"crash", "--recording", r.Minimal.FailingDir}
		if r.Minimal.PassingDir != "" {
			args = append(args, "--passing", r.Minimal.PassingDir)
		}
		if err := runAnother(c.Context(), c, append(args, f.redactArgs()...)); err != nil {
			return err
		}
	}
	return &failingScheduleError{}
}

// suppressed judges the failure by its core, and reports whether a suppression fits it. It says so,
// and says if one has expired. A failure without a core is not suppressed.
func (f *huntFlags) suppressed(c *cobra.Command, r *explore.HuntResult) (bool, error) {
	known, err := f.readSuppressions()
	if err != nil || known == nil || r.Minimal == nil || r.Minimal.FailingDir == "" {
		return false, err
	}
	core := filepath.Join(r.Minimal.FailingDir, "core")
	if _, err := os.Lstat(core); err != nil {
		say("the failure left no core, by which a suppression could know it")
		return false, nil
	}
	found, err := driver.Crash(c.Context(), driver.Request{Core: core})
	if err != nil {
		return false, err
	}
	known.Suppress(found, time.Now())
	s := found.Suppression
	switch {
	case s == nil:
		return false, nil
	case s.Expired:
		say(fmt.Sprintf("the suppression of entry %d expired after %s: %s", s.Entry, s.Until, s.Reason))
		return false, nil
	}
	say(fmt.Sprintf("the failure is suppressed until %s by entry %d: %s", s.Until, s.Entry, s.Reason))
	return true, nil
}

// runAnother runs another command of this tool.
func runAnother(ctx context.Context, c *cobra.Command, args []string) error {
	root := newRoot()
	root.SetOut(c.OutOrStdout())
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}
