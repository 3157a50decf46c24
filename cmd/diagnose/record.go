package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/internal/wording"
	"diagnose/replay/launch"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
	"diagnose/replay/recorder/sites"
)

// recordFlags are the flags of record.
type recordFlags struct {
	output    string
	portable  bool
	all       bool
	repeat    int
	untilFail bool
	maxSize   int
	races     string
	seed      uint64
	rules     failRules
	push      pushFlags
}

func newRecord() *cobra.Command {
	f := &recordFlags{}
	c := &cobra.Command{
		Use:   "record [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program and record what it takes to run it again, identically",
		Long: `record runs a program on all processors and records the order of its threads'
synchronisation, the results of its system calls, and its signals. 'diagnose replay'
runs it again from that, to the same end, as often as needed.

The program has the standard streams, signals and exit status of the command, as if it
ran without it. At the end one line on standard error names the recording, and another
one the command that finds the cause of a failure. By default only the recordings of
failed runs are kept. A run failed if a signal ended it, if it exited with a status
other than 0, if its heap holds evidence of a corruption, or if one of its child
processes crashed: a signal that leaves cores ended the child, or its heap was damaged.
Then the last lines name the child and its recording. Of a failed run they also name
the children that exited with a status other than 0; alone these are no failure, because
most scripts have some.

A program that exits with status 0 may have failed all the same: its output is wrong, or
it lost data. --fail-if, --fail-if-file and --check detect that; each may be repeated,
and the first that applies counts. The recording notes it, and 'diagnose crash' begins
there. (For a recording that was made without them, use 'diagnose crash --failed-at'.)

With --repeat, Ctrl-C ends the current run and keeps its recording: if the run hung, the
last lines say what its threads waited for. If standard input is a file, each run reads it
from where the first one began; of a pipe only the first run has the content.

With --push the recording of a run that failed is also sent to an engine that hosts
share, when all runs have ended ('diagnose corpus pull' has it elsewhere; --portable
brings along what a replay there needs). Of --repeat that is the first run that failed,
and one that was interrupted. If the engine cannot be reached or has no room, the
recording is kept, a line says what to do, and the exit status is not changed.

A recording has the order of events: locks, system calls. Threads that race on memory may
run in another order in a replay, which then searches. With --races=turns threads take turns
on one processor, and the recording has the order of their accesses to memory, too.

A recording is a directory, DIR/PROGRAM-0001-SIGSEGV: the name says how the
program ended (SIGABRT, exit-1, heap, child-SIGSEGV, passed). While the program
runs it is DIR/.PROGRAM-0001-running. It holds all data that the program read,
with secrets, and only you may read it. Child processes have recordings of
their own in it. Those that outlive the program, as daemons do, are recorded
until they end, while record ends with the program.

Statically linked programs, and programs with file capabilities or a set-user-ID
or set-group-ID bit, cannot be recorded; a copy without that bit can. As child
processes they run unrecorded, and a set-user-ID program gains no rights unless
root records.

` + recordEnvironment + `
With --push, for flags that are not given:

` + engineUserHelp + `
Exit status, whether or not a recording was pushed: that of the program, 128 and the
number of the signal that ended it; with --repeat, that of the first run that failed, or else
of the last; 1 where a run ended with status 0 and failed by --fail-if, --fail-if-file or --check; or

      1  the tool itself failed
      2  the command line is wrong
      3  the program cannot be run, or cannot be recorded here`,
		Example: `  diagnose record -- ./server --port 8080
  diagnose record --output /var/tmp/recordings --all -- make check
  diagnose record --repeat 1000 --until-fail -- ./flaky
  diagnose record --until-fail --fail-if 'total: [^0]' -- ./ledger
  diagnose record --fail-if-file out.txt=expected.txt -- ./convert out.txt
  diagnose record --push tls://engine.example:4222 --team web --label job=$CI_JOB_ID -- make check
  diagnose record --check 'sqlite3 app.db "pragma integrity_check" | grep -qx ok' -- ./app`,
		Args:              aProgram,
		ValidArgsFunction: programArgs,
		RunE:              f.recordProgram,
	}
	f.register(c)
	return c
}

