package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/reports/tracker"
)

// newCauseError is returned if a night found a new cause, or one that is back. Its summary was
// printed.
type newCauseError struct{}

func (*newCauseError) Error() string { return "there are new causes" }

type nightlyFlags struct {
	corpusFlags
	engineFlags
	redactFlag
	suppressFlag
	since, budget, time days
	jobs, workers       int
	patience            days
	memory              int64
	out                 string
	retry               bool
	trust               bool
	tracker, tokenFile  string
	issues              int
	dryRun              bool
	alertFlags
}

const nightlyName = "nightly"

func newNightly() *cobra.Command {
	f := &nightlyFlags{since: days(24 * time.Hour), time: days(10 * time.Minute), patience: days(2 * time.Minute)}
	c := &cobra.Command{
		Use:   nightlyName,
		Short: "Diagnose the new failures of a corpus, and sum them up",
		Long: `nightly diagnoses all failures of a corpus that this version of diagnose has not
diagnosed yet, new and frequent ones first: each in a process of its own, under a
budget of time and of memory, so that no recording can stop the night. Then it
reports which causes are new, which were fixed and are back, how often the known ones
failed, and what could not be diagnosed and why. --out has it as text, JSON and a
page, with a report of each of these causes, which the page leads to.

The next night continues one that was killed: nothing is done twice. Two
nights at once share the work.

Recordings that came by 'diagnose corpus import' are left alone, and counted, unless
--trust-imported is given: a night would run what their sender chose. Imported cores
are read, and nothing of them is executed.
` + foreignHelp + `
The summary calls a cause new if no summary had it before. --since is the period of the
summary; its counts are compared with those of the period before.

Secrets that reports recognise are replaced in all that leaves the corpus, and what
--redact says as well. What the corpus keeps is what 'diagnose crash' writes: the
signatures of causes do not depend on --redact.

--tracker has an issue opened for each cause, or commented on, or reopened. It takes
dir:PATH, github:OWNER/REPO, gitlab:GROUP/PROJECT, gitea:https://HOST/OWNER/REPO,
jira:https://HOST/PROJECT, bugzilla:https://HOST/PRODUCT/COMPONENT or none. Without
it, --out has a directory of issues. The token is in the environment's
` + tracker.TokenVariable + `, or in a file that others cannot read. If a
tracker does not answer, the next night tries again; the exit status does not depend on
it.

With --engine the failures are put into a queue for 'diagnose worker' on any hosts, in
the same order and with the same budget. The night sends what a worker needs, waits,
and stores the results in the corpus; an interrupted one takes the rest out of the
queue. What no worker can diagnose is named in the summary when --patience is over.
What three tries did not finish is set aside. --workers has the same with a queue and
workers in this process.

--webhook sends an alert for each cause that is new or back, at most --webhook-most of
them in a night and one more that sums up the rest. Its address is a secret: the
environment's ` + tracker.WebhookVariable + ` or --webhook-url-file keep it out of the
list of processes. A webhook that does not answer is told by the next night.

The corpus is the directory that --corpus names, or else the environment's
` + corpusVariable + `, or else ./corpus.
` + engineHelp + `
Exit status:

      0  no cause is new or back
      1  the tool itself failed
      2  the command line is wrong
      3  there is no such corpus, or the engine does not answer
      4  there is a new cause, or one that was fixed is back
    130  it was interrupted; the next night continues`,
		Example: `  diagnose nightly --corpus /srv/failures --budget 2h --out /srv/failures-report
  diagnose nightly --since 7d --jobs 4 --format json
  diagnose nightly --format html >night.html
  diagnose nightly --engine nats://queue.example.org:4222 --budget 6h
  diagnose nightly --tracker gitlab:group/project --tracker-token-file ~/.token --dry-run`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.runNightly(c) },
	}
	f.corpusFlags.register(c)
	flags := c.Flags()
	flags.Var(&f.since, "since", "`time` that the summary looks at, as in 24h or 7d")
	flags.IntVar(&f.jobs, "jobs", max(1, runtime.NumCPU()/2), "how `many` failures are diagnosed at once; with --engine, are in the queue: 256")
	f.engineFlags.register(c, "engine", engineURLUsage)
	flags.IntVar(&f.workers, "workers", 0, "diagnose by so `many` workers with a queue in this process")
	flags.Var(&f.patience, "patience", "`time` to wait for a worker that can diagnose a failure")
	flags.Var(&f.budget, "budget", "bound the `time` of the night, as in 2h; the rest is left to the next one")
	flags.Var(&f.time, "time", "bound the `time` of each failure")
	flags.Int64Var(&f.memory, "memory", 4096, "bound the memory of each failure's processes, in `MiB`")
	flags.BoolVar(&f.retry, "retry", false, "try again what this version could not diagnose")
	flags.BoolVar(&f.trust, "trust-imported", false, "replay recordings too that 'diagnose corpus import' brought")
	flags.StringVar(&f.out, "out", "", "`directory` for the summary in all forms, and the reports of its causes")
	must(c.MarkFlagDirname("out"))
	flags.StringVar(&f.tracker, "tracker", "", "`tracker` where causes get issues; without it, a directory in that of --out")
	flags.StringVar(&f.tokenFile, "tracker-token-file", "", "`file` with the tracker's token")
	flags.IntVar(&f.issues, "tracker-new", 25, "open so `many` issues in a night at most")
	flags.BoolVar(&f.dryRun, "dry-run", false, "diagnose, and say what the tracker and the webhook would be told, without telling them")
	must(c.MarkFlagFilename("tracker-token-file"))
	f.registerAlerts(c)
	f.registerSuppressions(c)
	f.registerRedact(c)
	f.registerNightFormat(c)
	for _, name := range []string{"since", "jobs", "budget", "time", "memory", "workers", "patience", "tracker", "tracker-new"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	return c
}

