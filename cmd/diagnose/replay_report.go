package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/reports"
)

// replayVersion is the version of replayReport. reports/schema/replay-1.json describes it.
const replayVersion = "1.2"

// replayReport is what replay tells, and the form of its JSON. Fields are added
// and never change their meaning.
type replayReport struct {
	// Version of this form, MAJOR.MINOR.
	Version string `json:"version"`
	// Recording is its directory.
	Recording string         `json:"recording"`
	End       replay.EndKind `json:"end"`
	// Reached: the replay reached the recorded end, or the moment at which it was asked to stop.
	Reached bool `json:"reached"`
	// Identical is missing if nothing was compared.
	Identical *bool `json:"identical,omitempty"`
	// Moment is where the process stopped, THREAD:EVENT[:PC[:COUNT]].
	Moment string `json:"moment,omitempty"`
	// Signal ended the process, or else Status did.
	Signal string `json:"signal,omitempty"`
	Status int    `json:"status"`
	// Stack is of the thread of Moment, innermost first.
	Stack []string `json:"stack,omitempty"`
	// Events were replayed, of Total.
	Events uint64 `json:"events"`
	Total  uint64 `json:"events_recorded"`
	// Timing is the one that got furthest. Tried are all timings, if none reached the end.
	Timing     record.Timing     `json:"timing"`
	Tried      []record.Timing   `json:"timings_tried,omitempty"`
	Comparison *replayComparison `json:"comparison,omitempty"`
	// Divergence and Stuck say why the replay did not reach its end.
	Divergence *replayDivergence `json:"divergence,omitempty"`
	Stuck      string            `json:"stuck,omitempty"`
	// Search is missing if none was needed, or none was wanted.
	Search *replaySearch `json:"search,omitempty"`
	// Learning is missing if the recording is not one of the order of atomic instructions, or reached its end.
	Learning *replayLearning `json:"learning,omitempty"`
	// Limits are what the recording could not bring back, a sentence each.
	Limits  []string      `json:"limits,omitempty"`
	Seconds replaySeconds `json:"seconds"`
	// stuck has the lines of Stuck.
	stuck []string
	// unordered: the replay diverged or is stuck, perhaps because the recording has no order of accesses to memory.
	unordered bool
}

// replaySeconds are the times that Prepare, Run and Verify took: the image of the
// log, the replay, the comparison.
type replaySeconds struct {
	// Prepare, Run and Verify are the parts.
	Prepare float64 `json:"prepare"`
	Run     float64 `json:"run"`
	Verify  float64 `json:"verify"`
}

// replayComparison is what --verify compared with the recording's core.
type replayComparison struct {
	// Threads whose registers, and Bytes of memory that were compared.
	Threads int    `json:"threads"`
	Bytes   uint64 `json:"bytes"`
	// Ranges and Different count the memory that differs, Registers and Mappings the other
	// differences. Differences in threads count as Mappings.
	Ranges    uint64 `json:"different_ranges"`
	Different uint64 `json:"different_bytes"`
	Registers int    `json:"different_registers"`
	Mappings  int    `json:"different_mappings"`
	// Differences are the first of them.
	Differences []replayDifference `json:"differences,omitempty"`
	// Excluded is the memory that was not compared.
	Excluded []replayExclusion `json:"excluded,omitempty"`
}

// replayDifference is one place that differs.
type replayDifference struct {
	Kind replay.DifferenceKind `json:"kind"`
	// Addr and Size are those of the memory, in bytes. Where names what the address belongs to.
	Addr  evidence.Addr `json:"addr,omitempty"`
	Size  uint64        `json:"size,omitempty"`
	Where string        `json:"where,omitempty"`
	// Thread and Register are of a register.
	Thread   uint32 `json:"thread,omitempty"`
	Register string `json:"register,omitempty"`
	// Recorded and Replayed are the two contents.
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
	text     string
}

// replayExclusion is memory that was not compared.
type replayExclusion struct {
	// What it is, and Why it cannot be the same.
	What string `json:"what"`
	Why  string `json:"why"`
	// Bytes it has, of which so many are Different.
	Bytes     uint64 `json:"bytes"`
	Different uint64 `json:"different"`
}

// replayDivergence is the first event that was not as recorded.
type replayDivergence struct {
	// Moment is where, as of the report.
	Moment string        `json:"moment"`
	Reason replay.Reason `json:"reason"`
	// Text says it in words.
	Text string `json:"text"`
	// RecordedAt and ReplayedAt are the code's places, as function and line.
	RecordedAt string `json:"recorded_at,omitempty"`
	ReplayedAt string `json:"replayed_at,omitempty"`
	// Stack is the thread's, innermost first.
	Stack []string `json:"stack,omitempty"`
}

// fillStopped notes where the replay stopped.
func (r *replayReport) fillStopped(s *replay.Stopped) {
	if s.Moment.Thread != 0 {
		r.Moment = s.Moment.String()
	}
	// Without names the rest of the report is still valid.
	r.Stack, _ = s.Stack()
	r.Search.name(s)
}

