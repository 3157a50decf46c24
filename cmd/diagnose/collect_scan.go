package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/fleet/collect"
	"diagnose/fleet/collect/spool"
)

func newCollectScan() *cobra.Command {
	f := &collectFlags{}
	c := &cobra.Command{
		Use:   "scan [DIRECTORY]",
		Short: "Take the cores that systemd-coredump stored",
		Long: `scan takes the cores of systemd-coredump's directory, /var/lib/systemd/coredump, that it has
not taken before. The units of 'collect install --systemd-coredump' run it.
` + collectExitHelp,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("scan takes one directory (see '%s --help')", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.scan(c, args) },
	}
	f.register(c)
	return c
}

func (f *collectFlags) scan(c *cobra.Command, args []string) error {
	config, err := f.read()
	if err != nil {
		return err
	}
	store, err := spool.Open(config.Spool, config.Limits)
	if err != nil {
		return err
	}
	dir := collect.CoredumpDir
	if len(args) > 0 {
		dir = args[0]
	}
	if _, err := os.ReadDir(dir); err != nil {
		return &corpus.InputError{Err: err}
	}
	done, err := collect.Scan(store, dir)
	fmt.Fprintf(c.OutOrStdout(), "%d kept, %d counted\n", done.Kept, done.Counted)
	for _, text := range done.Failed {
		collect.Log(store.Dir, text)
		err = errors.Join(err, &corpus.InputError{Err: errors.New(text)})
	}
	return err
}
