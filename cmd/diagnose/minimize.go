package main

import (
	"github.com/spf13/cobra"

	"diagnose/explore"
	"diagnose/internal/driver"
	"diagnose/record"
)

func newMinimize() *cobra.Command {
	f := &huntFlags{}
	c := &cobra.Command{
		Use:   "minimize RECORDING",
		Short: "Find the fewest preemptions with which a hunted program still fails",
		Long: `minimize takes away from the schedule of a recording that 'diagnose hunt' made
whatever the failure does not need, by running the program again and again with
less of it. What is left is shown: the threads that are preempted, and where. Two
recordings are kept, of the smallest schedule that fails, and of the nearest that
passes.

The program and its libraries must still be those that were recorded. They run
for real, as in a hunt: with the recorded arguments and environment, in the
directory that this command is started in.

Exit status:

      0  the schedule was made as small as possible
      1  the tool itself failed
      2  the command line is wrong
      3  the recording cannot be used: it was not made by a hunt, the program
         changed, or does not fail any more
    130  it was interrupted`,
		Example: `  diagnose minimize recordings/bank-0001-SIGABRT`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("minimize takes one recording, not %d (see '%s --help')", len(args), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error { return f.minimize(c, args[0]) },
	}
	f.register(c)
	return c
}

func (f *huntFlags) minimize(c *cobra.Command, dir string) error {
	rec, err := openRecording(dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	if err := unchanged(rec); err != nil {
		return &driver.InputError{Err: err}
	}
	o, err := f.options(c, nil)
	if err != nil {
		return err
	}
	p := &rec.Manifest.Program
	o.Record.Path, o.Record.Args, o.Record.Environ = string(p.Path), record.Strings(p.Args), record.Strings(p.Environ)
	if p.Executed != "" && !p.Script {
		o.Record.Path = string(p.Executed)
	}
	o.Record.Library = string(rec.Manifest.Agent.Path)
	result, err := f.follow(&o, func() (*explore.HuntResult, error) { return explore.Minimize(c.Context(), rec, o) })
	if err != nil && c.Context().Err() == nil {
		return &driver.InputError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := f.tell(c, &huntReport{Version: huntReportVersion, Recording: dir, HuntResult: result}); err != nil {
		return err
	}
	if !f.diagnose {
		return nil
	}
	f.then(c, result)
	return nil
}
