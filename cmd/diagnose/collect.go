package main

import (
	"github.com/spf13/cobra"

	"diagnose/fleet/collect"
)

func newCollect() *cobra.Command {
	c := &cobra.Command{
		Use:   "collect",
		Short: "Keep the cores of all programs that crash on this host",
		Long: `collect keeps the cores of programs that crash on this host, with their executables and
libraries, in a spool: compressed, without memory that is in these files, without
secrets of the environment, and within limits of rate and size. docs/collect.md has
the details.
` + collectExitHelp,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCollectInstall(), newCollectUninstall(), newCollectStatus(), newCollectSend(), newCollectScan(), newCollectHandle())
	return c
}

const collectExitHelp = `
Exit status:

      0  it succeeded; for handle: the core was kept, or counted
      1  it failed: the error is on standard error and, for handle, in the spool's log
      2  the command line is wrong
      3  the input cannot be used`

// collectFlags are flags of the commands that use a spool.
type collectFlags struct {
	config, spool string
}

func (f *collectFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config, "config", collect.DefaultConfig, "configuration `file`; one that does not exist is empty")
	flags.StringVar(&f.spool, "spool", "", "`directory` of the spool, instead of the configuration's")
	must(c.MarkFlagDirname("spool"))
}

func (f *collectFlags) read() (collect.Config, error) {
	c, err := collect.ReadConfig(f.config)
	if f.spool != "" {
		c.Spool = f.spool
	}
	return c, err
}
