package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"diagnose/corpus/nightly"
)

type speedOptions struct {
	each  int
	job   time.Duration
	kinds []string
}

// sample is one night.
type sample struct {
	kind     string
	workers  int
	failures int
	took     time.Duration
	// server, night and labour are the processor times of the server, of the night's own process,
	// and of the workers without the diagnoses; diagnoses is that of these.
	server, night, labour, diagnoses time.Duration
}

func (s *sample) rate() float64 { return float64(s.failures) / s.took.Seconds() }

func (s *sample) each(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000 / float64(s.failures)
}

// speed measures nights with 1, 2, 4 and 8 workers.
func speed(ctx context.Context, o speedOptions) error {
	fmt.Printf("%d processors; a failure takes %v; %d failures for each worker; processor time in ms a failure.\n\n", runtime.NumCPU(), o.job, o.each)
	fmt.Println("| Failures | Workers | Time | Failures/s | To one worker | Server | Night | Workers | Diagnoses | Alone, by the model |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, kind := range o.kinds {
		var one *sample
		for _, workers := range []int{1, 2, 4, 8} {
			s, err := measure(ctx, o, kind, workers)
			if err != nil {
				return err
			}
			if one == nil {
				one = s
			}
			fmt.Printf("| %s | %d | %.1f s | %.2f | %.2f of %d | %.1f | %.1f | %.1f | %.1f | %.1f |\n", kind, workers, s.took.Seconds(), s.rate(), s.rate()/one.rate(), workers,
				s.each(s.server), s.each(s.night), s.each(s.labour), s.each(s.diagnoses), one.model(o.job, workers))
		}
	}
	return nil
}

// model is the throughput of so many workers if each of them, the server and the night have a
// processor alone: a worker needs the time of the failure and its own processor time, until the
// server or the night is busy all the time.
func (s *sample) model(job time.Duration, workers int) float64 {
	each := job.Seconds() + s.labour.Seconds()/float64(s.failures)
	busiest := max(s.server, s.night).Seconds() / float64(s.failures)
	return min(float64(workers)/each, 1/busiest)
}

func measure(ctx context.Context, o speedOptions, kind string, workers int) (*sample, error) {
	p, err := newPlant(ctx, workers)
	if err != nil {
		return nil, err
	}
	defer p.close()
	s := &sample{kind: kind, workers: workers, failures: o.each * workers}
	var what []string
	for range s.failures {
		what = append(what, fmt.Sprintf("%s %d", kind, o.job.Milliseconds()))
	}
	c, err := p.fill(ctx, "corpus", what)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	before, err := p.used()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	run, err := p.night(ctx, c, 30*time.Second, func(nightly.Progress) {})
	if err != nil {
		return nil, err
	}
	s.took = time.Since(began)
	after, err := p.used()
	if err != nil {
		return nil, err
	}
	if run.Diagnosed != s.failures {
		return nil, fmt.Errorf("%d of %d are diagnosed: %+v", run.Diagnosed, s.failures, run)
	}
	s.server, s.night, s.labour, s.diagnoses = after.server-before.server, after.night-before.night, after.labour-before.labour, run.CPU
	return s, nil
}

// usage is processor time.
type usage struct{ server, night, labour time.Duration }

func (p *plant) used() (usage, error) {
	var u usage
	var err error
	if u.server, err = used(p.process.Process.Pid); err != nil {
		return u, err
	}
	if u.night, err = used(os.Getpid()); err != nil {
		return u, err
	}
	for _, w := range p.workers {
		t, err := used(w.pid())
		if err != nil {
			return u, err
		}
		u.labour += t
	}
	return u, nil
}

// used returns the processor time of a process, without its children (proc_pid_stat(5)).
func used(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= stime {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	var total time.Duration
	for _, i := range []int{utime, stime} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}
