package reports

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

func TestSchedule(t *testing.T) {
	line := func(number int) *evidence.Site {
		return &evidence.Site{Function: "withdraw", File: "/src/bank.c", Line: number, Module: "/bin/bank"}
	}
	two, three := evidence.ThreadRef{Number: 2, Start: "teller"}, evidence.ThreadRef{Number: 3, Start: "teller"}
	all := []evidence.Preemption{
		{Thread: two, Event: 5, Site: line(31), Arrival: 1, Until: 46, Last: "getuid()", LastThread: three, LastSite: line(40), Runs: 3},
		{Thread: two, Event: 6, Behind: "mutex", Site: line(33), Until: 48, Runs: 3},
		{Thread: three, Event: 6, Site: line(35), Arrival: 22, Until: 48, Last: "getuid()", LastThread: three, Runs: 3}}
	for _, x := range []struct {
		s    evidence.Schedule
		want []string
	}{
		{evidence.Schedule{Preemptions: all, By: "search", Attempts: 19, Runs: 3}, []string{
			"these 3 preemptions are needed for the failure: without any one of them the replay does not fail (found by search in 19 attempts)",
			`1. thread 2 "teller" waits right before withdraw at /src/bank.c:31`,
			`until thread 3 "teller" has done getuid() in withdraw at /src/bank.c:40 (event 46 of all)`,
			`2. thread 2 "teller" waits after mutex in withdraw at /src/bank.c:33`,
			"until event 48 of all is done",
			`3. thread 3 "teller" waits right before withdraw at /src/bank.c:35, when it gets there for the 22nd time`,
			"and lets the others run first, to event 48 of all",
			"without it 0 of 3 replays failed as recorded"}},
		{evidence.Schedule{Preemptions: all[:1], By: "hunt", Runs: 3}, []string{
			"this preemption is needed for the failure: without it the replay does not fail (found by hunt)"}},
		{evidence.Schedule{Preemptions: []evidence.Preemption{all[0], {Thread: three, Event: 2, Failed: 3, Runs: 3, Until: 1}}, By: "search", Runs: 3}, []string{
			"replays fail as recorded with these 2 preemptions (", "without it 3 of 3 replays failed as recorded"}},
	} {
		c := diagnosed()
		c.Diagnosis.Schedule = &x.s
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		text := render(t, c, Options{Format: Text})
		for _, want := range x.want {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
	c := diagnosed()
	c.Diagnosis.Schedule = &evidence.Schedule{By: "search"}
	if c.Check() == nil {
		t.Error("a schedule without preemptions was taken")
	}
}
