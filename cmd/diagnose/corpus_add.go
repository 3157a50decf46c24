package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/reports"
)

type corpusAddFlags struct {
	corpusFlags
	move   bool
	maxGiB int64
}

func newCorpusAdd() *cobra.Command {
	f := &corpusAddFlags{}
	c := &cobra.Command{
		Use:   "add RECORDING|CORE...",
		Short: "Add recordings and cores",
		Long: `add copies recordings and cores into the corpus, creates the corpus if there is none,
and prints the entries' names. Recordings of runs that passed may be added, too:
failures are compared with them.

A directory of the spool of 'diagnose collect' is added with the executable and the libraries
that are in it.

Symbolic links, devices and other irregular files are refused, and so is a recording
that is still being written. add reports each one that cannot be added, and adds the
others.
` + corpusExitHelp,
		Example: `  diagnose corpus add recordings/server-0001-SIGSEGV --label host=ci-7
  diagnose corpus add --move recordings/*`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("add takes recordings or cores (see '%s --help')", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.addEntries(c, args) },
	}
	f.register(c)
	f.registerLabels(c, "`key=value` that the entries get; may be repeated")
	c.Flags().BoolVar(&f.move, "move", false, "remove the originals after they were added")
	c.Flags().Int64Var(&f.maxGiB, "max-size", 64, "refuse entries larger than this many `GiB`, holes included")
	complete(c, "max-size", cobra.NoFileCompletions)
	f.registerFormat(c)
	return c
}

// shownAdded is the JSON of add.
type shownAdded struct {
	// Path is the argument as given, ID the entry's name in the corpus.
	Path string `json:"path"`
	ID   string `json:"id,omitempty"`
	// Existed says that the corpus already had it, Error why it was not added.
	Existed bool   `json:"existed"`
	Error   string `json:"error,omitempty"`
}

func (f *corpusAddFlags) addEntries(c *cobra.Command, args []string) error {
	labels, err := f.parsedLabels()
	if err = cmp.Or(err, f.checkRedact(), checkMaxSize(f.maxGiB)); err != nil {
		return err
	}
	open := corpus.Create
	if !slices.ContainsFunc(args, exists) {
		open = corpus.Change // no corpus is made if there is nothing to add
	}
	return f.with(c, open, func(store *corpus.Corpus) error {
		var list []shownAdded
		var failed []error
		for _, name := range args {
			added, err := store.Add(c.Context(), name, corpus.AddOptions{Labels: labels, Move: f.move, Bytes: f.maxGiB << 30})
			shown := shownAdded{Path: name, ID: added.ID, Existed: added.Existed}
			if err != nil {
				shown.Error = err.Error()
				failed = append(failed, err)
			}
			list = append(list, shown)
			if f.format == string(reports.Text) && err == nil {
				what := "added"
				if added.Existed {
					what = "was there"
				}
				fmt.Fprintf(c.OutOrStdout(), "%s  %s  %s\n", added.ID, what, reports.Clean(name))
			}
			if c.Context().Err() != nil {
				break
			}
		}
		if f.format == string(reports.JSON) {
			failed = append(failed, reports.WriteJSON(c.OutOrStdout(), list))
		}
		return errors.Join(failed...)
	})
}

// checkMaxSize checks --max-size, in GiB.
func checkMaxSize(gib int64) error {
	if gib < 1 || gib > 1<<20 {
		return usagef("--max-size takes a number of GiB from 1 on, not %d", gib)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
