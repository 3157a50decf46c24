package realprograms

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/replay/record"
)

// tableRow is a line of the table in docs/recording-identity.md.
type tableRow struct {
	name, command      string
	processes, threads int
	events             uint64
	log                int64 // bytes of events
	first, others      count // replays of the first recording of the program itself, and of all others
	reason             string
	seen               []string
	turns              record.Turns    // of all processes
	recorded           time.Duration   // the first recording
	replayed           []time.Duration // those of the first recording that were identical, with the comparison
}

type count struct{ identical, all int }

func (c count) String() string { return fmt.Sprintf("%d of %d", c.identical, c.all) }

func (r *tableRow) describe(t testing.TB, tree []*record.Recording) {
	t.Helper()
	r.processes = len(tree)
	if times := tree[0].Manifest.Times; times.Ended != nil {
		r.recorded = times.Ended.Sub(times.Started)
	}
	for _, rec := range tree {
		if turns := rec.Manifest.Turns; turns != nil {
			r.turns.Ended += turns.Ended
			r.turns.Placed += turns.Placed
			r.turns.Unsure += turns.Unsure
		}
		s, err := rec.Log.Summarize()
		if err != nil {
			t.Fatal(err)
		}
		r.events += s.Events
		r.threads += len(s.Threads)
		for _, thread := range s.Threads {
			r.log += thread.Bytes
		}
	}
}

func (r *tableRow) failures() int {
	return r.first.all - r.first.identical + r.others.all - r.others.identical
}

const (
	tableHead      = "| Program | Command | Processes | Threads | Events | Log |%s Identical | Others identical |\n| --- | --- | --- | --- | --- | --- |%s --- | --- |\n"
	turnsHead      = " Turns | At an instruction | Of these unsure | Recorded, s | Replayed, s |"
	turnsSeparator = " --- | --- | --- | --- | --- |"
)

func (r *tableRow) line() string {
	turns := ""
	if level() == "turns" {
		slices.Sort(r.replayed)
		replayed := "-"
		if n := len(r.replayed); n > 0 {
			replayed = fmt.Sprintf("%.1f", r.replayed[n/2].Seconds())
		}
		turns = fmt.Sprintf(" %d | %d | %d | %.1f | %s |", r.turns.Ended, r.turns.Placed, r.turns.Unsure, r.recorded.Seconds(), replayed)
	}
	return fmt.Sprintf("| %s | `%s` | %d | %d | %d | %.1f MB |%s %v | %v |\n", r.name, r.command, r.processes, r.threads, r.events, float64(r.log)/1e6, turns, r.first, r.others)
}

// note keeps what a replay showed, each kind once.
func (r *tableRow) note(why string) {
	why, _, _ = strings.Cut(why, "\n")
	if len(r.seen) < 5 && !slices.Contains(r.seen, why) {
		r.seen = append(r.seen, why)
	}
}

var table struct {
	sync.Mutex
	rows []tableRow
}

func addRow(r tableRow) {
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, r)
}

// writeTable prints the table for people, if it was asked for.
func writeTable() {
	if os.Getenv("DIAGNOSE_IDENTITY") == "" || len(table.rows) == 0 {
		return
	}
	slices.SortFunc(table.rows, func(a, b tableRow) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	if level() == "turns" {
		fmt.Fprintf(&b, tableHead, turnsHead, turnsSeparator)
	} else {
		fmt.Fprintf(&b, tableHead, "", "")
	}
	for _, r := range table.rows {
		b.WriteString(r.line())
	}
	for _, r := range table.rows {
		for _, why := range r.seen {
			fmt.Fprintf(&b, "\n%s: %s", r.name, why)
		}
	}
	if path := os.Getenv("DIAGNOSE_IDENTITY_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err == nil {
			return
		}
	}
	fmt.Println(b.String())
}
