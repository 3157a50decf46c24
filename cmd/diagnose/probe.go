package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"diagnose/image/expression"
	"diagnose/internal/wording"
	"diagnose/probe"
	"diagnose/probe/sandbox"
)

// probeFlags are the flags of probe.
type probeFlags struct {
	probe.Question
	recording, format, output string
	print, code               []string
	redactFlag
}

// The forms of the answer to a probe.
const (
	probeTable = "table"
	probeJSON  = "json"
	probeCSV   = "csv"
	// probePerfetto is the Trace Event Format.
	probePerfetto = "perfetto"
)

func newProbe() *cobra.Command {
	f := &probeFlags{}
	c := &cobra.Command{
		Use:   "probe --recording RECORDING --at FILE:LINE --print EXPR,...",
		Short: "Print expressions at places of a recording",
		Long: `probe replays a recording and prints expressions each time that a thread reaches a
place: a row for each time, with the moment, which 'diagnose replay --until' takes.

    --at FILE:LINE       code of a line begins; FILE may be the end of the path
    --on-call FUNCTION   a function begins: its parameters, unless --print says
                         otherwise
    --on-return FUNCTION a function has returned: $result, what it returned
    --on-syscall NAME    a system call was made, with its arguments and result
    --on-signal          a handler of the program took a signal
    --on-write EXPR      EXPR was written: $old and $new, and what --print says, right
                         after the write; EXPR as for 'diagnose trace --watch', and
                         with none of the other places

    --code FILE          before a line, C code of your own runs

A line or a function has several places where it was inlined or is a template; each is
listed. The code of a line that the compiler has split has several places, too, and a
thread that reaches two of them gives two rows.

EXPR is an expression of C with the program's names and types: variables that are
visible at the place, -> . [] * &, arithmetic, comparisons, && || ?:, casts, sizeof and
literals. == and != compare a string literal with the program's characters. At events
the innermost function of the program decides what names mean. A value that the
compiler did not keep is <optimized out>, and one that cannot be read says why.

The code of --code is between DIAGNOSE_BEGIN and DIAGNOSE_END, lines of their own in a
copy of the program's source, or in a file with 'at FILE:LINE { ... }'. The system's
compiler compiles it with the program's types. It reads the program's variables, may
loop, print, and keep variables and heap of its own from one time to the next. It runs
in a process of its own; a store to the program's memory is an error with its line.
Functions of the program that it calls run in a copy of the program, which the code sees
until its end; then the copy is thrown away. System calls of the code are errors.

perfetto is the Trace Event Format that https://ui.perfetto.dev and chrome://tracing open:
threads are its lanes; a call lasts until its return if both were asked for. Time is the
order of the rows.

The program is not changed by the questions: the replay ends as recorded, which --verify
checks.

Exit status:

      0  the question was answered, even if no thread reached the place
      1  the tool itself failed
      2  the command line is wrong: there is no such place, or an expression is wrong
      3  the recording cannot be used here: it is damaged, or the program changed
      4  the replay diverged from the recording or got stuck, or --verify found its end
         to differ; the rows up to there are shown
    130  it was interrupted`,
		Example: `  diagnose probe --recording recordings/server-0001-SIGSEGV --at server.c:120 --print 'q->len, q->head->key' --if 'q->len > 64'
  diagnose probe --recording recordings/server-0001-SIGSEGV --on-call push --on-return pop --stack --format json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.probeRecording(c) },
	}
	f.register(c)
	return c
}

func (f *probeFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.recording, "recording", "", "`directory` that 'diagnose record' made")
	flags.StringArrayVar(&f.Lines, "at", nil, "`FILE:LINE` to stop at; may be repeated, as the other places")
	flags.StringArrayVar(&f.Calls, "on-call", nil, "`function` whose calls to stop at")
	flags.StringArrayVar(&f.Returns, "on-return", nil, "`function` whose returns to stop at")
	flags.StringArrayVar(&f.Syscalls, "on-syscall", nil, "`name` of a system call to stop after")
	flags.BoolVar(&f.Signals, "on-signal", false, "stop at signals that a handler takes")
	flags.StringArrayVar(&f.code, "code", nil, "`file` with code to run at its places: a marked copy of a source, or blocks 'at FILE:LINE { ... }'")
	flags.StringArrayVar(&f.Writes, "on-write", nil, "`expression` whose writes to stop after")
	flags.StringArrayVarP(&f.print, "print", "p", nil, "`expressions` to print, with commas between; may be repeated")
	flags.StringVar(&f.If, "if", "", "print a row only where this `expression` is true")
	flags.BoolVar(&f.Stack, "stack", false, "add the stack to each row")
	flags.IntVar(&f.Most, "max", 1000, "end after this `many` rows; 0: all")
	flags.BoolVar(&f.Verify, "verify", false, "compare the end of the replay with the recorded one")
	flags.StringVarP(&f.format, "format", "f", probeTable, "`form` of the answer: table, json, csv, perfetto")
	flags.StringVarP(&f.output, "output", "o", "", "write the answer to `file`, which only you can read, instead of standard output")
	f.registerLocalRedact(c)
	must(c.MarkFlagDirname("recording"))
	choices(c, "format", probeTable, probeJSON, probeCSV, probePerfetto)
	for _, name := range []string{"at", "on-call", "on-return", "on-syscall", "on-write", "print", "if", "max"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

func (f *probeFlags) check(c *cobra.Command) error {
	hint := fmt.Sprintf("see '%s --help'", c.CommandPath())
	places := len(f.Lines)+len(f.Calls)+len(f.Returns)+len(f.Syscalls)+len(f.code) > 0 || f.Signals
	switch {
	case f.recording == "":
		return usagef("probe needs --recording (%s)", hint)
	case !places && len(f.Writes) == 0:
		return usagef("no place to stop at: give one with --at, --on-call, --on-return, --on-syscall, --on-signal, --on-write or --code (%s)", hint)
	case places && len(f.Writes) > 0:
		return usagef("--on-write does not go together with the other places: ask twice (%s)", hint)
	case f.Verify && len(f.Writes) > 0:
		return usagef("--on-write does not go together with --verify (%s)", hint)
	case f.Most < 0:
		return usagef("--max takes numbers from 0 on (%s)", hint)
	}
	for _, list := range f.print {
		f.Print = append(f.Print, expression.Split(list)...)
	}
	if err := f.readCode(); err != nil {
		return err
	}
	if err := f.checkRedact(); err != nil {
		return err
	}
	return checkOutput(f.output)
}

func (f *probeFlags) probeRecording(c *cobra.Command) error {
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
	progress.say("looking for the places")
	f.Progress = func(p probe.Progress) {
		progress.say(fmt.Sprintf("replaying, %d of %d events, %s", p.Events, p.Total, wording.Count(uint64(p.Rows), "row")))
	}
	log, err := probe.Ask(c.Context(), rec, &f.Question)
	var wrong *probe.Error
	var refused *sandbox.CompileError
	switch {
	case errors.As(err, &wrong):
		return usagef("%s", wording.Bare(wrong))
	case errors.As(err, &refused):
		return usagef("%s", wording.Bare(refused))
	case log == nil:
		return err
	}
	progress.clear()
	report := &probeReport{log: log, failure: err}
	if err := f.write(c.OutOrStdout(), report); err != nil {
		return err
	}
	if why := report.short(); why != "" {
		say(f.redacted(why))
		return &notReplayedError{}
	}
	return nil
}

func (f *probeFlags) write(w io.Writer, report *probeReport) error {
	var b bytes.Buffer
	form := map[string]func(io.Writer) error{probeTable: report.table, probeJSON: report.json, probeCSV: report.csv, probePerfetto: report.perfetto}[f.format]
	if err := f.show(&b, f.format == probeJSON || f.format == probePerfetto, form); err != nil {
		return err
	}
	return putReport(w, f.output, b.Bytes())
}
