package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/fleet/engine"
	"diagnose/fleet/share"
	"diagnose/internal/wording"
	"diagnose/reports"
)

const engineExitHelp = `
Exit status:

      0  it was done
      1  the tool itself failed, or the engine has no room; the command resumes when
         it is repeated
      2  the command line is wrong
      3  there is no such corpus or entry, an entry is damaged (the others were done),
         or the engine does not answer or refuses this user
    130  it was interrupted`

type corpusPushFlags struct {
	corpusListFlags
	engine engineFlags
	bare   bool
}

func newCorpusPush() *cobra.Command {
	f := &corpusPushFlags{}
	c := &cobra.Command{
		Use:   "push [ENTRY...]",
		Short: "Send failures to an engine that hosts share",
		Long: `push sends failures with their labels and diagnoses to an engine, a NATS server with
JetStream: those that are named, or those that the flags choose, or all. What the
engine has is not sent again, be it of the same failure, or the program and the
memory that another failure has in common with it. Others see a failure when all of
it is there.

The engine gets the memory of the processes and the environments of recorded
programs: secrets are not removed.
` + engineHelp + engineExitHelp,
		Example: `  diagnose corpus push --engine tls://engine.example:4222 --engine-credentials ci.creds --team web
  diagnose corpus push 1f3a9c --engine nats://127.0.0.1:4222`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              f.pushEntries,
	}
	f.corpusListFlags.register(c)
	f.engine.register(c, "engine", engineURLUsage)
	f.registerFilter(c)
	c.Flags().BoolVar(&f.bare, "without-diagnoses", false, "leave out the diagnoses")
	f.registerFormat(c)
	return c
}

func (f *corpusPushFlags) pushEntries(c *cobra.Command, args []string) error {
	filter, err := f.chosen()
	if err = cmp.Or(err, f.checkRedact()); err != nil {
		return err
	}
	if _, err := f.engine.chosen(); err != nil {
		return err
	}
	return f.with(c, corpus.Open, func(store *corpus.Corpus) error {
		if filter.IDs, err = found(c, store, args); err != nil {
			return err
		}
		entries, err := store.List(c.Context(), filter)
		if err != nil {
			return err
		}
		return f.engine.with(c.Context(), func(e *engine.Engine) error { return f.pushAll(c, store, e, entries) })
	})
}

// found returns the names of the entries whose prefixes are given.
func found(c *cobra.Command, store *corpus.Corpus, prefixes []string) (ids []string, err error) {
	for _, p := range prefixes {
		e, err := store.Find(c.Context(), p)
		if err != nil {
			return nil, err
		}
		ids = append(ids, e.ID)
	}
	return ids, nil
}

// shownPushed is the JSON of push.
type shownPushed struct {
	share.Pushed
	// Error is why it was not pushed.
	Error string `json:"error,omitempty"`
}

func sizeText(n int64) string { return wording.Size(uint64(max(n, 0))) }

