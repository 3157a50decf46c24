package nightly

import (
	"time"

	"diagnose/corpus"
	"diagnose/reports/tracker"
)

// when is the time from which the sample's times are counted.
var when = time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)

// groupOf returns a cluster whose digest has that letter.
func groupOf(letter, kind, summary string, times ...int) Group {
	const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd"
	g := Group{Cluster: corpus.Cluster{Digest: letter + letter + digest, ByCause: true, Kind: kind, Proof: "proved", Summary: summary, Program: "server",
		Example: "e" + letter + "00112233", Lines: []string{"heap-overflow", "allocated at grow: buffer = malloc(n);", "at append: memcpy(b->text + b->used, text, n);"},
		Stacks: 1, Count: 9, First: when.Add(-200 * time.Hour), Last: when.Add(-time.Hour)}, Times: make([]int, 14), Trend: "steady"}
	copy(g.Times[14-len(times):], times)
	g.Recent, g.Earlier = g.Times[13], g.Times[12]
	switch {
	case g.Recent > g.Earlier:
		g.Trend = "rising"
	case g.Recent < g.Earlier:
		g.Trend = "falling"
	}
	return g
}

// sampleSummary has every part of a summary.
func sampleSummary() *Summary {
	fixed := when.Add(-100 * time.Hour)
	s := &Summary{SchemaVersion: SummaryVersion, Corpus: "/srv/failures", Since: when.Add(-24 * time.Hour), Before: when.Add(-48 * time.Hour),
		Failures: 12, FailuresBefore: 7, Quiet: 3, Times: []int{0, 0, 3, 1, 0, 0, 2, 8, 0, 0, 1, 0, 7, 12},
		Run:         Run{Version: "1.2", Started: when, Ended: when.Add(3 * time.Minute), Diagnosed: 10, Undiagnosed: 2, NotReached: 4, CPU: 5 * time.Minute, PerCoreHour: 144},
		New:         []Group{groupOf("a", "heap-overflow", "append (buffer.c:31) writes past a 64-byte object of grow", 4), groupOf("b", "atomicity-violation", "balance is read and written with another thread's store between", 1)},
		Back:        []Group{groupOf("c", "use-after-free", "drop (names.c:30) frees what print_all reads", 2, 0, 0, 0, 3)},
		Known:       []Group{groupOf("d", "null-pointer", "session->user is null in handle_login", 1, 5, 2), groupOf("e", "abort", "abort in withdraw", 3, 3)},
		Fixed:       []Group{groupOf("f", "data-race", "count is written by two threads", 5, 0, 0)},
		Undiagnosed: []Missed{{"e900112233", "worker", "SIGKILL", when.Add(-time.Hour), "it took longer than 10m0s"}},
		Partial:     []Missed{{"e800112233", "server", "SIGSEGV", when.Add(-2 * time.Hour), "from the core alone: the program was built again"}}}
	s.New[1].ByCause, s.New[1].Stacks = false, 3
	s.Back[0].Fixed, s.Back[0].Note, s.Back[0].Back = &fixed, "in 1.4", "ec00112233"
	s.Fixed[0].Fixed = &fixed
	s.Alerting = &Alerting{Webhook: "webhook:hooks.example.org#00ff", Summed: 3, Error: "it wants no more requests", Alerts: []Alerted{{Digest: s.New[0].Digest, Kind: s.New[0].Kind, Event: "new"},
		{Digest: s.Back[0].Digest, Kind: s.Back[0].Kind, Event: "back", Error: "invalid payload"}}}
	s.Tracking = &Tracking{Tracker: "github:acme/server", Later: 2, Issues: []Tracked{
		{Digest: s.New[0].Digest, Kind: "heap-overflow", Action: tracker.Opened, Issue: "17", URL: "https://github.com/acme/server/issues/17", Duplicates: []string{"18"}},
		{Digest: s.Back[0].Digest, Kind: "use-after-free", Action: tracker.Reopened, Issue: "3", URL: "javascript:alert(1)", Note: "the report was not attached"},
		{Digest: s.New[1].Digest, Kind: "atomicity-violation", Error: "the server answered 422"}}}
	return s
}

// samplePage returns where the reports of the sample are.
func samplePage(s *Summary) PageOptions {
	o := PageOptions{Reports: map[string]string{}, Missing: map[string]string{s.Known[1].Digest: "its report cannot be shown: it has no case"}}
	for _, g := range []Group{s.New[0], s.New[1], s.Back[0], s.Known[0]} {
		o.Reports[g.Digest] = "causes/" + g.Digest + ".html"
	}
	return o
}
