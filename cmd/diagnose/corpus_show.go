package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/reports"
)

type corpusShowFlags struct {
	corpusFlags
	report bool
}

func newCorpusShow() *cobra.Command {
	f := &corpusShowFlags{}
	c := &cobra.Command{
		Use:   "show ENTRY|CLUSTER",
		Short: "Show the diagnoses and history of a failure or of a cluster",
		Long: `For a failure, show prints how it ended, where its files are, its labels, diagnoses
and history; for a cluster, what its failures have in common. --report shows the
report of the last diagnosis.
` + corpusExitHelp,
		Example: `  diagnose corpus show 1f3a9c
  diagnose corpus show 1f3a9c --report`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("show takes one entry or cluster, not %d (see '%s --help')", len(args), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return f.showEntry(c, args[0]) },
	}
	f.register(c)
	c.Flags().BoolVar(&f.report, "report", false, "show the report of its last diagnosis")
	f.registerFormat(c)
	return c
}

func (f *corpusShowFlags) showEntry(c *cobra.Command, name string) error {
	if err := f.checkRedact(); err != nil {
		return err
	}
	return f.with(c, corpus.Open, func(store *corpus.Corpus) error {
		e, err := store.Find(c.Context(), name)
		var input *corpus.InputError
		if errors.As(err, &input) {
			g, other := store.FindCluster(c.Context(), name)
			if other == nil {
				return f.cluster(c, store, g)
			}
			err = fmt.Errorf("%w; %w", err, other)
		}
		if err != nil {
			return err
		}
		if f.report {
			return f.showReport(c, store, e.ID)
		}
		shown := shownEntry{Entry: e, Path: store.EntryDir(e.ID)}
		if shown.Diagnoses, err = store.Diagnoses(c.Context(), e.ID); err != nil {
			return err
		}
		if shown.History, err = store.History(c.Context(), e.ID); err != nil {
			return err
		}
		return f.emit(c, &shownCorpus{Version: corpusVersion, Corpus: store.Dir, Entries: []shownEntry{shown}}, nil, entryText)
	})
}

func (f *corpusShowFlags) cluster(c *cobra.Command, store *corpus.Corpus, g corpus.Cluster) error {
	if f.report {
		return f.showReport(c, store, g.Example)
	}
	members, err := store.List(c.Context(), corpus.Filter{Cluster: g.Digest, Dropped: true})
	return f.emit(c, &shownCorpus{Version: corpusVersion, Corpus: store.Dir, Clusters: []corpus.Cluster{g}}, err, func(out *reports.Listing, shown *shownCorpus) {
		clusterText(out, shown, members)
	})
}

func (f *corpusShowFlags) showReport(c *cobra.Command, store *corpus.Corpus, id string) error {
	text, err := store.Report(c.Context(), id)
	if err != nil {
		return err
	}
	doc, err := readDocument(text)
	if err != nil {
		return fmt.Errorf("the report of %s: %w", id, err)
	}
	return reports.Write(c.OutOrStdout(), doc.Case, reports.Options{Format: reports.Format(f.format), Redact: f.redaction, Version: doc.Tool.Version})
}

func entryText(out *reports.Listing, shown *shownCorpus) {
	e := &shown.Entries[0]
	line := liner(out)
	line("entry", "%s, %s", e.ID, e.Kind)
	line("program", "%s", e.Program)
	line("build-id", "%s", e.BuildID)
	line("outcome", "%s", e.Outcome)
	line("failed", "%s", e.FailedAt.Local().Format(time.DateTime))
	line("files", "%s, %d KiB", e.Path, e.Bytes>>10)
	if e.Imported {
		line("imported", "it came from elsewhere, as %s", e.Source)
	}
	if e.DroppedAt != nil {
		line("dropped", "%s: its files are gone", e.DroppedAt.Local().Format(time.DateTime))
	}
	if len(e.Labels) > 0 {
		line("labels", "%s", labelText(e.Labels))
	}
	for _, d := range e.Diagnoses {
		text := fmt.Sprintf("%s, %s: %s", d.Kind, d.Proof, d.Summary)
		if !d.Diagnosed {
			text = "not diagnosed: " + d.Reason
		} else if d.Reason != "" {
			text += " (" + d.Reason + ")"
		}
		line("diagnosis", "by diagnose %s in %v: %s", d.Version, d.Took.Round(time.Millisecond), text)
	}
	if d := e.Diagnosis; d != nil && d.Stack != "" {
		line("cluster", "%s", d.Cluster())
		line("stack", "%s", d.Stack)
		line("cause", "%s", d.Cause)
	}
	for _, h := range e.History {
		line("history", "%s  %s %s", h.At.Local().Format(time.DateTime), h.What, h.Detail)
	}
}

// liner adds named lines that are not empty.
func liner(out *reports.Listing) func(name, format string, args ...any) {
	return func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			out.Named(name+":", "%s", text)
		}
	}
}

// mostMembers bounds the failures that are shown with a cluster, the newest ones.
const mostMembers = 5

func clusterText(out *reports.Listing, shown *shownCorpus, members []corpus.Entry) {
	g := &shown.Clusters[0]
	line := liner(out)
	line("cluster", "%s", g.Digest)
	line("kind", "%s, %s", g.Kind, g.Proof)
	line("cause", "%s", g.Summary)
	stacks := "1 stack"
	if g.Stacks != 1 {
		stacks = fmt.Sprintf("%d stacks", g.Stacks)
	}
	line("failures", "%d with %s, first %s, last %s", g.Count, stacks, g.First.Local().Format(time.DateTime), g.Last.Local().Format(time.DateTime))
	line("example", "%s", g.Example)
	if g.Fixed != nil {
		line("fixed", "%s %s", g.Fixed.Local().Format(time.DateTime), g.Note)
	}
	if g.Back != "" {
		line("back", "since %s", g.Back)
	}
	for _, l := range g.Lines {
		line("known by", "%s", l)
	}
	told := 0
	for i := range members {
		e := &members[i]
		if e.Diagnosis.Cluster() != g.Digest { // it has the stack, and a cause of its own
			continue
		}
		if told++; told <= mostMembers {
			line("failure", "%s  %s  %s", e.ID[:min(shortID, len(e.ID))], e.FailedAt.Local().Format(time.DateTime), labelText(e.Labels))
		}
	}
	if told > mostMembers {
		line("failure", "... and %d more: diagnose corpus list --cluster %s", told-mostMembers, g.Digest[:min(shortID, len(g.Digest))])
	}
}
