package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"diagnose/agent"
	"diagnose/diagnosis/verdict"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
)

// openRecordings opens those that the request names, and takes the core from the
// first if none was given.
func (a *analysis) openRecordings() error {
	for _, dirs := range []struct {
		from []string
		to   *[]*record.Recording
	}{{a.req.Recordings, &a.failing}, {a.req.Passing, &a.passing}} {
		for _, dir := range dirs.from {
			r, err := record.Open(dir)
			if err != nil {
				return fmt.Errorf("recording %s: %w", dir, err)
			}
			*dirs.to = append(*dirs.to, r)
		}
	}
	if len(a.failing) == 0 {
		return nil
	}
	a.declare()
	if err := verdict.Check(a.failing, a.passing); err != nil {
		return err
	}
	if a.atMoment() {
		return nil
	}
	if a.req.Core != "" {
		return nil
	}
	a.exited()
	a.refused()
	core, err := a.failing[0].Core()
	if errors.Is(err, os.ErrNotExist) {
		return a.withoutCore()
	}
	a.req.Core = core
	return err
}

// ExecutedUnrecorded says why a recording ends where its process executed another
// program of which there is no recording. The recording library comes into a program
// by LD_PRELOAD.
const ExecutedUnrecorded = "it ends where its process executed another program, which was not recorded; " +
	"if it was started by env or a script with another LD_PRELOAD, record that program itself"

// exited takes from the recording that the process ended with a status, which its
// core does not tell.
func (a *analysis) exited() {
	if o := &a.failing[0].Manifest.Outcome; o.Kind == record.OutcomeExit || o.Declared != nil {
		a.exit = o
	}
}

func (a *analysis) closeRecordings() {
	for _, list := range [][]*record.Recording{a.failing, a.passing} {
		for _, r := range list {
			r.Close()
		}
	}
}

// replay is all that replays are for: the schedule with which they fail, what the program
// wrote before it ended, the cause, and what is needed of the schedule. It closes begun before the first.
func (a *analysis) replay(ctx context.Context, begun chan<- struct{}) error {
	if len(a.failing) == 0 {
		return nil
	}
	close(begun)
	a.started = time.Now()
	if err := a.search(ctx); err != nil {
		a.limit(evidence.Limit{Text: err.Error()})
	}
	if err := a.lastWords(ctx); err != nil {
		a.limit(evidence.Limit{Text: err.Error()})
	}
	if err := a.diagnose(ctx); err != nil {
		return err
	}
	return a.schedule(ctx)
}

// diagnose goes on from what the core tells to the cause.
func (a *analysis) diagnose(ctx context.Context) error {
	d, err := verdict.Diagnose(ctx, verdict.Input{Case: a.result, Process: a.process, Ending: a.ending, Handled: a.signalAt, Waits: a.waits, Blame: a.blame, Failing: a.failing, Passing: a.passing,
		Hops: a.req.Hops, Replays: a.req.Replays, Time: a.req.Time, Spent: time.Since(a.started), Hits: a.req.Hits, Object: a.objectAt, SourceLine: a.sourceLine, Image: a.imageOptions(), Progress: a.req.Progress})
	if err != nil {
		return err
	}
	a.result.Diagnosis = d
	a.processes()
	if len(d.Causes) == 0 {
		d.Unknown = a.unknown()
	}
	a.nameThreads()
	return nil
}

// numberThreads gives the threads of a recorded process the numbers that they have
// in its recording, which moments and experiments are told with. Without the
// recording they are read from the process's memory, so that a core alone is
// told with the same numbers.
func (a *analysis) numberThreads() error {
	recorded := map[int]int{}
	switch {
	case len(a.failing) == 0:
		recorded = recordedNumbers(a.process)
	case a.process.Program.PID == a.failing[0].Manifest.PID:
		summary, err := a.failing[0].Log.Summarize()
		if err != nil {
			return fmt.Errorf("recording %s: %w", a.failing[0].Dir, err)
		}
		for _, t := range summary.Threads {
			recorded[int(t.TID)] = int(t.Index)
		}
	}
	threads := a.process.Threads
	if slices.ContainsFunc(threads, func(t image.Thread) bool { return recorded[t.Ref.TID] == 0 }) {
		return nil // it is no recorded process, or the log was cut off before one of them began
	}
	for i := range threads {
		ref := &threads[i].Ref
		ref.Number, ref.Recorded = recorded[ref.TID], recorded[ref.TID]
	}
	return nil
}

// recordedNumbers reads the numbers of a process's threads from what the recording
// library keeps of them (agent/src/record.h, dg_rthread), by their ids; what is not
// found there is missing. The memory is a target's: a number counts only where it is
// that of its place, and the first failed read ends the search.
func recordedNumbers(p *image.Process) map[int]int {
	numbers, ours := map[int]int{}, map[int]bool{}
	for i := range p.Threads {
		ours[p.Threads[i].Ref.TID] = true
	}
	for index := uint32(1); index < agent.RThreads && len(numbers) < len(ours); index++ {
		t, err := image.Struct[agent.RawRThread](p, evidence.Addr(agent.RThreadAddress(index)))
		if err != nil {
			break
		}
		if tid := int(t.TID); t.Index == index && ours[tid] && numbers[tid] == 0 {
			numbers[tid] = int(index)
		}
	}
	return numbers
}

// nameThreads gives the threads of causes the names that the core has for them.
func (a *analysis) nameThreads() {
	named := map[int]evidence.ThreadRef{}
	for i := range a.process.Threads {
		ref := a.process.Threads[i].Ref
		named[ref.TID] = ref
	}
	name := func(x *evidence.SeenAccess) {
		if x == nil {
			return
		}
		if t, found := named[x.Thread.TID]; found && t.Recorded == x.Thread.Number {
			x.Thread.Name, x.Thread.Start = t.Name, t.Start
		}
	}
	for i := range a.result.Diagnosis.Causes {
		c := &a.result.Diagnosis.Causes[i]
		for j := range c.Story {
			name(c.Story[j].Access)
		}
		if c.Interleaving != nil {
			for j := range c.Interleaving.Failing {
				name(&c.Interleaving.Failing[j])
			}
		}
	}
}

// objectAt tells of the heap object at an address.
func (a *analysis) objectAt(addr evidence.Addr) *evidence.HeapObject {
	if a.heap == nil {
		return nil
	}
	near, found, err := a.heap.Nearest(addr)
	if err != nil || !found {
		return nil
	}
	return a.heap.object(&near.Object)
}