// pushAll pushes entries. One that is damaged does not stop the others; any other error does.
func (f *corpusPushFlags) pushAll(c *cobra.Command, store *corpus.Corpus, e *engine.Engine, entries []corpus.Entry) error {
	line := newProgress(os.Stderr)
	defer line.clear()
	list := []shownPushed{}
	var failed []error
	for i := range entries {
		packed, err := store.Pack(c.Context(), &entries[i], corpus.PackOptions{Bare: f.bare})
		shown := shownPushed{Pushed: share.Pushed{ID: entries[i].ID}}
		if err == nil {
			shown.Pushed, err = share.Push(c.Context(), e, &packed, func(g engine.Progress) {
				line.say(fmt.Sprintf("entry %d of %d: %s of %s read, %s sent", i+1, len(entries), sizeText(g.Bytes), sizeText(g.AllBytes), sizeText(g.Sent)))
			})
		}
		line.clear()
		if err != nil {
			shown.Error = err.Error()
			failed = append(failed, err)
		}
		list = append(list, shown)
		if f.format == string(reports.Text) && err == nil {
			what := fmt.Sprintf("pushed, %s sent", sizeText(shown.Sent))
			if shown.Existed {
				what = "was there"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", shown.ID, what)
		}
		if err != nil && !unusable(err) {
			failed = append(failed, fmt.Errorf("%s of %d entries were done before; pushing again resumes", wording.Count(i-len(failed)+1, "entry"), len(entries)))
			break
		}
	}
	if f.format == string(reports.JSON) {
		failed = append(failed, reports.WriteJSON(c.OutOrStdout(), list))
	} else if len(entries) == 0 {
		say("the corpus has no such entry: nothing was pushed")
	}
	return errors.Join(failed...)
}

type corpusPullFlags struct {
	corpusListFlags
	engine engineFlags
	maxGiB int64
}

func newCorpusPull() *cobra.Command {
	f := &corpusPullFlags{}
	c := &cobra.Command{
		Use:   "pull [ENTRY...]",
		Short: "Fetch failures from an engine that hosts share",
		Long: `pull fetches from an engine the failures that this corpus does not have: those that
are named, or those that the flags choose, or all of the team. Each is compared with
its digest before it is taken. Failures whose files gc has removed here are fetched
again only if they are named.

Nothing that was fetched is executed by pull. The entries are kept as imported, and
'diagnose nightly' does not replay the recordings among them unless it is told to.
` + foreignHelp + engineHelp + engineExitHelp,
		Example: `  diagnose corpus pull --engine tls://engine.example:4222 --engine-credentials dev.creds --team web --since 1d
  diagnose corpus pull 1f3a9c --engine nats://127.0.0.1:4222`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              f.pullEntries,
	}
	f.maxGiB = 64
	f.register(c)
	f.engine.register(c, "engine", engineURLUsage)
	f.registerLabels(c, "`key=value` that entries must have; may be repeated")
	c.Flags().StringVar(&f.filter.Program, "program", "", "`name` of the executable")
	c.Flags().Var(&f.since, "since", "what failed within this `time`, as in 12h or 7d")
	c.Flags().Int64Var(&f.maxGiB, "max-size", f.maxGiB, "refuse entries larger than this many `GiB`, holes included")
	for _, name := range []string{"program", "since", "max-size"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	f.registerFormat(c)
	return c
}

func (f *corpusPullFlags) pullEntries(c *cobra.Command, args []string) error {
	filter, err := f.chosen()
	if err = cmp.Or(err, f.checkRedact(), checkMaxSize(f.maxGiB)); err != nil {
		return err
	}
	filter.IDs = args
	return f.engine.with(c.Context(), func(e *engine.Engine) error {
		return f.with(c, corpus.Create, func(store *corpus.Corpus) error { return f.pullAll(c, store, e, filter) })
	})
}

func (f *corpusPullFlags) pullAll(c *cobra.Command, store *corpus.Corpus, e *engine.Engine, filter corpus.Filter) error {
	line := newProgress(os.Stderr)
	done, err := share.Pull(c.Context(), e, store, share.PullOptions{Filter: filter, Bytes: f.maxGiB << 30, Note: func(g share.PullProgress) {
		line.say(fmt.Sprintf("entry %d of %d", g.Done+1, g.All))
	}})
	line.clear()
	if err != nil && len(done.Added) > 0 {
		err = fmt.Errorf("%w; %s added before, and pulling again resumes", err, wording.Count(len(done.Added), "entry"))
	}
	if err != nil {
		return err
	}
	if f.format == string(reports.JSON) {
		err = reports.WriteJSON(c.OutOrStdout(), done)
	} else {
		_, err = fmt.Fprintf(c.OutOrStdout(), "%d entries were added, %d were there\n", len(done.Added), done.Existed)
	}
	var failed []error
	for _, text := range done.Failed {
		failed = append(failed, &corpus.InputError{Err: errors.New(text)})
	}
	return errors.Join(append(failed, err)...)
}