func (r *replayReport) fill(rec *record.Recording, result *replay.Result, err error) {
	r.unordered = rec.Manifest.Turns == nil && rec.Manifest.Hunt == nil && explore.SearchCanHelp(rec, result, err)
	r.Version = replayVersion
	r.End, r.Status, r.Events, r.Total, r.Limits = result.End, result.Status, result.Events, result.Total, result.Limits
	r.Reached = err == nil
	r.Timing, r.Tried = result.Timing, result.Tried
	if result.Signal != 0 {
		r.Signal = wording.Signal(result.Signal)
	}
	if r.Moment == "" && result.Moment.Thread != 0 {
		r.Moment = result.Moment.String()
	}
	seconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
	r.Seconds = replaySeconds{seconds(result.Times.Prepare), seconds(result.Times.Run), seconds(result.Times.Verify)}
	var d *replay.DivergenceError
	if errors.As(err, &d) {
		r.Divergence = &replayDivergence{d.Moment.String(), d.Reason, d.Error(), d.ExpectedAt, d.GotAt, d.Stack}
	}
	var stuck *replay.StuckError
	if errors.As(err, &stuck) {
		r.Stuck, r.stuck = stuck.Error(), stuck.Lines()
	}
	if c := result.Comparison; c != nil {
		r.compare(c)
	}
}

func (r *replayReport) compare(c *replay.Comparison) {
	identical := c.Identical()
	r.Identical = &identical
	r.Comparison = &replayComparison{Threads: c.Threads, Bytes: c.Compared, Ranges: c.Ranges, Different: c.Bytes,
		Registers: c.Registers, Mappings: c.Mappings}
	for i := range c.Differences {
		d := &c.Differences[i]
		r.Comparison.Differences = append(r.Comparison.Differences,
			replayDifference{d.Kind, d.Addr, d.Size, d.Where, d.Thread, d.Register, d.Want, d.Have, d.String()})
	}
	for _, x := range c.Excluded {
		r.Comparison.Excluded = append(r.Comparison.Excluded, replayExclusion(x))
	}
}

func (r *replayReport) identical() bool { return r.Identical == nil || *r.Identical }

func (r *replayReport) write(w io.Writer, format string) error {
	if format == string(reports.JSON) {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	}
	return r.listing().WriteText(w)
}

// listing is the report for people.
func (r *replayReport) listing() *reports.Listing {
	out := &reports.Listing{}
	line := out.Named
	line("recording", "%s", r.Recording)
	line("replay", "%s", r.headline())
	if r.Divergence != nil {
		line("diverged", "%s", r.Divergence.Text)
	}
	for i, text := range r.stuck {
		name := ""
		if i == 0 {
			name = "stuck"
		}
		line(name, "%s", text)
	}
	if r.Moment != "" {
		line("moment", "%s", r.Moment)
	}
	for i, frame := range r.Stack {
		name := ""
		if i == 0 {
			name = "stack"
		}
		line(name, "#%d %s", i, frame)
	}
	line("events", "%d of %d", r.Events, r.Total)
	if len(r.Tried) > 0 {
		line("timing", "%s, which got further than the other; neither reaches the recorded end", r.Timing)
	} else {
		line("timing", "%s", r.Timing)
	}
	r.Search.text(line)
	r.Learning.text(line)
	if r.unordered {
		line("", "a recording made by 'diagnose record --races=%s' has the order of accesses to memory, too", racesTurns)
	}
	line("time", "%.2f s to prepare, %.2f s to replay, %.2f s to compare", r.Seconds.Prepare, r.Seconds.Run, r.Seconds.Verify)
	r.textComparison(line)
	for _, limit := range r.Limits {
		line("limit", "%s", limit)
	}
	return out
}

func (r *replayReport) headline() string {
	switch r.End {
	case replay.EndFailure:
		return "reached the recorded failure, " + r.Signal
	case replay.EndExit:
		return fmt.Sprintf("reached the recorded end, status %d", r.Status)
	case replay.EndExec:
		return "reached the recorded end, where the process executed another program"
	case replay.EndLog:
		return "reached the last event; the recording was cut off there"
	case replay.EndFault:
		return "reached " + r.Signal + " after the last event; the recording was cut off there"
	case replay.EndMoment:
		return "stopped at the moment"
	case replay.EndDiverged:
		return "diverged from the recording"
	}
	return "makes no progress"
}

func (r *replayReport) textComparison(line func(string, string, ...any)) {
	c := r.Comparison
	if c == nil {
		return
	}
	const mebi = 1 << 20
	if *r.Identical {
		line("verify", "identical: %d threads' registers and %.1f MiB of memory", c.Threads, float64(c.Bytes)/mebi)
	} else {
		line("verify", "not identical: %d bytes in %d ranges of memory, %d registers, %d mappings and threads differ",
			c.Different, c.Ranges, c.Registers, c.Mappings)
	}
	for i := range c.Differences {
		line("", "%s", c.Differences[i].text)
	}
	for i, x := range c.Excluded {
		name := ""
		if i == 0 {
			name = "excluded"
		}
		different := ""
		if x.Different > 0 {
			different = fmt.Sprintf("; %d bytes differ", x.Different)
		}
		line(name, "%.1f MiB: %s (%s%s)", float64(x.Bytes)/mebi, x.What, x.Why, different)
	}
}
