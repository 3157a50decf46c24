package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/fleet/engine"
	"diagnose/fleet/share"
	"diagnose/replay/recorder"
)

// pushFlags are the flags of record that push failed runs to an engine.
type pushFlags struct {
	engine engineFlags
	labels corpusFlags // its labels alone
	set    map[string]string
}

func (p *pushFlags) register(c *cobra.Command) {
	p.engine.register(c, "push", "push the recording of a run that failed to the engine with this `URL`, as nats://HOST:4222")
	p.labels.registerLabels(c, "with --push: `key=value` that the failure gets; may be repeated")
}

func (p *pushFlags) given() bool { return p.engine.options.URL != "" }

// check checks the flags before the program runs.
func (p *pushFlags) check(c *cobra.Command) error {
	var err error
	if p.set, err = p.labels.parsedLabels(); err != nil {
		return err
	}
	if p.given() {
		_, err := p.engine.chosen()
		return err
	}
	for _, name := range []string{"label", "engine-credentials", "engine-ca", "engine-cert", "engine-key", "team"} {
		if c.Flags().Changed(name) {
			return usagef("--%s goes with --push (see '%s --help')", name, c.CommandPath())
		}
	}
	return nil
}

// push pushes the recording of a run if it failed. An error is told, and costs nothing but the
// push: the recording stays, and so does the exit status. A signal ends it.
func (r *programRuns) push(result *recorder.Result) {
	p := &r.flags.push
	if !p.given() || !result.Failed || result.Dir == "" {
		return
	}
	ctx, end := r.checks.begin()
	defer end()
	done, err := p.send(ctx, result.Dir)
	where := shellQuote(relative(result.Dir))
	if err != nil {
		say(fmt.Sprintf("%s was not pushed, and is kept: %v", where, err))
		say(fmt.Sprintf("to push it later: diagnose corpus add %s%s, and then: diagnose corpus push%s", where, p.labelArguments(), p.engineArguments()))
		return
	}
	say(fmt.Sprintf("it was pushed as %s (%s sent); to have it elsewhere: diagnose corpus pull %s%s", done.ID, sizeText(done.Sent), done.ID, p.engineArguments()))
}

// engineArguments are the engine and the team as arguments of other commands, without secrets.
func (p *pushFlags) engineArguments() string {
	text := " --engine " + shellQuote(engine.Redacted(p.engine.options.URL))
	if o, err := p.engine.chosen(); err == nil && o.Team != "" {
		text += " --team " + shellQuote(o.Team)
	}
	return text
}

func (p *pushFlags) send(ctx context.Context, dir string) (done share.Pushed, err error) {
	packed, err := corpus.PackRecording(ctx, dir, corpus.PackOptions{Labels: p.set})
	if err != nil {
		return done, err
	}
	line := newProgress(os.Stderr)
	defer line.clear()
	err = p.engine.with(ctx, func(e *engine.Engine) error {
		done, err = share.Push(ctx, e, &packed, func(g engine.Progress) {
			line.say(fmt.Sprintf("pushing: %s of %s read, %s sent", sizeText(g.Bytes), sizeText(g.AllBytes), sizeText(g.Sent)))
		})
		return err
	})
	return done, err
}

// labelArguments are the labels as arguments of 'corpus add'.
func (p *pushFlags) labelArguments() (text string) {
	for _, one := range p.labels.labels {
		text += " --label " + shellQuote(one)
	}
	return text
}
