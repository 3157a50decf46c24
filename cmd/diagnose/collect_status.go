package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagnose/fleet/collect"
	"diagnose/fleet/collect/spool"
	"diagnose/reports"
)

type collectStatusFlags struct {
	collectFlags
	install collectInstallFlags
}

func newCollectStatus() *cobra.Command {
	f := &collectStatusFlags{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Tell whether cores are collected, and how many",
		Long: `status prints the handler of cores, the cores in the spool, and how many crashes of each
program were kept and counted.
` + collectExitHelp,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.status(c) },
	}
	f.collectFlags.register(c)
	c.Flags().StringVar(&f.install.root, "root", "", "`directory` in which the host's root is, as /host in a container")
	must(c.MarkFlagDirname("root"))
	return c
}

func (f *collectStatusFlags) status(c *cobra.Command) error {
	config, err := f.read()
	if err != nil {
		return err
	}
	set, err := f.install.installation(c).Status()
	if err != nil {
		return err
	}
	have := new(spool.Status)
	if exists(config.Spool) { // the first core makes it
		store, err := spool.Open(config.Spool, config.Limits)
		if err != nil {
			return err
		}
		if have, err = store.Status(); err != nil {
			return err
		}
	}
	writeCollectStatus(c.OutOrStdout(), &set, config.Spool, have)
	return nil
}

func writeCollectStatus(w io.Writer, set *collect.InstallStatus, dir string, have *spool.Status) {
	state := "not installed"
	if set.Installed {
		state = "installed"
	}
	fmt.Fprintf(w, "handler    %s: core_pattern %s, core_pipe_limit %d\n", state, reports.Clean(set.Pattern), set.PipeLimit)
	if set.Former != "" {
		fmt.Fprintf(w, "before     %s\n", reports.Clean(set.Former))
	}
	fmt.Fprintf(w, "spool      %s: %d cores, %s; objects %s\n", reports.Clean(dir), len(have.Entries), sizeText(have.CoreBytes), sizeText(have.ObjectBytes))
	fmt.Fprintf(w, "crashes    %d kept%s\n", have.Kept, notKeptText(have.Refused))
	for _, p := range have.Programs {
		fmt.Fprintf(w, "  %s  %s: %d kept%s\n", p.Last.UTC().Format(time.RFC3339), reports.Clean(p.Name), p.Kept, notKeptText(p.Refused))
	}
}

// refusalWords are the words for the reasons why cores were not kept.
var refusalWords = map[spool.Refusal]string{
	spool.Same: "like a kept one", spool.ProgramRate: "above the program's rate", spool.TotalRate: "above the rate of all",
	spool.Busy: "while others were written", spool.Full: "without room", spool.Failed: "failed (see the spool's log)",
}

func notKeptText(refused map[spool.Refusal]uint64) string {
	var b strings.Builder
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		words := refusalWords[why]
		if words == "" {
			words = string(why)
		}
		fmt.Fprintf(&b, ", %d %s", refused[why], reports.Clean(words))
	}
	return b.String()
}
