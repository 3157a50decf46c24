package main

import (
	"github.com/spf13/cobra"

	"diagnose/diagnosis/driver"
	"diagnose/image"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/reports"
)

func newMinimize() *cobra.Command {
	f := &huntFlags{}
	c := &cobra.Command{
		Use:   "minimize RECORDING",
		Short: "Find the fewest preemptions with which a program still fails",
		Long: `minimize removes from the schedule of a recording that 'diagnose hunt' made whatever
the failure does not need, by running the program again and again with less of it. It
shows the rest: the threads that are preempted, and where. It keeps two recordings, of
the smallest schedule that fails, and of the nearest schedule that passes. The program
runs for real, as in a hunt: with the recorded arguments and environment, in the
directory that this command is started in.

For any other recording it reduces the preemptions that 'diagnose replay' has found for
it, by replays, so the program does nothing for real again. The result is written into
the recording. The nearest schedule that passes has one of these preemptions less.

The program and its libraries must still be those that were recorded.

Exit status:

      0  the schedule was made as small as possible
      1  the tool itself failed
      2  the command line is wrong
      3  the recording cannot be used: it has no schedule, or the program changed
         or does not fail any more
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
	rec, err := openRecording(c.Context(), dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	if err := unchanged(rec); err != nil {
		return &driver.InputError{Err: err}
	}
	if rec.Manifest.Hunt == nil {
		return f.minimizeFound(c, rec, dir)
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

// minimizeFound minimizes a recording that was not hunted.
func (f *huntFlags) minimizeFound(c *cobra.Command, rec *record.Recording, dir string) error {
	if err := f.check(c); err != nil {
		return err
	}
	m, err := explore.MinimizeFound(c.Context(), rec, 0, image.Options{})
	if err != nil && c.Context().Err() == nil {
		return &driver.InputError{Err: err}
	}
	if err != nil {
		return err
	}
	r := &foundReport{Version: huntReportVersion, Recording: dir, FoundMinimal: m}
	if err := f.emit(c, r, r.listing()); err != nil {
		return err
	}
	if !f.diagnose {
		return nil
	}
	return runAnother(c.Context(), c, append([]string{"crash", "--recording", dir}, f.redactArgs()...))
}

// foundReport is what minimize tells of a recording that was not hunted, and the form
// of its JSON.
type foundReport struct {
	Version   string `json:"version"`
	Recording string `json:"recording"`
	*explore.FoundMinimal
}

func (r *foundReport) listing() *reports.Listing {
	out := &reports.Listing{}
	line := out.Named
	line("needed", "%s; %d of %d are left, after %d replays", preemptions(len(r.Preemptions)), len(r.Preemptions), r.Before, r.Replays)
	for _, p := range r.Preemptions[:min(len(r.Preemptions), mostShownDecisions)] {
		line("", "%v", p)
	}
	if n := len(r.Preemptions) - mostShownDecisions; n > 0 {
		line("", "and %d more", n)
	}
	if r.Passes {
		line("passes", "without the one of %v", *r.Without)
	} else {
		line("passes", "with no preemption less")
		for _, text := range r.Otherwise {
			line("", "%s", text)
		}
	}
	if r.LeftOut != "" {
		line("", "%s", r.LeftOut)
	}
	line("cause", "diagnose crash --recording %s", shellQuote(relative(r.Recording)))
	return out
}
