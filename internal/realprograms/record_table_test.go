package realprograms

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

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
}

type count struct{ identical, all int }

func (c count) String() string { return fmt.Sprintf("%d of %d", c.identical, c.all) }

func (r *tableRow) describe(t testing.TB, tree []*record.Recording) {
	t.Helper()
	r.processes = len(tree)
	for _, rec := range tree {
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

func (r *tableRow) line() string {
	return fmt.Sprintf("| %s | `%s` | %d | %d | %d | %.1f MB | %v | %v |\n", r.name, r.command, r.processes, r.threads, r.events, float64(r.log)/1e6, r.first, r.others)
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
	b.WriteString("| Program | Command | Processes | Threads | Events | Log | Identical | Others identical |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
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
