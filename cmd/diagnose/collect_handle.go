package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"diagnose/fleet/collect"
	"diagnose/fleet/collect/spool"
	"diagnose/reports"
)

func newCollectHandle() *cobra.Command {
	f := &collectFlags{}
	c := &cobra.Command{
		Use:   "handle PID TID UID GID SIGNAL TIME",
		Short: "Take a core from standard input, as the kernel gives it",
		Long: `handle is what 'collect install' has the kernel start for each crash: core_pattern is

    |/usr/bin/diagnose collect handle %P %I %u %g %s %t

It reads the core from standard input. The crashed process is read through /proc while
the kernel holds it, in its own mount namespace. Messages go to the file log of the
spool, because the kernel gives no standard error.
` + collectExitHelp,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 6 {
				return usagef("handle takes the six numbers that the kernel gives: %%P %%I %%u %%g %%s %%t (see '%s --help')", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.handle(c, args) },
	}
	f.register(c)
	return c
}

func (f *collectFlags) handle(c *cobra.Command, args []string) error {
	crash, err := parseCrash(args)
	if err != nil {
		return err
	}
	config, err := f.read()
	if err != nil {
		collect.Log(config.Spool, err.Error())
		return err
	}
	store, err := spool.Open(config.Spool, config.Limits)
	if err != nil {
		collect.Log(config.Spool, err.Error())
		return err
	}
	// A read of a hostile file system may not end, and nothing but the end of this process ends it.
	// What it has written until then is removed by the next one.
	time.AfterFunc(config.Time, func() {
		collect.Log(config.Spool, fmt.Sprintf("core of process %d: given up after %v", crash.PID, config.Time))
		os.Exit(exitInternal)
	})
	outcome, err := collect.Handle(store, os.Stdin, crash)
	if err != nil {
		collect.Log(config.Spool, err.Error())
		return err
	}
	if outcome.Dir != "" {
		fmt.Fprintln(c.OutOrStdout(), reports.Clean(outcome.Dir))
	} else {
		fmt.Fprintln(c.OutOrStdout(), "not kept:", outcome.Refused)
	}
	return nil
}

// mostSignal is SIGRTMAX.
const mostSignal = 64

// parseCrash reads the numbers that the kernel puts into the command line.
func parseCrash(args []string) (collect.Crash, error) {
	numbers := make([]int64, len(args))
	for i, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 0 || i < len(args)-1 && n >= 1<<32 {
			return collect.Crash{}, usagef("%.40q is no number that the kernel gives", a)
		}
		numbers[i] = n
	}
	if numbers[4] > mostSignal {
		return collect.Crash{}, usagef("there is no signal %d", numbers[4])
	}
	return collect.Crash{PID: int(numbers[0]), TID: int(numbers[1]), UID: int(numbers[2]), GID: int(numbers[3]), Signal: int(numbers[4]),
		Time: time.Unix(numbers[5], 0)}, nil
}
