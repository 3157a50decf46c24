package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/reports"
)

// corpusVariable names the corpus that is meant without --corpus.
const corpusVariable = "DIAGNOSE_CORPUS"

const corpusExitHelp = `
Exit status:

      0  it was done
      1  the tool itself failed, or there is no room
      2  the command line is wrong
      3  there is no such corpus, entry or cluster, or what was given is neither
         a recording nor a core, or no archive
    130  it was interrupted`

// corpusFlags are those of all commands that use a corpus.
type corpusFlags struct {
	dir, format string
	labels      []string
}

func newCorpus() *cobra.Command {
	c := &cobra.Command{
		Use:   "corpus",
		Short: "Keep failures, and what is known of them",
		Long: `A corpus is a directory of recorded failures and cores, with a database beside
them: how they ended, labels, diagnoses, and which of them have one cause.
'diagnose nightly' diagnoses what is new in it.

Any number of processes may use a corpus at once, also to add to it. What
interrupts an addition leaves the entry whole or not there at all; what is added
a second time is there once.

The corpus is the directory that --corpus names, or else the environment's
` + corpusVariable + `, or else ./corpus.
` + corpusExitHelp,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCorpusAdd(), newCorpusList(), newCorpusShow(), newCorpusRemove(), newCorpusExport(), newCorpusImport(), newCorpusGC(),
		newCorpusFix(), newCorpusReopen())
	return c
}

func (f *corpusFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.dir, "corpus", "", "`directory` of the corpus")
	must(c.MarkFlagDirname("corpus"))
}

