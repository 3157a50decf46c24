package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"diagnose/diagnosis/driver"
	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/reports"
	"diagnose/watchtrace"
)

// crashFlags are the flags of crash.
type crashFlags struct {
	commonFlags
	suppressFlag
	process int
	unsaved bool
}

func newCrash() *cobra.Command {
	f := &crashFlags{}
	c := &cobra.Command{
		Use:   "crash (--core FILE | --pid N | --coredumpctl N | --recording DIR)",
		Short: "Report why a process crashed, from its core file or the stopped process",
		Long: `crash reads a core file, or stops a live process and resumes it afterwards,
and reports what failed, where, in which variable, and where the bad value came
from as far as the process can tell; the stacks of all threads; and the shared
memory that the failing code touches.

Cores may be compressed (zst, lz4, gz, xz). The executable, its libraries and
their debug information are found automatically; build-ids are compared, and a
file that does not match is not used.

With a recording of the run ('diagnose record'), crash replays it to find the
cause: the instruction that damaged the memory or stored the bad value, and where
that came from; and, compared with recordings of runs that passed, the order of
accesses that only the failing runs have. Experiments on the replay prove it:
the failure goes away without the store, or with the order forbidden. That may
take a hundred replays: --time bounds it, and Ctrl-C ends it with a report of the
findings until then; a second Ctrl-C ends it at once, without a report. Where a replay
diverges from the recording, crash first searches for a schedule that leads to the
recorded end, as 'diagnose replay' does, and reports the places where threads must
wait for it. Where a replay takes a second or more, up to three of its checkpoints stay
in the cache directory for the next analysis of the recording: files that have memory
of the program, and that only you may read. --no-checkpoint-files prevents that.

If a child process of the run crashed (of a test script, for example), crash diagnoses
the child, whatever the exit status of its parent: of several children, the one whose signal
the status passes on, or else the first. A parent that crashed itself is diagnosed first.
The report lists all processes that failed;
--process selects another one.

A recorded run that ended with status 0 may have failed all the same. It is diagnosed at
the write that matched --fail-if of 'diagnose record', at its end if --fail-if-file or
--check found the failure, or at the place that --failed-at names.

Statements carry their proof level: "proved" by such an experiment, "replayed" was
seen on the replay, "from core" was read from the process, "inferred" follows from
a rule. Secrets that the report recognises (passwords, tokens, keys) are replaced
unless --show-secrets is given.
` + foreignHelp + environmentHelp + exitHelp,
		Example: `  diagnose crash --core core.123
  diagnose crash --core core.zst --exe ./server --format markdown --output report.md
  diagnose crash --pid 4711
  diagnose crash --recording recordings/server-0001-SIGSEGV
  diagnose crash --recording recordings/server-0001-SIGSEGV --format html --output report.html
  diagnose crash --recording recordings/bank-0003-SIGABRT --passing recordings/bank-0002-passed
  diagnose crash --recording recordings/ledger-0001-passed --failed-at ledger.c:120
  zstdcat core.zst | diagnose crash --core - --format json`,
		Args:              noStrayFile,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.diagnoseCrash(c) },
	}
	f.register(c)
	return c
}

