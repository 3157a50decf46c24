package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/reports"
)

// corpusVariable names the corpus that is used without --corpus.
const corpusVariable = "DIAGNOSE_CORPUS"

const corpusExitHelp = `
Exit status:

      0  it was done
      1  the tool itself failed, or there is no room
      2  the command line is wrong
      3  there is no such corpus, entry or cluster, or the given path is neither
         a recording nor a core, or is no archive
    130  it was interrupted`

// corpusFlags are the flags of all commands that use a corpus.
type corpusFlags struct {
	dir, format string
	labels      []string
	redactFlag
}

func newCorpus() *cobra.Command {
	c := &cobra.Command{
		Use:   "corpus",
		Short: "Keep failures and their diagnoses",
		Long: `A corpus is a directory of recorded failures and cores, and a database of how they
ended, labels, diagnoses, and which of them have one cause. 'diagnose nightly'
diagnoses its new failures.

Any number of processes may use a corpus at once, also to add to it. An interrupted
addition leaves the whole entry or none; an entry that is added twice is kept once.

The corpus is the directory that --corpus names, or else the environment's
` + corpusVariable + `, or else ./corpus.
` + corpusExitHelp,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCorpusAdd(), newCorpusList(), newCorpusShow(), newCorpusRemove(), newCorpusExport(), newCorpusImport(), newCorpusPush(), newCorpusPull(), newCorpusGC(),
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
	c.Flags().StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the output: text, json")
	choices(c, "format", string(reports.Text), string(reports.JSON))
	f.registerLocalRedact(c)
}

func (f *corpusFlags) registerLabels(c *cobra.Command, usage string) {
	c.Flags().StringArrayVar(&f.labels, "label", nil, usage)
	complete(c, "label", cobra.NoFileCompletions)
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

// path returns the path of the corpus.
func (f *corpusFlags) path() string {
	if f.dir != "" {
		return f.dir
	}
	if dir := os.Getenv(corpusVariable); dir != "" {
		return dir
	}
	return "corpus"
}

// with opens the corpus by one of the functions of package corpus, for one use.
func (f *corpusFlags) with(c *cobra.Command, open func(context.Context, string) (*corpus.Corpus, error), use func(*corpus.Corpus) error) error {
	store, err := open(c.Context(), f.path())
	if err != nil {
		return err
	}
	defer store.Close()
	return use(store)
}

// days is a duration in flags, which may be given in days: 30d.
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
