package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
file that does not match is not used. DEBUGINFOD_URLS, if it is set, names the
servers to ask for debug information; without it no network is used.

Statements carry their proof level: "from core" was read from the process,
"inferred" follows from a rule. Secrets that the report recognises (passwords,
tokens, keys) are replaced unless --show-secrets is given.
` + exitHelp,
		Example: `  diagnose crash --core core.123
  diagnose crash --core core.zst --exe ./server --format markdown --output report.md
  diagnose crash --pid 4711
  zstdcat core.zst | diagnose crash --core - --format json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
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
	flags.StringVarP(&f.format, "format", "f", string(reports.Text), "report as "+strings.Join(reports.Formats(), ", "))
	flags.StringVarP(&f.output, "output", "o", "", "write the report to `file` instead of standard output")
	flags.IntVar(&f.Thread, "thread", 0, "look at this thread (`number` or TID) instead of the failing one")
	flags.BoolVar(&f.AllThreads, "all-threads", false, "show every thread by itself, with its variables")
	flags.IntVar(&f.Depth, "depth", 0, "`levels` of callers, and of their callees, that the static scan adds")
	flags.StringArrayVar(&f.Functions, "function", nil, "scan this `function` as well, for failures without a crash; may be repeated")
	flags.StringVar(&f.Message, "message", "", "scan the functions that refer to this `text`")
	flags.BoolVar(&f.NoDemangle, "no-demangle", false, "show linkage names")
	flags.BoolVar(&f.noColor, "no-color", false, "no colours; they are used on a terminal only, and not with NO_COLOR set")
	flags.BoolVar(&f.showSecrets, "show-secrets", false, "do not replace passwords, tokens and keys")
	flags.BoolVar(&f.timings, "timings", false, "print to standard error how long each stage took")
	if err := c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reports.Formats(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was registered above
	}
}

func (f *crashFlags) run(c *cobra.Command) error {
	format, err := reports.ParseFormat(f.format)
	if err != nil {
		return &usageError{err}
	}
	if err := f.complete(c); err != nil {
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
	return f.write(c.OutOrStdout(), &report)
}

// complete checks the flags against each other and adds the environment's.
func (f *crashFlags) complete(c *cobra.Command) error {
	flags := c.Flags()
	f.HasDump = flags.Changed("coredumpctl")
	sources := 0
	for _, name := range []string{"core", "pid", "coredumpctl"} {
		if flags.Changed(name) {
			sources++
		}
	}
	if sources != 1 || flags.Changed("core") && f.Core == "" {
		return usagef("exactly one of --core, --pid and --coredumpctl is needed (see '%s --help')", c.CommandPath())
	}
	if flags.Changed("pid") && f.PID <= 0 || f.Dump < 0 || f.Thread < 0 || f.Depth < 0 {
		return usagef("--pid, --coredumpctl, --thread and --depth do not take negative numbers")
	}
	f.Debuginfod = strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
	if text := os.Getenv("DEBUGINFOD_TIMEOUT"); text != "" {
		seconds, err := time.ParseDuration(text + "s")
		if err != nil || seconds <= 0 {
			return usagef("DEBUGINFOD_TIMEOUT is %q: it takes a number of seconds", text)
		}
		f.DebuginfodTimeout = seconds
	}
	return nil
}

// color: on a terminal only, and not where NO_COLOR is set (no-color.org).
func (f *crashFlags) color() bool {
	return !f.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" &&
		f.output == "" && isatty.IsTerminal(os.Stdout.Fd())
}

// write puts a report file in place whole or not at all, readable by its
// owner only: a report holds what was in the process's memory.
func (f *crashFlags) write(stdout io.Writer, report *bytes.Buffer) error {
	if f.output == "" || f.output == "-" {
		_, err := report.WriteTo(stdout)
		return err
	}
	if info, err := os.Stat(f.output); err == nil && !info.Mode().IsRegular() {
		return writeDevice(f.output, report)
	}
	temp, err := os.CreateTemp(filepath.Dir(f.output), ".diagnose-*")
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = report.WriteTo(temp)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), f.output)
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

func writeDevice(path string, report *bytes.Buffer) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer file.Close()
	if _, err := report.WriteTo(file); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}
