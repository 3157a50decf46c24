package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/reports"
)

// commonFlags are the flags of every command that reads a process and writes a report: what to
// read, where its files are, what to write.
type commonFlags struct {
	driver.Request
	format, output string
	noColor        bool
	showSecrets    bool
	redactFlag
	timings bool
}

func (f *commonFlags) registerInput(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Core, "core", "", "core `file`, compressed or not; - is standard input")
	flags.IntVar(&f.PID, "pid", 0, "live `process` to stop, read and resume")
	flags.IntVar(&f.Dump, "coredumpctl", 0, "`process` whose dump to take from coredumpctl's store; 0 is the last")
	flags.StringVar(&f.Exe, "exe", "", "executable `file`, if it is not where the core says")
	flags.StringVar(&f.Sysroot, "sysroot", "", "`directory` under which to look for the files that the core names")
	flags.StringArrayVar(&f.DebugDirs, "debug-dir", nil, "`directory` with separate debug files, searched before /usr/lib/debug; may be repeated")
	flags.StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the report: "+strings.Join(reports.Formats(), ", "))
	flags.StringVarP(&f.output, "output", "o", "", "write the report to `file`, which only you can read, instead of standard output")
	choices(c, "format", reports.Formats()...)
	for _, name := range []string{"sysroot", "debug-dir"} {
		must(c.MarkFlagDirname(name))
	}
	for _, name := range []string{"pid", "coredumpctl"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

func (f *commonFlags) registerOutput(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.NoDemangle, "no-demangle", false, "show linkage names")
	flags.BoolVar(&f.noColor, "no-color", false, "no colours; they are used on a terminal only, and not with NO_COLOR set")
	flags.BoolVar(&f.showSecrets, "show-secrets", false, "do not replace passwords, tokens and keys")
	f.registerRedact(c)
	flags.BoolVar(&f.timings, "timings", false, "print to standard error how long each stage took")
}

// complete tells the shells what follows a flag. A flag without completions takes a file.
func complete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	must(c.RegisterFlagCompletionFunc(flag, f))
}

func must(err error) {
	if err != nil {
		panic(err) // a flag that was not registered
	}
}

// analyse runs an analysis with the progress line.
func analyse[T any](f *commonFlags, run func(driver.Request) (T, error)) (T, error) {
	progress := newProgress(os.Stderr)
	defer progress.clear()
	f.Progress = progress.say
	return run(f.Request)
}

// emit writes a report to where the flags say, and the times of the stages.
func (f *commonFlags) emit(c *cobra.Command, timings []evidence.Timing, write func(io.Writer, reports.Options) error) error {
	var report bytes.Buffer
	root, err := os.Getwd()
	if err != nil {
		root = "" // the directory was removed: files are named by their absolute paths
	}
	err = write(&report, reports.Options{Format: reports.Format(f.format), Color: f.color(), Width: f.width(), ShowSecrets: f.showSecrets, Redact: f.redaction, Version: version(), SourceRoot: root})
	if err != nil {
		return err
	}
	if f.timings {
		for _, t := range timings {
			fmt.Fprintf(os.Stderr, "%-12s %v\n", t.Stage, t.Duration.Round(10*time.Microsecond))
		}
	}
	return putReport(c.OutOrStdout(), f.output, report.Bytes())
}

// color reports whether the output is coloured: on a terminal only, and not if NO_COLOR is set
// (no-color.org).
func (f *commonFlags) color() bool {
	return !f.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && f.onTerminal()
}

func (f *commonFlags) onTerminal() bool {
	return toStandardOutput(f.output) && isatty.IsTerminal(os.Stdout.Fd())
}

// width returns the width of the terminal, 0 if the report is not for one.
func (f *commonFlags) width() int {
	if !f.onTerminal() {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
