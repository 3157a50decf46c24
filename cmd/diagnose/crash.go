package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"diagnose/internal/driver"
	"diagnose/reports"
)

// crashFlags are what the command line of crash says.
type crashFlags struct {
	driver.Request
	format, output string
	noColor        bool
	showSecrets    bool
	timings        bool
}

func newCrash() *cobra.Command {
	f := &crashFlags{}
	c := &cobra.Command{
		Use:   "crash (--core FILE | --pid N | --coredumpctl N)",
		Short: "Report why a process crashed, from its core file or the stopped process",
		Long: `crash reads a core file, or stops a live process and lets it go on afterwards,
and reports what failed, where, in which variable, and where the bad value came
from as far as the process can tell; the stacks of all threads; and the shared
memory that the failing code touches.

Cores may be compressed (zst, lz4, gz, xz). The executable, its libraries and
their debug information are found by themselves; build-ids are compared, and a
file that does not match is not used.

Statements carry their proof level: "from core" was read from the process,
"inferred" follows from a rule. Secrets that the report recognises (passwords,
tokens, keys) are replaced unless --show-secrets is given.
` + environmentHelp + exitHelp,
		Example: `  diagnose crash --core core.123
  diagnose crash --core core.zst --exe ./server --format markdown --output report.md
  diagnose crash --pid 4711
  zstdcat core.zst | diagnose crash --core - --format json`,
		Args:              noStrayFile,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.register(c)
	return c
}

func (f *crashFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Core, "core", "", "core `file`, compressed or not; - is standard input")
	flags.IntVar(&f.PID, "pid", 0, "live `process` to stop, read and let go on")
	flags.IntVar(&f.Dump, "coredumpctl", 0, "`process` whose dump to take from coredumpctl's store; 0 is the last")
	flags.StringVar(&f.Exe, "exe", "", "executable `file`, if it is not where the core says")
	flags.StringVar(&f.Sysroot, "sysroot", "", "`directory` under which to look for the files that the core names")
	flags.StringArrayVar(&f.DebugDirs, "debug-dir", nil, "`directory` with separate debug files, searched before /usr/lib/debug; may be repeated")
	flags.StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the report: "+strings.Join(reports.Formats(), ", "))
	flags.StringVarP(&f.output, "output", "o", "", "write the report to `file`, which only you can read, instead of standard output")
	flags.IntVar(&f.Thread, "thread", 0, "look at this thread (`number` or TID) instead of the failing one")
	flags.BoolVar(&f.AllThreads, "all-threads", false, "show every thread by itself, with its variables")
	flags.IntVar(&f.Depth, "depth", 0, "`levels` of callers, and of their callees, that the static scan adds")
	flags.StringArrayVar(&f.Functions, "function", nil, "scan this `function` instead of the failing one; may be repeated")
	flags.StringVar(&f.Message, "message", "", "scan the functions that refer to this `text`, such as an error message")
	flags.BoolVar(&f.NoDemangle, "no-demangle", false, "show linkage names")
	flags.BoolVar(&f.noColor, "no-color", false, "no colours; they are used on a terminal only, and not with NO_COLOR set")
	flags.BoolVar(&f.showSecrets, "show-secrets", false, "do not replace passwords, tokens and keys")
	flags.BoolVar(&f.timings, "timings", false, "print to standard error how long each stage took")
	completions(c)
}

// completions tells the shells what stands behind which flag. A flag without
// an entry takes a file.
func completions(c *cobra.Command) {
	must := func(err error) {
		if err != nil {
			panic(err) // a flag that register does not know
		}
	}
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reports.Formats(), cobra.ShellCompDirectiveNoFileComp)))
	for _, name := range []string{"sysroot", "debug-dir"} {
		must(c.MarkFlagDirname(name))
	}
	for _, name := range []string{"pid", "coredumpctl", "thread", "depth", "function", "message"} {
		must(c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
}

func (f *crashFlags) run(c *cobra.Command) error {
	format, err := reports.ParseFormat(f.format)
	if err != nil {
		return &usageError{err}
	}
	if err := f.check(c); err != nil {
		return err
	}
	progress := newProgress(os.Stderr)
	f.Progress = progress.say
	result, err := driver.Crash(c.Context(), f.Request)
	progress.clear()
	if err != nil {
		return err
	}
	var report bytes.Buffer
	opts := reports.Options{Format: format, Color: f.color(), ShowSecrets: f.showSecrets, Version: version()}
	if err := reports.Write(&report, result, opts); err != nil {
		return err
	}
	if f.timings {
		for _, t := range result.Timings {
			fmt.Fprintf(os.Stderr, "%-12s %v\n", t.Stage, t.Duration.Round(10*time.Microsecond))
		}
	}
	if toStandardOutput(f.output) {
		_, err = report.WriteTo(c.OutOrStdout())
		return err
	}
	return writeFile(f.output, report.Bytes())
}

// color: on a terminal only, and not where NO_COLOR is set (no-color.org).
func (f *crashFlags) color() bool {
	return !f.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" &&
		toStandardOutput(f.output) && isatty.IsTerminal(os.Stdout.Fd())
}