const recordEnvironment = `Environment:

    DIAGNOSE_OPTIONS    options of the agent, see 'diagnose run'
    LD_PRELOAD          other libraries to load; the agent is put before them
    LD_BIND_NOW         if set to nothing, functions are bound at their first calls
                        and not before the program starts: for programs that do
                        not start otherwise
    CC                  the compiler that builds the agent, if it is not cc
    XDG_CACHE_HOME      where the agent is kept, ~/.cache unless it is set
` + runtimesHelp

func (f *recordFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // flags after the program are the program's
	flags.StringVarP(&f.output, "output", "o", "recordings", "`directory` that recordings are made in; it is created")
	flags.BoolVar(&f.portable, "portable", false, "bring along the program, its libraries and the files that it maps")
	flags.BoolVar(&f.all, "all", false, "keep the recordings of runs that passed as well")
	flags.IntVar(&f.repeat, "repeat", 0, "run `N` times; keep the first recording that failed and the last that passed")
	flags.BoolVar(&f.untilFail, "until-fail", false, "with --repeat: stop at the first run that fails; without: repeat until then")
	f.rules.register(flags)
	f.push.register(c)
	flags.IntVar(&f.maxSize, "max-size", 0, "end the recording of a process at this many `MiB` of log; the program continues")
	must(c.MarkFlagDirname("output"))
	flags.StringVar(&f.races, "races", racesEvents, "record the order of threads' `events`, or with turns also that of their accesses to memory")
	flags.Uint64Var(&f.seed, "seed", 0, "with --races=turns: `seed` of the turns' lengths; 0 is a new one for each run")
	for _, name := range []string{"repeat", "max-size", "fail-if", "check", "seed"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

func (f *recordFlags) recordProgram(c *cobra.Command, args []string) error {
	if f.repeat < 0 || f.maxSize < 0 {
		return usagef("--repeat and --max-size take no negative numbers (see '%s --help')", c.CommandPath())
	}
	if err := cmp.Or(f.rules.compile(), f.push.check(c)); err != nil {
		return err
	}
	turns, err := f.turns()
	if err != nil {
		return err
	}
	ignored := keepIgnored() // the tracer starts with the same ones
	prepared := recorder.Prepare()
	defer prepared.Close()
	target, err := agent.FindTarget(args[0])
	if err != nil {
		return &driver.InputError{Err: err}
	}
	library, err := buildAgent(c, agent.BuildOptions{Recording: true})
	if err != nil {
		return err
	}
	for _, warning := range target.Warnings {
		say("warning: " + warning)
	}
	if err := c.Context().Err(); err != nil {
		return err // interrupted before there was a program to pass it to
	}
	settings := agent.ParseOptions(os.Getenv(agent.OptionsVariable))
	r := &programRuns{flags: f, options: recorder.Options{
		Path: target.Path, Args: args, Environ: agent.RecordEnvironment(target.Environ(os.Environ()), library, settings), Library: library,
		Output: f.output, Portable: f.portable, All: f.all || f.again() || f.rules.any(), KeepOutput: len(f.rules.patterns) > 0, MaxSize: int64(f.maxSize) << 20,
		Ignored: ignored, Prepared: prepared, Turns: turns, Atomics: f.races == racesAtomics, Producer: version(), Warn: func(text string) { say("warning: " + text) },
		Progress: sayAnalysis(),
	}}
	stop := r.catch()
	defer stop()
	if f.again() {
		return r.repeat()
	}
	result, err := r.once()
	if err != nil {
		return err
	}
	if f.rules.any() && !f.all && !result.Failed && result.Running == 0 {
		if err := drop(&result); err != nil {
			return err
		}
		result.Dir, r.options.All = "", false
	}
	say(r.summary(&result))
	sayMismatched(&result)
	sayOthers(&result)
	sayCause(&result, nil)
	if !hasCore(&result) { // at its exit Go's runtime still has the data of the panic
		sayPanic(target.File, result.Status)
	}
	r.push(&result)
	return &endedError{statusOf(&result)}
}

// sayAnalysis returns a function that tells the user why the program does not start yet.
func sayAnalysis() func(sites.Analysis) {
	var u *unexpected
	return func(a sites.Analysis) {
		if u == nil {
			u = newUnexpected(os.Stderr)
			u.start = u.start.Add(-progressDelay) // the analysis is reported after it has taken that long
		}
		if a.Ended() {
			u.clear()
			u = nil
			return
		}
		what := fmt.Sprintf("looking for system calls in %d files, once for each", a.Total)
		u.step(fmt.Sprintf("%s: %d done, %s", what, a.Done, filepath.Base(string(a.Path))), what)
	}
}

// again reports whether there may be more than one run.
func (f *recordFlags) again() bool { return f.repeat > 0 || f.untilFail }

// programRuns records runs of one program.
type programRuns struct {
	flags   *recordFlags
	options recorder.Options
	// interrupted: the user wants no more runs.
	interrupted chan struct{}
	checks      checking
}

// checking ends the commands that run after the program when a signal arrives that would end this
// process. While the program runs, such a signal is for the program.
type checking struct {
	mutex  sync.Mutex
	cancel context.CancelFunc // nil: no command is running
}

// begin returns the context of the commands.
func (c *checking) begin() (ctx context.Context, end func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ctx, c.cancel = context.WithCancel(context.Background())
	return ctx, c.stop
}

// stop ends the commands that are running, if any are.
func (c *checking) stop() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
}

// catch passes on the signals that the program does not receive by itself.
func (r *programRuns) catch() (stop func()) {
	caught, passed := make(chan os.Signal, 64), make(chan os.Signal)
	r.options.Signals, r.interrupted = passed, make(chan struct{}, 1)
	signal.Notify(caught, forwarded(r.options.Ignored)...)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-caught:
				if s == unix.SIGINT || s == unix.SIGTERM || s == unix.SIGHUP || s == unix.SIGQUIT {
					select {
					case r.interrupted <- struct{}{}:
					default:
					}
					r.checks.stop()
				}
				if fromTerminal(s) {
					continue
				}
				select {
				case passed <- s:
				case <-ended:
					return
				}
			case <-ended:
				return
			}
		}
	}()
	return func() { signal.Stop(caught); close(ended) }
}

