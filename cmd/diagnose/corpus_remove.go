package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/reports"
)

func newCorpusRemove() *cobra.Command {
	f := &corpusFlags{}
	c := &cobra.Command{
		Use:   "rm ENTRY...",
		Short: "Remove entries with their diagnoses",
		Long: `rm takes entries out of the corpus: their files, diagnoses and labels. If one of
them does not exist, none is removed. To make room, use 'diagnose corpus gc', which
keeps the counts.
` + corpusExitHelp,
		Example:           "  diagnose corpus rm 1f3a9c",
		Args:              someEntries,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c, corpus.Change, func(store *corpus.Corpus) error {
				var ids []string
				for _, a := range args {
					e, err := store.Find(c.Context(), a)
					if err != nil {
						return err
					}
					ids = append(ids, e.ID)
				}
				return store.Remove(c.Context(), ids...)
			})
		},
	}
	f.register(c)
	return c
}

func someEntries(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s takes entries of the corpus, as 'diagnose corpus list' names them (see '%s --help')", c.Name(), c.CommandPath())
	}
	return nil
}

func newCorpusGC() *cobra.Command {
	f := &corpusFlags{}
	opts := corpus.GCOptions{}
	keep := days(30 * 24 * time.Hour)
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove the files of old failures",
		Long: `gc removes the files of failures that are older than --keep, except the newest
ones of each cause. Their diagnoses stay, so counts and trends remain
right. Failures that were not diagnosed yet are kept.
` + corpusExitHelp,
		Example: `  diagnose corpus gc --keep 30d
  diagnose corpus gc --keep 7d --examples 3 --dry-run`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if opts.Examples < 0 {
				return usagef("--examples takes a whole number from 0 on, not %d", opts.Examples)
			}
			if err := f.checkRedact(); err != nil {
				return err
			}
			opts.Before = time.Now().Add(-time.Duration(keep))
			return f.with(c, corpus.Change, func(store *corpus.Corpus) error { return f.collect(c, store, opts) })
		},
	}
	f.register(c)
	flags := c.Flags()
	flags.Var(&keep, "keep", "`time` since the failure for which files are kept, as in 12h or 30d")
	flags.IntVar(&opts.Examples, "examples", 1, "`failures` of each cause that are kept however old they are")
	flags.BoolVar(&opts.Passed, "passed", false, "remove old recordings of runs that passed as well")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "only tell what would be removed")
	for _, name := range []string{"keep", "examples"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	f.registerFormat(c)
	return c
}

func (f *corpusFlags) collect(c *cobra.Command, store *corpus.Corpus, opts corpus.GCOptions) error {
	dropped, err := store.GC(c.Context(), opts)
	if err != nil {
		return err
	}
	if f.format == string(reports.JSON) {
		if dropped == nil {
			dropped = []corpus.Entry{}
		}
		return reports.WriteJSON(c.OutOrStdout(), dropped)
	}
	var bytes int64
	for i := range dropped {
		bytes += dropped[i].Bytes
		fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", dropped[i].ID, reports.Clean(dropped[i].Name()))
	}
	what := "removed the files of"
	if opts.DryRun {
		what = "would remove the files of"
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s %d failures, %d MiB\n", what, len(dropped), bytes>>20)
	return err
}