func (f *corpusFlags) registerFormat(c *cobra.Command) {
	c.Flags().StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of what is shown: text, json")
	complete(c, "format", cobra.FixedCompletions([]string{string(reports.Text), string(reports.JSON)}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *corpusFlags) registerLabels(c *cobra.Command, usage string) {
	c.Flags().StringArrayVar(&f.labels, "label", nil, usage)
	complete(c, "label", cobra.NoFileCompletions)
}

func (f *corpusFlags) checkFormat(c *cobra.Command) error {
	if f.format != string(reports.Text) && f.format != string(reports.JSON) {
		return usagef("--format takes text or json, not %q (see '%s --help')", f.format, c.CommandPath())
	}
	return nil
}

func (f *corpusFlags) parsedLabels() (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range f.labels {
		k, v, err := corpus.ParseLabel(text)
		if err != nil {
			return nil, usagef("--label: %w", err)
		}
		labels[k] = v
	}
	return labels, nil
}

// path is the corpus that is meant.
func (f *corpusFlags) path() string {
	if f.dir != "" {
		return f.dir
	}
	if dir := os.Getenv(corpusVariable); dir != "" {
		return dir
	}
	return "corpus"
}

// with opens the corpus by one of the package's ways, for one use.
func (f *corpusFlags) with(c *cobra.Command, open func(context.Context, string) (*corpus.Corpus, error), use func(*corpus.Corpus) error) error {
	store, err := open(c.Context(), f.path())
	if err != nil {
		return err
	}
	defer store.Close()
	return use(store)
}

// days is a time as flags have it, which may be in days: 30d.
type days time.Duration

func (d *days) Type() string   { return "duration" }
func (d *days) String() string { return time.Duration(*d).String() }

func (d *days) Set(text string) error {
	if number, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.ParseUint(number, 10, 16)
		*d = days(time.Duration(n) * 24 * time.Hour)
		return err
	}
	v, err := time.ParseDuration(text)
	if err == nil && v < 0 {
		err = errors.New("it is below zero")
	}
	*d = days(v)
	return err
}

type corpusAddFlags struct {
	corpusFlags
	move bool
	room int64
}

func newCorpusAdd() *cobra.Command {
	f := &corpusAddFlags{}
	c := &cobra.Command{
		Use:   "add RECORDING|CORE...",
		Short: "Add recordings and cores",
		Long: `add copies recordings and cores into the corpus, which is made if it is not there
yet, and prints their names in it. A recording of a run that passed is taken as
well: what failed is compared with it.

Symbolic links, devices and whatever else is no regular file are refused, and so
is a recording that is still being written. What cannot be added is told, and the
others are added.
` + corpusExitHelp,
		Example: `  diagnose corpus add recordings/server-0001-SIGSEGV --label host=ci-7
  diagnose corpus add --move recordings/*`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("add takes recordings or cores (see '%s --help')", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.register(c)
	f.registerLabels(c, "`key=value` that the entries get; may be repeated")
	c.Flags().BoolVar(&f.move, "move", false, "remove what was added from where it was")
	c.Flags().Int64Var(&f.room, "max-size", 64, "refuse what is larger than so many `GiB`, holes included")
	complete(c, "max-size", cobra.NoFileCompletions)
	f.registerFormat(c)
	return c
}

// shownAdded is the JSON of add.
type shownAdded struct {
	// Path is what was given, ID its name in the corpus.
	Path string `json:"path"`
	ID   string `json:"id,omitempty"`
	// Existed says that it was there already; Error why it was not added.
	Existed bool   `json:"existed"`
	Error   string `json:"error,omitempty"`
}

func (f *corpusAddFlags) run(c *cobra.Command, args []string) error {
	labels, err := f.parsedLabels()
	if err == nil {
		err = f.checkFormat(c)
	}
	if err == nil && (f.room < 1 || f.room > 1<<20) {
		err = usagef("--max-size takes a number of GiB from 1 on, not %d", f.room)
	}
	if err != nil {
		return err
	}
	open := corpus.Create
	if !slices.ContainsFunc(args, exists) {
		open = corpus.Change // no corpus is made for nothing
	}
	return f.with(c, open, func(store *corpus.Corpus) error {
		var list []shownAdded
		var failed []error
		for _, name := range args {
			added, err := store.Add(c.Context(), name, corpus.AddOptions{Labels: labels, Move: f.move, Bytes: f.room << 30})
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

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func newCorpusRemove() *cobra.Command {
	f := &corpusFlags{}
	c := &cobra.Command{
		Use:   "rm ENTRY...",
		Short: "Remove entries and what is known of them",
		Long: `rm takes entries out of the corpus: their files, diagnoses and labels. All of
them or, if one is not there, none. What is only to make room is better left to
'diagnose corpus gc', which keeps the counts.
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
ones of each cause. What is known of them stays, so counts and trends go on being
right. Failures that were not diagnosed yet are kept.
` + corpusExitHelp,
		Example: `  diagnose corpus gc --keep 30d
  diagnose corpus gc --keep 7d --examples 3 --dry-run`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if opts.Examples < 0 {
				return usagef("--examples takes a whole number from 0 on, not %d", opts.Examples)
			}
			if err := f.checkFormat(c); err != nil {
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

func newCorpusFix() *cobra.Command {
	f := &corpusFlags{}
	var note, at string
	c := &cobra.Command{
		Use:   "fix CLUSTER",
		Short: "Mark a cause as fixed",
		Long: `fix notes that the cause of a cluster is fixed. If a build that did not fail so
before fails so later, 'diagnose nightly' tells that it is back. Builds from before
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
			return f.with(c, corpus.Change, func(store *corpus.Corpus) error {
				g, err := store.FindCluster(c.Context(), args[0])
				if err != nil {
					return err
				}
				return store.Fixed(c.Context(), g.Digest, when, note)
			})
		},
	}
	f.register(c)
	c.Flags().StringVar(&at, "at", "", "`time` from which on it is fixed, if it is not now")
	c.Flags().StringVar(&note, "note", "", "`text` that reports show beside it")
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
			return f.with(c, corpus.Change, func(store *corpus.Corpus) error {
				g, err := store.FindCluster(c.Context(), args[0])
				if err != nil {
					return err
				}
				return store.Reopened(c.Context(), g.Digest, "")
			})
		},
	}
	f.register(c)
	return c
}

func oneCluster(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one cluster, as 'diagnose corpus list --clusters' names them (see '%s --help')", c.Name(), c.CommandPath())
	}
	return nil
}
