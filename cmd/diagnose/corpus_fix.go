package main

import (
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
)

func newCorpusFix() *cobra.Command {
	f := &corpusFlags{}
	var note, at string
	c := &cobra.Command{
		Use:   "fix CLUSTER",
		Short: "Mark a cause as fixed",
		Long: `fix notes that the cause of a cluster is fixed. If a build that did not fail so
before fails so later, 'diagnose nightly' reports that it is back. Builds from before
the fix, which some machines may still run, do not count.
` + corpusExitHelp,
		Example: `  diagnose corpus fix 9a4f20c1 --note "in 1.4, see issue 12"
  diagnose corpus fix 9a4f20c1 --at 2026-03-01T12:00:00Z`,
		Args:              oneCluster,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			when := time.Now()
			if at != "" {
				var err error
				if when, err = time.Parse(time.RFC3339, at); err != nil {
					return usagef("--at takes a time as in 2026-03-01T12:00:00Z, not %q", at)
				}
			}
			return f.withCluster(c, args[0], func(store *corpus.Corpus, digest string) error {
				return store.Fixed(c.Context(), digest, when, note)
			})
		},
	}
	f.register(c)
	c.Flags().StringVar(&at, "at", "", "`time` from which on it is fixed, if it is not now")
	c.Flags().StringVar(&note, "note", "", "`text` that reports show with it")
	for _, name := range []string{"at", "note"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	return c
}

func newCorpusReopen() *cobra.Command {
	f := &corpusFlags{}
	c := &cobra.Command{
		Use:   "reopen CLUSTER",
		Short: "Take back that a cause is fixed",
		Long: `reopen takes back what 'diagnose corpus fix' noted.
` + corpusExitHelp,
		Example:           "  diagnose corpus reopen 9a4f20c1",
		Args:              oneCluster,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			return f.withCluster(c, args[0], func(store *corpus.Corpus, digest string) error {
				return store.Reopened(c.Context(), digest, "")
			})
		},
	}
	f.register(c)
	return c
}

// withCluster changes the cluster that a name refers to.
func (f *corpusFlags) withCluster(c *cobra.Command, name string, use func(store *corpus.Corpus, digest string) error) error {
	return f.with(c, corpus.Change, func(store *corpus.Corpus) error {
		g, err := store.FindCluster(c.Context(), name)
		if err != nil {
			return err
		}
		return use(store, g.Digest)
	})
}

func oneCluster(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one cluster, as 'diagnose corpus list --clusters' names them (see '%s --help')", c.Name(), c.CommandPath())
	}
	return nil
}
