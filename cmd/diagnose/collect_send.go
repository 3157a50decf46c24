package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/fleet/collect"
	"diagnose/fleet/collect/spool"
	"diagnose/fleet/engine"
	"diagnose/reports"
)

type collectSendFlags struct {
	collectFlags
	engine engineFlags
	labels corpusFlags // its labels alone
	every  time.Duration
}

func newCollectSend() *cobra.Command {
	f := &collectSendFlags{}
	c := &cobra.Command{
		Use:   "send",
		Short: "Send the kept cores to an engine that hosts share",
		Long: `send sends the cores of the spool to an engine, the oldest first, and removes each one
from the spool when the engine has all of it. If the engine does not answer the cores
stay, and the next send resumes. 'diagnose corpus pull' and 'diagnose nightly' take
them from the engine.

Each core gets the labels host, container and crashes: how often the host saw a crash
like it. The engine gets the memory of the crashed processes; docs/collect.md says
which secrets are removed.
` + engineHelp + engineExitHelp,
		Example: `  diagnose collect send --engine tls://engine.example:4222 --engine-credentials host.creds --team web
  diagnose collect send --engine nats://127.0.0.1:4222 --every 1m`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.send(c) },
	}
	f.collectFlags.register(c)
	f.engine.register(c, "engine", "`URL` of the engine, as nats://HOST:4222 or tls://HOST:4222")
	f.labels.registerLabels(c, "`key=value` that the failures get; may be repeated")
	c.Flags().DurationVar(&f.every, "every", 0, "do not end, and send again after this `time`, as in 1m")
	complete(c, "every", cobra.NoFileCompletions)
	return c
}

func (f *collectSendFlags) send(c *cobra.Command) error {
	labels, err := f.labels.parsedLabels()
	if err != nil {
		return err
	}
	if f.every < 0 {
		return usagef("--every takes a time above zero, as in 1m, not %v", f.every)
	}
	if _, err := f.engine.chosen(); err != nil {
		return err
	}
	config, err := f.read()
	if err != nil {
		return err
	}
	store, err := spool.Open(config.Spool, config.Limits)
	if err != nil {
		return err
	}
	for {
		err := f.once(c, store, labels)
		if f.every == 0 || c.Context().Err() != nil {
			return err
		}
		if err != nil {
			say(err.Error())
		}
		select {
		case <-c.Context().Done():
			return nil // the way in which such a command ends
		case <-time.After(f.every):
		}
	}
}

// once sends the cores that the spool has now. Without any, the engine is not asked.
func (f *collectSendFlags) once(c *cobra.Command, store *spool.Spool, labels map[string]string) error {
	entries, err := store.Entries()
	if err != nil || len(entries) == 0 {
		return err
	}
	var sent collect.Sent
	line := newProgress(os.Stderr)
	defer line.clear()
	err = f.engine.with(c.Context(), func(e *engine.Engine) error {
		sent, err = collect.Send(c.Context(), store, e, labels, func(g engine.Progress) {
			line.say(fmt.Sprintf("sending: %s of %s read, %s sent", sizeText(g.Bytes), sizeText(g.AllBytes), sizeText(g.Sent)))
		})
		return err
	})
	line.clear()
	if sent.Entries > 0 {
		fmt.Fprintf(c.OutOrStdout(), "sent %s, %s\n", reports.Clean(fmt.Sprintf("%d of %d", sent.Entries, len(entries))), sizeText(sent.Bytes))
	}
	for _, text := range sent.Failed {
		err = errors.Join(err, &corpus.InputError{Err: errors.New(text)})
	}
	return err
}