// once makes one run. An interrupt is for the program.
func (r *programRuns) once() (recorder.Result, error) {
	before := r.flags.rules.before()
	result, err := recorder.Run(context.Background(), r.options)
	var start *launch.StartError
	var unsupported *launch.UnsupportedError
	if errors.As(err, &start) || errors.As(err, &unsupported) {
		err = &driver.InputError{Err: err}
	}
	if err == nil {
		ctx, end := r.checks.begin()
		err = r.flags.rules.judge(ctx, &result, before)
		end()
	}
	return result, err
}

// summary is the one line about a run.
func (r *programRuns) summary(result *recorder.Result) string {
	switch {
	case result.Dir == "" && result.Failed:
		return result.Why + "; nothing was kept"
	case result.Dir == "" && r.options.All:
		return "the program passed; nothing was kept"
	case result.Dir == "":
		return "the program passed, its recording was dropped (--all keeps it)"
	case result.Running > 0 && !result.Failed && !r.options.All:
		return fmt.Sprintf("the program passed and left %s still recorded, in %s", processesThat(result.Running), shellQuote(relative(result.Dir)))
	}
	how := "the program passed"
	if result.Failed {
		how = result.Why
	}
	where := shellQuote(relative(filepath.Join(result.Dir, result.Culprit)))
	text := how + "; to see it again: diagnose replay " + where
	switch {
	case unrecorded(filepath.Join(result.Dir, result.Culprit)):
		text = fmt.Sprintf("%s; of its recording, %s: %s", how, where, driver.ExecutedUnrecorded)
	case result.Empty:
		text = fmt.Sprintf("%s; its recording, %s, has no events", how, where)
	case result.Cut:
		text = fmt.Sprintf("%s, which its recording does not reach; to see what there is: diagnose replay %s", how, where)
	}
	if result.Running > 0 {
		text += fmt.Sprintf("; it left %s still recorded", processesThat(result.Running))
	}
	return text
}

