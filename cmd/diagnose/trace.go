package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// traceFlags are the flags of trace.
type traceFlags struct {
	recording, format, output, backend string
	watches                            []string
	writes                             bool
	words, passes, limit               int
	hits                               uint64
	// nowhere lists the expressions that name no memory at the recording's end.
	nowhere []evidence.Limit
	redactFlag
}

// The forms of a trace.
const (
	traceTable  = "table"
	traceJSON   = "json"
	traceChrome = "chrome"
)

var traceBackends = []string{"auto", string(replay.BackendBPF), string(replay.BackendPtrace), string(replay.BackendProbe), string(replay.BackendPages)}

func newTrace() *cobra.Command {
	f := &traceFlags{}
	c := &cobra.Command{
		Use:   "trace --recording RECORDING --watch EXPR...",
		Short: "Log the accesses to variables of a recording",
		Long: `trace replays a recording with hardware watchpoints on variables (or protected
pages, where the machine's watchpoints do not work), four words a replay, and lists every access to them in the order in which they were made: by
which thread, from which line, whether it read or wrote, the value before and
after, and the locks that the thread held.

EXPR is a global or a part of one, as the program writes it, or other memory:

    total                    a variable
    cfg.workers[3].state     a member, an element
    head->next->value, *p    memory through the program's pointers, which have
                             the values of the end of the recording
    malloc@pool.c:31#3       of the objects allocated at that line that are in
                             memory at the end the third, by address;
                             +8 is its rest from byte 8 on, :4 so many bytes
    0x5555555580a0:8         an address and a length

A variable that is larger than a word takes several of them, up to 64. The words that
the budgets (--words, --passes, --hits) leave out are traced by probes: code at the
instructions of the program that are known to access them, at most a thousand. Probes
do not see accesses by libraries, or by instructions that are not known.

table is for people, json for programs, chrome is the Trace Event Format that
chrome://tracing and https://ui.perfetto.dev open: threads are its lanes, with the
accesses, what the thread waited for, its calls and its signal handlers; the locks
that accesses were made under have lanes of their own. Time is the order of events.

Exit status:

      0  the accesses were logged
      1  the tool itself failed
      2  the command line is wrong, or an expression names nothing
      3  the recording cannot be used here: it is damaged, or the program changed
      4  the replay diverged from the recording or got stuck; the accesses up
         to there are shown
    130  it was interrupted`,
		Example: `  diagnose trace --recording recordings/bank-0001-SIGABRT --watch 'accounts[0].balance'
  diagnose trace --recording recordings/server-0001-SIGSEGV --watch cfg.state --watch queue->head --format chrome -o trace.json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q; each expression takes a --watch (see '%s --help')", args[0], c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.traceRecording(c) },
	}
	f.register(c)
	return c
}

func (f *traceFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.recording, "recording", "", "`directory` that 'diagnose record' made")
	flags.StringArrayVarP(&f.watches, "watch", "w", nil, "`expression` to watch; may be repeated")
	flags.StringVarP(&f.format, "format", "f", traceTable, "`form` of the result: table, json, chrome")
	flags.StringVarP(&f.output, "output", "o", "", "write the result to `file`, which only you can read, instead of standard output")
	flags.BoolVar(&f.writes, "writes", false, "leave reads out")
	flags.StringVar(&f.backend, "backend", traceBackends[0], "`mechanism`: "+strings.Join(traceBackends, ", "))
	flags.IntVar(&f.words, "words", watchtrace.DefaultWords, "watch at most this `many` words")
	flags.IntVar(&f.passes, "passes", watchtrace.DefaultPasses, "replay at most this `many` times")
	flags.Uint64Var(&f.hits, "hits", watchtrace.DefaultHits, "log at most this `many` accesses in a pass")
	flags.IntVar(&f.limit, "limit", 1000, "show at most this `many` accesses in a table, the last ones; 0: all")
	f.registerLocalRedact(c)
	must(c.MarkFlagDirname("recording"))
	choices(c, "format", traceTable, traceJSON, traceChrome)
	choices(c, "backend", traceBackends...)
	for _, name := range []string{"watch", "words", "passes", "hits", "limit"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

func (f *traceFlags) check(c *cobra.Command) error {
	hint := fmt.Sprintf("see '%s --help'", c.CommandPath())
	switch {
	case f.recording == "":
		return usagef("trace needs --recording (%s)", hint)
	case len(f.watches) == 0:
		return usagef("nothing to trace: give a variable with --watch (%s)", hint)
	case f.words < 1 || f.passes < 1 || f.hits < 1 || f.limit < 0:
		return usagef("--words, --passes and --hits take numbers from 1 on, --limit from 0 on (%s)", hint)
	}
	if err := f.checkRedact(); err != nil {
		return err
	}
	return checkOutput(f.output)
}

func (f *traceFlags) traceRecording(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return err
	}
	rec, err := openRecording(c.Context(), f.recording)
	if err != nil {
		return err
	}
	defer rec.Close()
	progress := newProgress(os.Stderr)
	defer progress.clear()
	progress.say("looking for the variables")
	targets, err := f.targets(c.Context(), rec)
	if err != nil {
		return err
	}
	log, err := watchtrace.Trace(c.Context(), rec, targets, f.options(progress))
	if err != nil {
		return err
	}
	for _, l := range f.nowhere {
		log.Limits = evidence.AddLimit(log.Limits, l)
	}
	calls, err := watchtrace.Calls(rec, log)
	if err != nil {
		return err
	}
	progress.clear()
	report := &traceReport{log: log, calls: calls, limit: f.limit, events: rec.Log}
	if err := f.write(c.OutOrStdout(), report); err != nil {
		return err
	}
	if why := report.short(); why != "" {
		say(f.redacted(why))
		return &notReplayedError{}
	}
	return nil
}

func (f *traceFlags) options(progress *progress) watchtrace.Options {
	o := watchtrace.Options{Words: f.words, Passes: f.passes, Hits: f.hits, Known: true, Progress: func(p watchtrace.Progress) {
		progress.say(fmt.Sprintf("pass %d of %d, %d accesses", min(p.Done+1, p.Passes), p.Passes, p.Hits))
	}}
	if f.backend != traceBackends[0] {
		o.Backend = replay.Backend(f.backend)
	}
	return o
}

// targets returns the memory that the expressions name.
func (f *traceFlags) targets(ctx context.Context, rec *record.Recording) ([]watchtrace.Target, error) {
	var targets []watchtrace.Target
	err := watchtrace.AtEnd(ctx, rec, image.Options{}, func(p *image.Process) error {
		for _, expr := range f.watches {
			list, err := watchtrace.Resolve(p, expr)
			if err != nil {
				return withoutNames(err, p)
			}
			targets = append(targets, list...)
			for _, t := range list {
				if p.MappingAt(t.Addr) == nil {
					f.nowhere = append(f.nowhere, evidence.Limit{Code: evidence.LimitUnmapped, Names: []string{expr}, Addr: t.Addr})
				}
			}
		}
		return nil
	})
	var name *watchtrace.NameError
	switch {
	case errors.As(err, &name) && strings.TrimSpace(name.Expr) == "":
		return nil, usagef("--watch: %s", name.Problem)
	case errors.As(err, &name):
		return nil, usagef("--watch %s", wording.Bare(name))
	}
	for i := range targets {
		targets[i].Writes = f.writes
	}
	return targets, err
}

// withoutNames adds to the error about an unknown name that the program has no names at all.
func withoutNames(err error, p *image.Process) error {
	var name *watchtrace.NameError
	if !errors.As(err, &name) || len(p.Modules) == 0 {
		return err
	}
	m := p.Modules[0]
	if m.Object == nil || m.DebugFile() != "" || m.Object.HasDWARF() {
		return err
	}
	return &watchtrace.NameError{Expr: name.Expr, Problem: fmt.Sprintf("%s; %s has no debug information, so few of its variables have names: compile it with -g, install its debug symbols, or give ADDRESS:LENGTH",
		name.Problem, filepath.Base(m.Path))}
}

func (f *traceFlags) write(w io.Writer, report *traceReport) error {
	var b bytes.Buffer
	form := map[string]func(io.Writer) error{traceTable: report.table, traceJSON: report.json, traceChrome: report.chrome}[f.format]
	if err := f.show(&b, f.format != traceTable, form); err != nil {
		return err
	}
	return putReport(w, f.output, b.Bytes())
}

// byText says on whose behalf an access was made; empty for the program's own code.
func byText(a *evidence.Access, call string) string {
	switch {
	case a.By == evidence.ByHeap:
		return "heap"
	case a.By != evidence.ByCall:
		return ""
	case call != "":
		return call
	}
	return "kernel"
}
