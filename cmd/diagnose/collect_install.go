package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"diagnose/fleet/collect"
	"diagnose/reports"
)

// collectInstallFlags are those of install, uninstall and status.
type collectInstallFlags struct {
	root, program, spool string
	replace, print, scan bool
	window               time.Duration
	programRate          int
	totalRate            int
	programMiB, totalMiB int64
	entryMiB             int64
}

func newCollectInstall() *cobra.Command {
	f := &collectInstallFlags{}
	c := &cobra.Command{
		Use:   "install",
		Short: "Have the kernel hand all cores of this host to diagnose",
		Long: `install sets kernel.core_pattern and kernel.core_pipe_limit, now and at boot by a file
of sysctl.d, and writes /etc/diagnose/collect.toml unless it exists. The former values
are kept for 'collect uninstall'. Another handler of cores is replaced only with
--replace.

With --systemd-coredump the handler stays systemd's, and units are written that take
the cores which it stores. systemd has no hook for a stored core; a path unit watches
the directory. The crashed process has ended by then, so programs of containers and
programs that were replaced are kept without their files.

The limits are those of the configuration that is written.
` + collectExitHelp,
		Example: `  diagnose collect install --print
  diagnose collect install --spool /srv/spool --total-mib 20480
  diagnose collect install --root /host --program /opt/diagnose/diagnose`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.install(c) },
	}
	f.register(c)
	d := collect.Default()
	flags := c.Flags()
	flags.StringVar(&f.program, "program", "", "`path` of diagnose as the host sees it, instead of this one")
	flags.BoolVar(&f.replace, "replace", false, "replace another handler of cores")
	flags.BoolVar(&f.scan, "systemd-coredump", false, "leave systemd-coredump the handler, and take the cores that it stores")
	flags.StringVar(&f.spool, "spool", d.Spool, "`directory` of the spool")
	flags.DurationVar(&f.window, "window", d.Limits.Window, "crashes that look like a kept one are counted only, for this `time`")
	flags.IntVar(&f.programRate, "program-rate", d.Limits.ProgramRate, "cores that are kept of one program in an `hour`")
	flags.IntVar(&f.totalRate, "total-rate", d.Limits.TotalRate, "cores that are kept in an `hour`")
	flags.Int64Var(&f.programMiB, "program-mib", d.Limits.ProgramBytes>>20, "disk for the cores of one program, in `MiB`")
	flags.Int64Var(&f.totalMiB, "total-mib", d.Limits.TotalBytes>>20, "disk for the spool, in `MiB`")
	flags.Int64Var(&f.entryMiB, "entry-mib", d.Limits.EntryBytes>>20, "disk for one core and its files, in `MiB`")
	return c
}

func newCollectUninstall() *cobra.Command {
	f := &collectInstallFlags{}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Set the former handler of cores again",
		Long: `uninstall sets the values of kernel.core_pattern and kernel.core_pipe_limit that were
set before 'collect install', and removes the files that it wrote. The spool and the
configuration stay. A core_pattern that was changed since stays, too.
` + collectExitHelp,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return refused(f.installation(c).Uninstall()) },
	}
	f.register(c)
	return c
}

func (f *collectInstallFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.root, "root", "", "`directory` in which the host's root is, as /host in a container")
	flags.BoolVar(&f.print, "print", false, "print the steps, and take none")
	must(c.MarkFlagDirname("root"))
}

func (f *collectInstallFlags) installation(c *cobra.Command) *collect.Installation {
	return &collect.Installation{Root: f.root, Program: f.program, Replace: f.replace, Print: f.print,
		Note: func(text string) { fmt.Fprintln(c.OutOrStdout(), reports.Clean(text)) }}
}

func (f *collectInstallFlags) install(c *cobra.Command) error {
	if f.program == "" {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		f.program = program
	}
	i := f.installation(c)
	i.Config = collect.Default()
	i.Config.Spool = f.spool
	l := &i.Config.Limits
	l.Window, l.ProgramRate, l.TotalRate = f.window, f.programRate, f.totalRate
	l.ProgramBytes, l.TotalBytes, l.EntryBytes = f.programMiB<<20, f.totalMiB<<20, f.entryMiB<<20
	if err := l.Check(); err != nil {
		return usagef("the limits: %w", err)
	}
	if f.scan {
		return refused(i.InstallScan())
	}
	return refused(i.Install())
}

// refused makes a refusal one of the command line.
func refused(err error) error {
	var r *collect.RefusedError
	if errors.As(err, &r) {
		return &usageError{err}
	}
	return err
}