func (f *nightlyFlags) runNightly(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return err
	}
	known, err := f.readSuppressions()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	track, err := f.openTracker()
	if err != nil {
		return err
	}
	webhook, err := f.openWebhook()
	if err != nil {
		return err
	}
	if f.dryRun && track == nil && webhook == nil {
		return usagef("--dry-run is about a tracker or a webhook; name one with --tracker or --webhook")
	}
	if f.out != "" { // fail before the night is spent in vain
		if err := makeNight(f.out); err != nil {
			return usagef("--out: %w", err)
		}
	}
	return f.corpusFlags.with(c, corpus.Change, func(store *corpus.Corpus) error {
		workers, err := f.openWorkers(c.Context(), store)
		if err != nil {
			return err
		}
		if workers != nil {
			defer workers.close()
			if !c.Flags().Changed("jobs") {
				f.jobs = mostQueued
			}
		}
		tell := newNightProgress(os.Stderr, f.redaction)
		run, err := nightly.Diagnose(c.Context(), nightly.Options{Corpus: store, Version: version(), Command: []string{exe}, Since: time.Duration(f.since),
			Jobs: f.jobs, Budget: time.Duration(f.budget), Time: time.Duration(f.time), Memory: f.memory << 20, Retry: f.retry, TrustImported: f.trust, Progress: tell.step, Remote: workers.remote()})
		tell.clear()
		if err != nil {
			return err
		}
		summary, err := nightly.Summarize(c.Context(), store, run, time.Duration(f.since), known)
		if err != nil {
			return err
		}
		if track != nil {
			err := summary.Track(c.Context(), store, nightly.TrackOptions{Tracker: track, New: f.issues, DryRun: f.dryRun, Redact: f.redaction})
			if err != nil {
				return err
			}
		}
		summary.Redact(f.redaction)
		if webhook != nil {
			err := summary.Alert(c.Context(), store, nightly.AlertOptions{Webhook: webhook, Most: f.alerts, Page: f.page, DryRun: f.dryRun})
			if err != nil {
				return err
			}
			summary.Redact(f.redaction)
		}
		return f.hand(c, store, summary)
	})
}

// makeNight makes the directories of --out. The directory of the reports must not be a symbolic
// link, which could lead them anywhere.
func makeNight(dir string) error {
	causes := filepath.Join(dir, causesName)
	if err := os.MkdirAll(causes, 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(causes); err != nil || !info.IsDir() {
		return errors.Join(fmt.Errorf("%s is no directory", causes), err)
	}
	return nil
}

// issuesName is the directory in --out that holds the issues if no other tracker is named.
const issuesName = "issues"

// openTracker removes the token from the environment, so that child processes do not inherit it.
func (f *nightlyFlags) openTracker() (tracker.Tracker, error) {
	token, err := tracker.Token(f.tokenFile)
	if err != nil {
		return nil, usagef("--tracker: %w", err)
	}
	spec := f.tracker
	switch {
	case spec == "none", spec == "" && f.out == "":
		return nil, nil
	case spec == "":
		spec = "dir:" + filepath.Join(f.out, issuesName)
	}
	t, err := tracker.Open(spec, tracker.Options{Token: token, User: os.Getenv(tracker.UserVariable), DryRun: f.dryRun})
	if err != nil {
		return nil, usagef("--tracker: %w", err)
	}
	return t, nil
}

func (f *nightlyFlags) check(c *cobra.Command) error {
	switch {
	case f.jobs < 1:
		return usagef("--jobs takes a whole number from 1 on, not %d", f.jobs)
	case f.memory < 16 || f.memory > 1<<30:
		return usagef("--memory takes a number of MiB from 16 on, not %d", f.memory)
	case f.workers < 0 || f.workers > 1024:
		return usagef("--workers takes a whole number up to 1024, not %d", f.workers)
	case f.workers > 0 && f.options.URL != "":
		return usagef("--workers has an engine in this process; leave out --engine")
	case f.patience <= 0:
		return usagef("--patience takes a time above zero, as in 5m")
	case f.issues < 0:
		return usagef("--tracker-new takes a whole number, not %d", f.issues)
	case f.time <= 0 || f.since <= 0:
		return usagef("--time and --since take a time above zero, as in 90s or 5m")
	}
	return cmp.Or(f.checkAlerts(), f.checkRedact())
}
