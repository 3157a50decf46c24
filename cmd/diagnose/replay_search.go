package main

import (
	"context"
	"fmt"
	"path/filepath"

	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// replaySearch is the result of a search for a schedule.
type replaySearch struct {
	// Reproduced: a replay with Preemptions reached the recorded end. OtherState counts the ranges of
	// memory, registers and mappings that differ from the recorded ones then.
	Reproduced bool `json:"reproduced"`
	OtherState int  `json:"other_state,omitempty"`
	// Attempts counts replays, ByLevel those of each level, Traces those that recorded which memory
	// is accessed.
	Attempts int                   `json:"attempts"`
	ByLevel  map[explore.Level]int `json:"attempts_by_level"`
	Traces   int                   `json:"traces"`
	// Remembered counts the replays that were skipped because an earlier search had tried them.
	Remembered int `json:"remembered,omitempty"`
	// Level is the finest that was needed. CacheHits counts divergences that were resolved as an
	// earlier one was.
	Level     explore.Level `json:"level"`
	CacheHits int           `json:"cache_hits"`
	// Events is how far the best replay got. From and To are the events between which the search
	// ran.
	Events      uint64                `json:"furthest_event"`
	From        uint64                `json:"window_from"`
	To          uint64                `json:"window_to"`
	Preemptions []eventlog.Preemption `json:"preemptions"`
	// Places name the instructions of Preemptions, "" for a preemption after an event.
	Places []string `json:"places,omitempty"`
	// Unexplored says which schedules were left out.
	Unexplored string `json:"unexplored,omitempty"`
	// Seconds that the search took.
	Seconds float64 `json:"seconds"`
}

// searches reports whether a replay is to be followed by a search.
func (f *replayFlags) searches(rec *record.Recording, result *replay.Result, err error) bool {
	if f.noSearch || f.until != "" || f.timing != timingAuto || result == nil || !explore.SearchCanHelp(rec, result, err) {
		return false
	}
	// A search that ended in another state is continued if the user asks for it.
	found, missing := rec.Found()
	return f.resume || found == nil && missing == nil
}

// search looks for preemptions. It returns nil only with an error; otherwise the error is the
// replay's.
func (f *replayFlags) search(ctx context.Context, rec *record.Recording, progress *progress, first *replay.Result, failed error) (*replaySearch, error) {
	r, err := explore.Search(ctx, rec, explore.Options{Budget: f.budget, Resume: f.resume, Progress: func(p explore.Progress) {
		p.Events = max(p.Events, first.Events)
		progress.say(p.String())
	}})
	progress.clear()
	if err != nil {
		return nil, err
	}
	return &replaySearch{Reproduced: r.Reproduced, OtherState: r.OtherState, Attempts: r.Attempts, ByLevel: r.ByLevel, Traces: r.Traces, Remembered: r.Remembered, Level: r.Level, CacheHits: r.CacheHits,
		Events: r.Events, From: r.Window.From, To: r.Window.To, Preemptions: r.Preemptions, Unexplored: r.Unexplored, Seconds: r.Time.Seconds()}, failed
}

// name finds names for the preemptions' instructions. An instruction without one is shown by its
// address.
func (s *replaySearch) name(at *replay.Stopped) {
	if s == nil {
		return
	}
	p, err := at.Process()
	if err != nil {
		return
	}
	s.Places = nil
	for _, x := range s.Preemptions {
		place := ""
		if calls := p.Symbolize(x.PC, image.AtInstruction); x.PC != 0 && len(calls) > 0 && calls[0].Site.Line != 0 {
			site := calls[0].Site
			place = fmt.Sprintf("%s (%s:%d)", site.Function, filepath.Base(site.File), site.Line)
		}
		s.Places = append(s.Places, place)
	}
}

// text writes the result of a search. The schedule found is often the bug itself.
func (s *replaySearch) text(line func(name, format string, args ...any)) {
	if s == nil {
		return
	}
	what := "found no schedule that leads to the recorded end"
	switch {
	case s.OtherState > 0:
		what = "found how the recorded place is reached, in another state"
	case s.Reproduced:
		what = "found how the recorded end is reached"
	}
	line("search", "%s: %d attempts (%d plain, %d coarse, %d fine, %d traces) in %.1f s", what, s.Attempts,
		s.ByLevel[explore.LevelPlain], s.ByLevel[explore.LevelCoarse], s.ByLevel[explore.LevelFine], s.Traces, s.Seconds)
	if s.Remembered > 0 {
		line("", "%d were left out, which an earlier search had tried", s.Remembered)
	}
	if s.Reproduced {
		for i, p := range s.Preemptions {
			place := ""
			if i < len(s.Places) && s.Places[i] != "" {
				place = ", in " + s.Places[i]
			}
			line("", "preempted: %v%s", p, place)
		}
		return
	}
	line("", "the furthest attempt came to event %d; not tried: %s", s.Events, s.Unexplored)
}
