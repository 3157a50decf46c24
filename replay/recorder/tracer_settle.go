package recorder

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// settling is a thread of a process that is about to end, until it reaches a place that a
// replay finds again: in the program, or asleep in the engine before its next event. The thread
// that ends the process stays where it is. Events of other threads meanwhile are part of the
// recording, as if the end had come that much later.
type settling struct {
	steps   int
	running time.Duration // duration of the last run
	ran     time.Duration // in total
}

const (
	// settlingSteps is the number of steps between two runs of a thread.
	settlingSteps = 300
	// longestSettling is for a thread that waits for something that the ending thread holds.
	// longestWaiting is for a thread that polls in the engine for what it would get with its
	// next event.
	longestSettling = 100 * time.Millisecond
	longestWaiting  = 5 * time.Millisecond
)

// rests reports whether the thread does not continue any more.
func (s *settling) rests(at *standing) bool {
	switch at.whereabouts {
	case inEngine:
		return at.asleep || s.ran > longestWaiting
	case inTransit:
		return s.ran > longestSettling
	}
	return true
}

// unsettled returns the threads of a stopped process that must continue, and where they are.
func (p *process) unsettled() (map[*tracee]standing, error) {
	r := p.recording
	if r == nil {
		return nil, nil
	}
	moving := map[*tracee]standing{}
	for _, x := range p.threads {
		if x == p.ending.thread || x.held != nil || !x.stopped || x.vforking {
			continue
		}
		at, err := r.standing(x)
		if errors.Is(err, unix.ESRCH) {
			continue // killed, or ended with the stop not reported yet
		} else if err != nil {
			return nil, err
		}
		if x.settling == nil {
			x.settling = &settling{}
		}
		if !x.settling.rests(&at) {
			moving[x] = at
		}
	}
	return moving, nil
}

// settleThreads continues threads of a stopped process: all by one instruction, so that a
// thread that waits for another of them gets what it waits for, or for a moment if that would
// take long.
func (r *recording) settleThreads(moving map[*tracee]standing) error {
	var running []*tracee
	longest := firstRun
	for x, at := range moving {
		s := x.settling
		x.stopped = false
		var err error
		if s.steps++; s.steps%settlingSteps != 0 && !at.asleep && !r.crawls(at.regs.Rip) {
			err = ptrace.Step(x.tid, 0)
		} else {
			s.running = longer(s.running)
			s.ran += s.running
			longest = max(longest, s.running)
			running = append(running, x)
			err = ptrace.Cont(x.tid, 0)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	if len(running) == 0 {
		return nil
	}
	time.Sleep(longest)
	for _, x := range running {
		x.interrupt()
	}
	return nil
}

// noteUnsettled notes the threads that may be elsewhere in a replay.
func (r *recording) noteUnsettled(p *process) {
	for _, x := range p.threads {
		if x == p.ending.thread || !x.stopped {
			continue
		}
		if at, err := r.standing(x); err == nil && at.whereabouts == inTransit {
			index, _ := r.place(x.tid)
			r.limit("place", fmt.Sprintf("thread %d was in the recorder's own code at the end, at %#x: a replay may have it elsewhere", index, at.regs.Rip))
		}
	}
}
