package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/reports"
)

func newCorpusExport() *cobra.Command {
	f := &corpusListFlags{}
	var output string
	c := &cobra.Command{
		Use:   "export [ENTRY...]",
		Short: "Write failures to an archive",
		Long: `export writes failures with their diagnoses and history to an archive, which
'diagnose corpus import' reads on another machine: those that are named, or those
that the flags choose, or all.

An archive has the memory of the processes and the environments of recorded programs:
secrets are not removed from it.
` + corpusExitHelp,
		Example: `  diagnose corpus export --since 7d --output week.tar.zst
  diagnose corpus export 1f3a9c --output one.tar.zst`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			filter, err := f.chosen()
			if err != nil {
				return err
			}
			if output == "" {
				return usagef("--output is missing: give a file, or - for standard output (see '%s --help')", c.CommandPath())
			}
			return f.with(c, corpus.Open, func(store *corpus.Corpus) error {
				for _, a := range args {
					e, err := store.Find(c.Context(), a)
					if err != nil {
						return err
					}
					filter.IDs = append(filter.IDs, e.ID)
				}
				return exportTo(c, store, filter, output)
			})
		},
	}
	f.register(c)
	f.registerFilter(c)
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write, which only you can read; - is standard output")
	return c
}

func exportTo(c *cobra.Command, store *corpus.Corpus, filter corpus.Filter, output string) error {
	write := func(w io.Writer) error {
		n, err := store.Export(c.Context(), w, filter)
		if err == nil {
			say(fmt.Sprintf("%d entries were written", n))
		}
		return err
	}
	if output == "-" {
		if isatty.IsTerminal(os.Stdout.Fd()) {
			return usagef("an archive is nothing for a terminal: give a file by --output")
		}
		return write(c.OutOrStdout())
	}
	if err := checkOutput(output); err != nil {
		return err
	}
	return writeOutput(output, write)
}

func newCorpusImport() *cobra.Command {
	f := &corpusFlags{}
	maxGiB := int64(64)
	c := &cobra.Command{
		Use:   "import ARCHIVE...",
		Short: "Add the failures of archives",
		Long: `import adds what 'diagnose corpus export' wrote; - is standard input. Entries that
are there already are left as they are. Each is compared with its digest before it
is taken, and an archive that was cut off is taken as far as it goes: importing it
again completes it.

Nothing of an archive is executed by import. The entries are kept as imported, and
'diagnose nightly' does not replay the recordings among them unless it is told to.
` + foreignHelp + corpusExitHelp,
		Example: "  diagnose corpus import week.tar.zst",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("import takes archives (see '%s --help')", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(checkMaxSize(maxGiB), f.checkRedact()); err != nil {
				return err
			}
			return f.with(c, corpus.Create, func(store *corpus.Corpus) error { return f.importAll(c, store, args, maxGiB<<30) })
		},
	}
	f.register(c)
	c.Flags().Int64Var(&maxGiB, "max-size", maxGiB, "refuse entries larger than this many `GiB`, holes included")
	complete(c, "max-size", cobra.NoFileCompletions)
	f.registerFormat(c)
	return c
}

func (f *corpusFlags) importAll(c *cobra.Command, store *corpus.Corpus, args []string, maxBytes int64) error {
	var all corpus.Imported
	for _, name := range args {
		done, err := importFrom(c, store, name, maxBytes)
		all.Added, all.Existed = all.Added+done.Added, all.Existed+done.Existed
		if err != nil {
			return fmt.Errorf("%s: %w; %d entries were added before", name, err, all.Added)
		}
	}
	if f.format == string(reports.JSON) {
		return reports.WriteJSON(c.OutOrStdout(), all)
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%d entries were added, %d were there\n", all.Added, all.Existed)
	return err
}

func importFrom(c *cobra.Command, store *corpus.Corpus, name string, maxBytes int64) (corpus.Imported, error) {
	in := newPipeReader(c.Context(), os.Stdin)
	if name != "-" {
		var err error
		if in, err = openPipe(c.Context(), name); err != nil {
			return corpus.Imported{}, &corpus.InputError{Err: err}
		}
		defer in.Close()
	}
	return store.Import(c.Context(), in, maxBytes)
}

// readDocument reads a report that the corpus has.
func readDocument(text []byte) (*reports.Document, error) {
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Case == nil {
		return nil, errors.New("it has no case")
	}
	return &doc, nil
}
