package main

import (
	"context"
	"fmt"
	"path/filepath"

	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/learn"
	"diagnose/replay/record"
)

// replayLearning is the result of a search for accesses that the recording does not order.
type replayLearning struct {
	// Learned are kept now: the next recording orders them. Known were kept before. Left are not kept.
	Learned []learn.Site `json:"learned,omitempty"`
	Known   []learn.Site `json:"known,omitempty"`
	Left    []learn.Site `json:"left,omitempty"`
	// Instructions of Traces replays were looked at.
	Instructions uint64 `json:"instructions"`
	Traces       int    `json:"traces"`
	// Seconds is the time that it took.
	Seconds float64 `json:"seconds"`
	// Failed says why the search was not possible.
	Failed string `json:"failed,omitempty"`
}

// learn looks for the accesses without an order because of which a replay of a recording of the order of atomic
// instructions went another way. It returns nil if there is nothing to learn from.
func (f *replayFlags) learn(ctx context.Context, rec *record.Recording, progress *progress, result *replay.Result, failed error) *replayLearning {
	if rec.Manifest.Atomics == nil || f.until != "" || result == nil || !explore.SearchCanHelp(rec, result, failed) {
		return nil
	}
	r, err := learn.Run(ctx, rec, result.Events, learn.Options{Progress: progress.say})
	progress.clear()
	if err != nil {
		return &replayLearning{Failed: err.Error()}
	}
	return &replayLearning{Learned: r.Learned, Known: r.Known, Left: r.Left, Instructions: r.Instructions, Traces: r.Traces, Seconds: r.Time.Seconds()}
}

// text lists the accesses.
func (l *replayLearning) text(line func(name, format string, args ...any)) {
	switch {
	case l == nil:
		return
	case l.Failed != "":
		line("learning", "not possible: %s", l.Failed)
		return
	case len(l.Learned)+len(l.Known)+len(l.Left) == 0:
		line("learning", "no accesses without an order were found in %d instructions", l.Instructions)
		return
	}
	line("learning", "%d accesses without an order were learned in %.1f s; recording the program again with --races=%s orders them",
		len(l.Learned), l.Seconds, racesAtomics)
	l.list(line, l.Learned, "learned")
	l.list(line, l.Known, "learned before this replay")
	l.list(line, l.Left, "not kept")
}

// mostLearnedShown bounds the lines of each list.
const mostLearnedShown = 12

func (l *replayLearning) list(line func(name, format string, args ...any), list []learn.Site, what string) {
	for i, s := range list {
		if i == mostLearnedShown {
			line("", "%d more %s", len(list)-i, what)
			return
		}
		place := s.Place
		if place != "" {
			place += ", "
		}
		text := fmt.Sprintf("%s: %s%v in %s", what, place, s.Offset, filepath.Base(string(s.Object)))
		if s.Why != "" {
			text += ": " + s.Why
		}
		line("", "%s", text)
	}
}