// unrecorded reports whether a recording ends where its process executed another
// program that was not recorded.
func unrecorded(dir string) bool {
	rec, err := record.Open(dir)
	if err != nil {
		return false // its reader will say why
	}
	defer rec.Close()
	m := rec.Manifest
	return m.Outcome.Kind == record.OutcomeExec &&
		!slices.ContainsFunc(m.Children, func(c record.Child) bool { return c.Exec && c.PID == m.PID })
}

// mostOthers bounds the lines about child processes that failed.
const mostOthers = 3

// sayMismatched tells of misuse of the heap that the program survived.
func sayMismatched(result *recorder.Result) {
	n := result.Outcome.Mismatched
	if n == 0 {
		return
	}
	calls := "1 mismatched free was"
	if n > 1 {
		calls = fmt.Sprintf("%d mismatched frees were", n)
	}
	say("warning: " + calls + " recorded: another interface released the memory than allocated it, as delete for new[]; " +
		"with DIAGNOSE_OPTIONS=on_error=abort the program ends there")
}

// sayOthers names the last child processes that failed in addition to the one that is reported: the
// last failure is nearest to the failure of the run.
func sayOthers(failed *recorder.Result) {
	if failed.Dir == "" || !failed.Failed {
		return
	}
	list := failed.Others
	if more := len(list) - mostOthers; more > 0 {
		say(fmt.Sprintf("%d more child processes failed before the following; 'diagnose crash --recording' lists them", more))
		list = list[more:]
	}
	for _, p := range list {
		where := "it was not recorded to its end"
		if !p.Unrecorded {
			where = "its recording is " + shellQuote(relative(filepath.Join(failed.Dir, p.Dir)))
		}
		who := fmt.Sprintf("child process %d", p.PID)
		if p.Program != "" {
			who += fmt.Sprintf(" (%s)", filepath.Base(string(p.Program)))
		}
		say(fmt.Sprintf("%s %s; %s", who, p.Deed, where))
	}
}

// sayCause says which command finds the cause of a failed run, if one can.
func sayCause(failed, passed *recorder.Result) {
	if failed.Failed && failed.Dir != "" {
		sayRefused(failed.Refused)
	}
	if failed.Dir == "" || !failed.Failed || failed.Cut || failed.Empty {
		return
	}
	dir := filepath.Join(failed.Dir, failed.Culprit)
	question := "to find the cause"
	if _, err := os.Stat(filepath.Join(dir, record.CoreName)); err != nil {
		if failed.Outcome.Relocked == nil {
			return // killed, or there was no room for a core
		}
		question = "if it hung, to find out why"
	}
	sayCrash(question, dir, passed)
}

// sayCrash names the command that answers a question about the run recorded in a directory.
func sayCrash(question, dir string, passed *recorder.Result) {
	text := question + ": diagnose crash --recording " + shellQuote(relative(dir))
	if passed != nil && passed.Dir != "" {
		text += " --passing " + shellQuote(relative(passed.Dir))
	}
	say(text)
}

// hasCore reports whether the recording of a run that failed has a core.
func hasCore(result *recorder.Result) bool {
	if result.Dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(result.Dir, result.Culprit, record.CoreName))
	return err == nil
}

// sayRefused names the system calls that the recorder refused to a program that failed.
func sayRefused(list []record.Refused) {
	const most = 4
	var calls []string
	why := ""
	for i := range list {
		if list[i].Filter() {
			continue // the user was told when it was set
		}
		if why == "" {
			why = list[i].Why()
		}
		calls = append(calls, fmt.Sprintf("%s (%s, first at moment %v)", list[i].Call, list[i].Error, list[i].Moment()))
	}
	if len(calls) == 0 {
		return
	}
	if more := len(calls) - most; more > 0 {
		calls = append(calls[:most], fmt.Sprintf("%d more", more))
	}
	say(fmt.Sprintf("the recorder refused %s: %s. If the program needs that, it failed for this reason, and not because of a mistake of its own: "+
		"have it do without, if it has a setting for that", strings.Join(calls, ", "), why))
}

// processesThat is "1 process that is", "2 processes that are".
func processesThat(n int) string {
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	return wording.Count(n, "process") + " that " + verb
}

// relative returns a path below this directory in its shorter, relative form.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || len(short) > len(path) || !filepath.IsLocal(short) {
		return path
	}
	return short
}
