package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
)

type faultOptions struct {
	failures, poison, workers, kills, restarts int
	cut, job, claim                            time.Duration
}

// outcome is what a night with faults came to.
type outcome struct {
	faultOptions
	run       *nightly.Run
	killed    int
	restarted int
	wasCut    time.Duration
	took      time.Duration
	// executions counts the diagnoses that began, poison left out.
	executions int
	// wrong are failures that do not have exactly one result.
	wrong []string
	// aside counts those without poison that were set aside.
	aside int
}

// faults runs a night during which workers and the server are killed, and the network is cut.
func faults(ctx context.Context, o faultOptions) (*outcome, error) {
	p, err := newPlant(ctx, o.workers)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var what []string
	for range o.failures {
		what = append(what, fmt.Sprintf("wait %d", o.job.Milliseconds()))
	}
	for i := range o.poison { // among the others
		what = slices.Insert(what, (i+1)*o.failures/(o.poison+1), "poison 0")
	}
	c, err := p.fill(ctx, "corpus", what)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	fmt.Fprintf(os.Stderr, "fleet: the corpus has %d failures\n", len(what))
	out := &outcome{faultOptions: o}
	var done atomic.Int64
	over := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { out.disturb(p, &done, over) })
	began, said := time.Now(), time.Now()
	out.run, err = p.night(ctx, c, o.claim, func(s nightly.Progress) {
		done.Store(int64(s.Done))
		if time.Since(said) > 20*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "fleet: %d of %d, about %v left\n", s.Done, s.Total, s.Left.Round(time.Second))
		}
	})
	out.took = time.Since(began)
	close(over)
	group.Wait()
	if err != nil {
		return nil, err
	}
	return out, out.check(ctx, p, c, what)
}

// disturb spreads the faults evenly over the failures, workers at random.
func (o *outcome) disturb(p *plant, done *atomic.Int64, over chan struct{}) {
	type fault struct {
		at int
		do func()
	}
	var list []fault
	total := o.failures + o.poison
	for i := range o.kills {
		list = append(list, fault{(i + 1) * total * 19 / 20 / (o.kills + 1), func() {
			if p.killOne(over) {
				o.killed++
			}
		}})
	}
	for i := range o.restarts {
		list = append(list, fault{(i + 1) * total / (o.restarts + 2), func() {
			if err := p.killServer(2 * time.Second); err != nil {
				fmt.Fprintln(os.Stderr, "fleet:", err)
				return
			}
			o.restarted++
		}})
	}
	if o.cut > 0 {
		list = append(list, fault{total * (o.restarts + 1) / (o.restarts + 2), func() {
			began := time.Now()
			if err := p.net.cut(p.server, true); err != nil {
				fmt.Fprintln(os.Stderr, "fleet:", err)
				return
			}
			time.Sleep(o.cut)
			if err := p.net.cut(p.server, false); err != nil {
				fmt.Fprintln(os.Stderr, "fleet:", err)
			}
			o.wasCut = time.Since(began)
		}})
	}
	slices.SortStableFunc(list, func(a, b fault) int { return a.at - b.at })
	for _, f := range list {
		for done.Load() < int64(f.at) {
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		f.do()
	}
}

// check compares the corpus with the failures that were put into it.
func (o *outcome) check(ctx context.Context, p *plant, c *corpus.Corpus, what []string) error {
	entries, err := c.List(ctx, corpus.Filter{})
	if err != nil {
		return err
	}
	if len(entries) != len(what) {
		o.wrong = append(o.wrong, fmt.Sprintf("the corpus has %d entries, and %d were added", len(entries), len(what)))
	}
	diagnosed := 0
	for i := range entries {
		list, err := c.Diagnoses(ctx, entries[i].ID)
		if err != nil {
			return err
		}
		if len(list) != 1 {
			o.wrong = append(o.wrong, fmt.Sprintf("%s has %d results", entries[i].ID, len(list)))
		} else if list[0].Diagnosed {
			diagnosed++
		}
	}
	o.aside = len(o.run.Fleet.SetAside) - o.poison
	if diagnosed != o.run.Diagnosed || o.run.Diagnosed+o.run.Undiagnosed != len(what) || o.run.Undiagnosed != len(o.run.Fleet.SetAside) || o.aside < 0 {
		o.wrong = append(o.wrong, fmt.Sprintf("the summary counts %d and %d, %d set aside; the corpus has %d diagnosed", o.run.Diagnosed, o.run.Undiagnosed, len(o.run.Fleet.SetAside), diagnosed))
	}
	set, err := p.executions()
	for number, n := range set {
		var i int
		if fmt.Sscan(number, &i); i < len(what) && what[i] != "poison 0" {
			o.executions += n
		}
	}
	return err
}

func (o *outcome) print(w io.Writer) error {
	fmt.Fprintf(w, "| Failures | Workers | Workers killed | Server killed | Network cut | Time | Diagnosed once | Set aside: poison, others | Diagnoses begun |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	fmt.Fprintf(w, "| %d + %d poison | %d | %d | %d | %v | %v | %d | %d, %d | %d |\n", o.failures, o.poison, o.workers, o.killed, o.restarted, o.wasCut.Round(time.Second),
		o.took.Round(time.Second), o.run.Diagnosed, o.poison, o.aside, o.executions)
	for _, line := range o.wrong {
		fmt.Fprintln(w, "WRONG:", line)
	}
	if len(o.wrong) > 0 {
		return fmt.Errorf("%d things are wrong", len(o.wrong))
	}
	return nil
}
