package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"diagnose/diagnosis/driver"
	"diagnose/reports"
)

// check refuses flags that cannot work before anything is opened or stopped, and adds the settings
// of the environment.
func (f *commonFlags) check(c *cobra.Command, numbers ...atLeast) error {
	if _, err := reports.ParseFormat(f.format); err != nil {
		return &usageError{err}
	}
	if err := f.checkRedact(); err != nil {
		return err
	}
	if err := f.checkSource(c); err != nil {
		return err
	}
	if err := checkNumbers(c, append([]atLeast{{"pid", f.PID, 1}, {"coredumpctl", f.Dump, 0}}, numbers...)); err != nil {
		return err
	}
	if err := f.checkPaths(); err != nil {
		return err
	}
	return f.readEnvironment()
}

// checkSource requires exactly one thing to analyse.
func (f *commonFlags) checkSource(c *cobra.Command) error {
	f.HasDump = c.Flags().Changed("coredumpctl")
	var given []string
	for _, name := range []string{"core", "pid", "coredumpctl"} {
		if c.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	recorded := len(f.Recordings) > 0
	switch {
	case len(f.Passing) > 0 && !recorded:
		return usagef("--passing is for a comparison with a run that failed: give that by --recording")
	case recorded && (f.HasDump || f.PID != 0):
		return usagef("--recording goes with --core or by itself: a recording has its core")
	case len(given) == 0 && recorded:
		return nil
	case len(given) == 0:
		return usagef("nothing to look at: give one of %s (see '%s --help')", sources(c), c.CommandPath())
	case len(given) > 1:
		return usagef("%s exclude each other: give one of them", strings.Join(given, " and "))
	case given[0] == "--core" && f.Core == "":
		return usagef("--core: the name of the file is empty")
	case f.Core == "-" && isatty.IsTerminal(os.Stdin.Fd()):
		return usagef("--core -: standard input is a terminal; pipe a core into it, as in 'zstdcat core.zst | %s --core -'", c.CommandPath())
	}
	return nil
}

// sources lists what a command can analyse.
func sources(c *cobra.Command) string {
	if c.Flags().Lookup("recording") == nil {
		return "--core FILE, --pid N and --coredumpctl N"
	}
	return "--core FILE, --pid N, --coredumpctl N and --recording DIR"
}

// atLeast is the value of a numeric flag and the least value that makes sense.
type atLeast struct {
	flag         string
	value, least int
}

func checkNumbers(c *cobra.Command, list []atLeast) error {
	for _, x := range list {
		if c.Flags().Changed(x.flag) && x.value < x.least {
			return usagef("--%s takes a whole number from %d on, not %d", x.flag, x.least, x.value)
		}
	}
	return nil
}

// checkPaths refuses files that the user names and that do not exist. Otherwise each would only be
// a line among the report's warnings.
func (f *commonFlags) checkPaths() error {
	if f.Exe != "" {
		info, err := os.Stat(f.Exe)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", f.Exe)
		}
		if err != nil {
			return &driver.InputError{Err: fmt.Errorf("--exe: %w", err)}
		}
	}
	if f.Sysroot != "" {
		if err := checkDirectory("--sysroot", f.Sysroot); err != nil {
			return err
		}
	}
	for _, dir := range f.DebugDirs {
		if err := checkDirectory("--debug-dir", dir); err != nil {
			return err
		}
	}
	return checkOutput(f.output)
}

func checkDirectory(flag, path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	if err != nil {
		return &driver.InputError{Err: fmt.Errorf("%s: %w", flag, err)}
	}
	return nil
}

func (f *commonFlags) readEnvironment() error {
	f.Debuginfod = strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
	text := os.Getenv("DEBUGINFOD_TIMEOUT")
	if text == "" {
		return nil
	}
	seconds, err := time.ParseDuration(text + "s")
	if err != nil || seconds <= 0 {
		return usagef("DEBUGINFOD_TIMEOUT is %q: it takes a number of seconds", text)
	}
	f.DebuginfodTimeout = seconds
	return nil
}