func (f *crashFlags) register(c *cobra.Command) {
	f.registerInput(c)
	flags := c.Flags()
	flags.IntVar(&f.Thread, "thread", 0, "look at this thread (`number` or TID) instead of the failing one")
	flags.BoolVar(&f.AllThreads, "all-threads", false, "show every thread by itself, with its variables")
	flags.IntVar(&f.Depth, "depth", 0, "`levels` of callers, and of their callees, that the static scan adds")
	flags.StringArrayVar(&f.Functions, "function", nil, "scan this `function` instead of the failing one, as in push or Queue::push; may be repeated")
	flags.StringVar(&f.Message, "message", "", "scan the functions that refer to this `text`, such as an error message")
	flags.StringArrayVar(&f.Recordings, "recording", nil, "`directory` with the recording of a run that failed; may be repeated")
	flags.StringArrayVar(&f.Passing, "passing", nil, "`directory` with the recording of a run that passed; may be repeated")
	flags.StringArrayVar(&f.RaceReports, "race-report", nil, "`file` with reports of Go's race detector (standard error, or GORACE's log_path), which are added; may be repeated")
	flags.IntVar(&f.process, "process", 0, "diagnose this `process` of the recorded run, instead of the one whose failure explains the run's")
	flags.StringVar(&f.FailedAt, "failed-at", "", "the run failed at this `place`, though it ended with status 0: FUNCTION or FILE:LINE (the last time that the run reaches it), or the moment THREAD:EVENT[:PC[:COUNT]]")
	flags.IntVar(&f.Hops, "hops", verdict.DefaultHops, "`stores` that a bad value is followed back through")
	flags.IntVar(&f.Replays, "experiments", verdict.DefaultReplays, "`replays` for each experiment")
	flags.DurationVar(&f.Time, "time", 0, "bound the `time` of all replays together, as in 90s or 5m; the report says which steps were left out")
	flags.Uint64Var(&f.Hits, "hits", watchtrace.DefaultHits, "log at most this `many` accesses in a replay")
	flags.BoolVar(&f.unsaved, "no-checkpoint-files", false, "leave no checkpoints of long replays in files, and begin at none of an earlier analysis")
	f.registerSuppressions(c)
	f.registerOutput(c)
	for _, name := range []string{"recording", "passing"} {
		must(c.MarkFlagDirname(name))
	}
	for _, name := range []string{"thread", "depth", "function", "message", "failed-at", "process", "hops", "experiments", "time", "hits"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

func (f *crashFlags) diagnoseCrash(c *cobra.Command) error {
	if err := f.check(c, atLeast{"thread", f.Thread, 1}, atLeast{"depth", f.Depth, 0}, atLeast{"process", f.process, 1},
		atLeast{"hops", f.Hops, 1}, atLeast{"experiments", f.Replays, 1}); err != nil {
		return err
	}
	if err := f.checkBounds(c); err != nil {
		return err
	}
	known, err := f.readSuppressions()
	if err != nil {
		return err
	}
	opened := openedRecordings{}
	defer opened.close()
	if err := f.resolve(c.Context(), opened); err != nil {
		return err
	}
	f.Opened = opened
	defer context.AfterFunc(c.Context(), secondEnds)()
	dropPages()
	ctx := c.Context()
	if !f.unsaved {
		ctx = withStore(ctx)
	}
	result, err := analyse(&f.commonFlags, func(req driver.Request) (*evidence.Case, error) { return driver.Crash(ctx, req) })
	if err != nil {
		return err
	}
	known.Suppress(result, time.Now())
	dropPages()
	err = f.emit(c, result.Timings, func(w io.Writer, opts reports.Options) error { return reports.Write(w, result, opts) })
	if err == nil && result.Diagnosis != nil && result.Diagnosis.Interrupted {
		return errInterrupted
	}
	return err
}

// withStore returns a context whose replays begin at checkpoints that earlier commands have left in the user's cache directory. Without
// that directory, or if others may write to it, they begin at the start of their recordings.
func withStore(ctx context.Context) context.Context {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ctx
	}
	store, err := replay.OpenStore(filepath.Join(cache, "diagnose", "checkpoints"), version())
	if err != nil {
		return ctx
	}
	return replay.UseStore(ctx, store)
}

// checkBounds refuses bounds of replays that make no sense, and any bounds if there is nothing to
// replay.
func (f *crashFlags) checkBounds(c *cobra.Command) error {
	flags := c.Flags()
	for _, name := range []string{"failed-at", "process", "hops", "experiments", "time", "hits"} {
		if flags.Changed(name) && len(f.Recordings) == 0 {
			return usagef("--%s is about replays: give a recording by --recording (see '%s --help')", name, c.CommandPath())
		}
	}
	switch {
	case flags.Changed("time") && f.Time <= 0:
		return usagef("--time takes a time above zero, as in 90s or 5m, not %v", f.Time)
	case f.Hits == 0:
		return usagef("--hits takes a whole number from 1 on, not 0")
	}
	return nil
}

// leastOpening is the time that the logs may be read for however short --time is. That one
// bounds replays, and a report without replays still says what failed.
const leastOpening = time.Minute

// errOpening ends the reading of a log.
var errOpening = &driver.InputError{Err: errors.New("the time for reading recordings, that of --time or a minute if that is longer, has passed")}

// resolve replaces the recordings of runs by the recordings of the processes to diagnose. It
// refuses directories that are no recordings, and recordings whose program was rebuilt since. The
// logs are read here. With --time that ends in time, too.
func (f *crashFlags) resolve(ctx context.Context, opened openedRecordings) error {
	if f.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, max(f.Time, leastOpening), errOpening)
		defer cancel()
	}
	for i, dir := range f.Recordings {
		blamed, err := f.blamed(ctx, opened, dir)
		if err != nil {
			return err
		}
		f.Recordings[i] = blamed
	}
	var passing []string
	for _, dir := range f.Passing {
		counterpart, err := f.counterpart(ctx, opened, dir)
		switch {
		case err != nil:
			return err
		case counterpart == "":
			say(fmt.Sprintf("warning: %s is not compared: it has no process of the same program that passed", dir))
		default:
			passing = append(passing, counterpart)
		}
	}
	f.Passing = passing
	for _, dir := range slices.Concat(f.Recordings, f.Passing) {
		rec, err := opened.open(ctx, dir)
		if err != nil {
			return err
		}
		err = unchanged(rec)
		advisePanic(rec)
		if err != nil {
			return err
		}
	}
	return nil
}

// openedRecordings are the recordings of a command by their directories. Each is opened once,
// because that reads its log.
type openedRecordings map[string]*record.Recording

func (o openedRecordings) open(ctx context.Context, dir string) (*record.Recording, error) {
	if rec := o[dir]; rec != nil {
		return rec, nil
	}
	rec, err := openRecording(ctx, dir)
	if err == nil {
		o[dir] = rec
	}
	return rec, err
}

func (o openedRecordings) close() {
	for _, rec := range o {
		rec.Close()
	}
}

func (f *crashFlags) blamed(ctx context.Context, opened openedRecordings, dir string) (string, error) {
	rec, err := opened.open(ctx, dir)
	if err != nil {
		return "", err
	}
	return driver.Blamed(rec, f.process)
}

// counterpart is the process of a passing run that is compared with the first failing one;
// empty if there is none.
func (f *crashFlags) counterpart(ctx context.Context, opened openedRecordings, dir string) (string, error) {
	passing, err := opened.open(ctx, dir)
	if err != nil || len(f.Recordings) == 0 {
		return dir, err
	}
	failing, err := opened.open(ctx, f.Recordings[0])
	if err != nil {
		return "", err
	}
	return driver.Counterpart(failing, passing), nil
}

// unchanged refuses a recording that can no longer be replayed. Without its passes the report would
// be that of the core alone, and look like a search that found nothing.
func unchanged(rec *record.Recording) error {
	err := replay.Check(rec)
	if err == nil {
		return nil
	}
	if core, coreErr := rec.Core(); coreErr == nil {
		err = fmt.Errorf("%w; what its core alone tells: diagnose crash --core %s", err, shellQuote(core))
	}
	return err
}
