package reports

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
)

func seen(thread int, moment evidence.Moment, kind evidence.AccessKind, before, after string, line int, locks ...evidence.Lock) evidence.SeenAccess {
	site := evidence.Site{Function: "withdraw", File: "/src/bank.c", Line: line, PC: moment.PC}
	return evidence.SeenAccess{Moment: moment, Thread: evidence.ThreadRef{Number: thread, Start: "teller"}, Variable: "balance", Address: 0x404040, Size: 8,
		Kind: kind, Old: before, New: after, Locks: locks, Site: &site,
		Stack: evidence.Stack{Frames: []evidence.Frame{{Kind: evidence.Physical, Trust: evidence.TrustContext, Site: site}}}}
}

func raceCause() evidence.Cause {
	lock := evidence.Lock{Address: 0x404060, Name: "guard"}
	site := evidence.Site{Function: "withdraw", File: "/src/bank.c", Line: 31}
	order := evidence.Event{Thing: "balance", At: evidence.Moment{Thread: 2, Ordinal: 14, PC: 0x401200, Count: 1}}
	c := evidence.Cause{Kind: evidence.CauseAtomicity, Variable: "balance", Site: &site, Proof: evidence.Replayed,
		Summary: "withdraw tests balance at bank.c:31 and changes it at bank.c:35, and another withdraw comes in between",
		Interleaving: &evidence.Interleaving{Pattern: evidence.PatternRWW, Variables: []string{"balance"},
			Failing: []evidence.SeenAccess{
				seen(2, evidence.Moment{Thread: 2, Ordinal: 14, PC: 0x401200, Count: 1}, evidence.Read, "100", "", 31, lock),
				seen(3, evidence.Moment{Thread: 3, Ordinal: 9, PC: 0x401230, Count: 1}, evidence.Write, "100", "20", 35, lock),
				seen(2, evidence.Moment{Thread: 2, Ordinal: 16, PC: 0x401230, Count: 1}, evidence.Write, "20", "-60", 35)},
			Passing: []evidence.SeenAccess{
				seen(2, evidence.Moment{Thread: 2, Ordinal: 14, PC: 0x401200, Count: 1}, evidence.Read, "100", "", 31, lock),
				seen(2, evidence.Moment{Thread: 2, Ordinal: 16, PC: 0x401230, Count: 1}, evidence.Write, "100", "20", 35)},
			Missing: "guard", Instead: "the test and the change follow one another",
			FailingRuns: 2, FailingOf: 2, PassingRuns: 0, PassingOf: 3, Score: 1, Measure: "F1"},
		Experiments: []evidence.Experiment{
			{What: "the recorded order", Failed: 5, Runs: 5, Expect: true, Outcome: "SIGABRT in withdraw", Control: true},
			{What: "the order forbidden", Failed: 0, Runs: 5, Outcome: "exit status 0", Change: &order,
				Check: &evidence.FailingCheck{Place: 0x401260, Recorded: 1, Arrivals: 1, Again: 1, After: evidence.CheckedValue{Good: true}}},
			{What: "the order forced on a passing run", Runs: 1, Expect: true, Undecided: "the call read has no result in the log"}}}
	if err := c.Prove(order); err != nil {
		panic(err)
	}
	return c
}

func overflowCause() evidence.Cause {
	site := evidence.Site{Function: "put_name", File: "/src/names.c", Line: 12}
	access := seen(1, evidence.Moment{Thread: 1, Ordinal: 3, PC: 0x401180, Count: 17}, evidence.Write, "0x5a", "0x41", 12)
	return evidence.Cause{Kind: evidence.CauseHeapOverflow, Summary: "put_name writes past the end of names", Site: &site, Proof: evidence.Replayed,
		Story: []evidence.CauseStep{{Text: "the bytes after the object were overwritten here", Access: &access, Proof: evidence.Replayed,
			Source: &evidence.Source{File: "/src/names.c", Lines: []evidence.SourceLine{{Number: 12, Text: "\tto[i] = from[i];", Failed: true}}}},
			{Text: "the value came in by a read of 40 bytes", Site: &site, Proof: evidence.Inferred}}}
}

func diagnosed(causes ...evidence.Cause) *evidence.Case {
	c := sample()
	c.Diagnosis = &evidence.Diagnosis{Recording: "rec/failed-1", Failing: 2, Passing: 3, Causes: causes,
		Differences: []string{"deposit reads balance at bank.c:31 (deposit): in the failing run it sees what withdraw wrote at bank.c:44 (withdraw), never in passing ones"},
		Excluded:    []evidence.Fact{{Name: "audit_count", Text: "its accesses come in the same order in passing runs"}},
		Watched: []evidence.Watched{{Name: "balance", Address: 0x404040, Size: 8, Hits: 12, Pass: 1},
			{Name: "balance", Address: 0x404040, Size: 8, Hits: 3, Pass: 2},
			{Name: "total", Address: 0x404048, Size: 8, Hits: 9, Pass: 2, Instructions: 4, Unseen: 1},
			{Name: "log|line", Address: 0x404080, Size: 4, Untraced: "the budget of 40 words was used up"}},
		Coverage: evidence.Coverage{Passes: 2, Hits: 12, Lost: 1, Backend: "bpf", Nanoseconds: 123456789,
			Limits: []evidence.Limit{{Text: "a watch of 16 bytes was cut into two words"}}}}
	return c
}

func TestCauseGolden(t *testing.T) {
	c := diagnosed(raceCause(), overflowCause())
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for file, opts := range map[string]Options{"cause.txt": {Format: Text}, "cause.md": {Format: Markdown}} {
		compareGolden(t, file, render(t, c, opts))
	}
}

func TestUnknownCause(t *testing.T) {
	c := diagnosed()
	ended := evidence.Limit{Code: evidence.LimitPassEnded, Pass: 1, Reason: "thread 2, event 7: the recording has a write"}.Worded()
	c.Diagnosis.Interrupted = true
	c.Diagnosis.Coverage.Limits = append(c.Diagnosis.Coverage.Limits, ended)
	c.Diagnosis.Unknown = &evidence.Unknown{Why: "2 replays of the recording found nothing that explains the failure", Because: []evidence.Limit{ended},
		Next: "diagnose replay rec/failed-1", NextWhy: "searches for a schedule"}
	text := render(t, c, Options{Format: Text})
	for _, want := range []string{
		"session->user is null\n  interrupted  the report has the findings until then\n",
		"\nCause\n\nunknown: 2 replays of the recording found nothing that explains the failure\n  because  " + ended.Text + "\n  next     diagnose replay rec/failed-1  # searches for a schedule\n",
		"audit_count", "not traced: the budget", "- a watch of 16 bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Count(text, ended.Text) != 1 {
		t.Errorf("the reason is repeated in\n%s", text)
	}
}

// A lead is told after the words on the cause, with the reason why it ends, in every format.
func TestLead(t *testing.T) {
	lead := overflowCause()
	lead.Proof, lead.Grounds, lead.Open, lead.Summary = evidence.Replayed, nil, evidence.OpenCall, "parse returned 0"
	c := diagnosed()
	c.Diagnosis.Unknown = &evidence.Unknown{Why: "a bad value was followed, but not to its end"}
	c.Diagnosis.Leads = []evidence.Cause{lead}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for _, format := range []Format{Text, Markdown, HTML} {
		text := render(t, c, Options{Format: format})
		last := 0
		for _, want := range []string{"unknown", "as far as it was followed", "parse returned 0", "what the call executed that returned the value is not known"} {
			at := strings.Index(text[last:], want)
			if at < 0 {
				t.Errorf("%s: %q is missing, or not in its place", format, want)
				break
			}
			last += at
		}
	}
	if h := headlineOf(c); h.cause != nil {
		t.Errorf("the headline is the lead: %q", h.text())
	}
	for _, open := range []evidence.OpenEnd{evidence.OpenBound, evidence.OpenTime, evidence.OpenOrigin, evidence.OpenCall, evidence.OpenInput, evidence.OpenDecision, evidence.OpenEmpty, evidence.OpenUntested,
		evidence.OpenOtherWay, evidence.OpenFolded, evidence.OpenRestored, evidence.OpenReused} {
		if openWords[open] == "" {
			t.Errorf("the report has no words for %q", open)
		}
	}
}

func TestProvedNeedsExperiment(t *testing.T) {
	cause := raceCause()
	cause.Experiments = cause.Experiments[:1] // the failure was never prevented
	if diagnosed(cause).Check() == nil {
		t.Error("a cause without an experiment was taken for proved")
	}
}

// The core numbers threads in another way than the recording, whose numbers a cause has.
func TestStackOfARecordedThread(t *testing.T) {
	for _, x := range []struct {
		recorded int
		want     string
	}{{0, "(LWP 70)"}, {1, "(LWP 70)"}, {3, "(LWP 70, thread 3 of the recording)"}} {
		c := diagnosed(raceCause())
		c.Stacks = []evidence.ThreadGroup{{Threads: []evidence.ThreadRef{{Number: 1, TID: 70, Start: "teller", Recorded: x.recorded}}, Failing: true}}
		var b strings.Builder
		if err := Write(&b, c, Options{}); err != nil {
			t.Fatal(err)
		}
		if want := `thread 1 "teller"  ` + x.want; !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// Of a long story a report for people has the first steps and the last ones, and says how many it leaves out. Documents have all.
func TestLongStory(t *testing.T) {
	x := overflowCause()
	x.Story = nil
	for i := range 12 {
		site := evidence.Site{Function: "step", File: "/src/steps.c", Line: 100 + i}
		x.Story = append(x.Story, evidence.CauseStep{Text: fmt.Sprintf("link %c was made", 'a'+rune(i)), Site: &site, Proof: evidence.Replayed})
	}
	for _, format := range []Format{Text, Markdown} {
		out := render(t, diagnosed(x), Options{Format: format})
		if !strings.Contains(out, "4 more steps") {
			t.Errorf("%s does not say how many steps are left out:\n%s", format, out)
		}
		for i := range 12 {
			link, told := fmt.Sprintf("link %c was made", 'a'+rune(i)), i < 3 || i >= 7
			if strings.Contains(out, link) != told {
				t.Errorf("%s, %s: told %v, want %v", format, link, !told, told)
			}
		}
	}
	if out := render(t, diagnosed(x), Options{Format: JSON}); !strings.Contains(out, "link e was made") {
		t.Error("JSON lacks a step")
	}
	x.Story = x.Story[:8]
	if out := render(t, diagnosed(x), Options{Format: Text}); strings.Contains(out, "more step") || !strings.Contains(out, "link e was made") {
		t.Errorf("of 8 steps:\n%s", out)
	}
}

// A lead says where each value came from that the deciding condition compared.
func TestComparedInReports(t *testing.T) {
	x := overflowCause()
	x.Open = evidence.OpenDecision
	condition, made := evidence.Site{Function: "check", File: "/src/table.c", Line: 49}, evidence.Site{Function: "bits", File: "/src/table.c", Line: 28}
	step := []evidence.CauseStep{{Text: "bits (table.c:28) computed 9 of it", Site: &made, Proof: evidence.Replayed}}
	x.Compared = []evidence.ComparedValue{{Site: &condition, Value: "512", Story: step}, {Site: &condition, Story: step}, {Site: &condition, Value: "7", Of: "512", Story: step}}
	c := diagnosed()
	c.Diagnosis.Leads = []evidence.Cause{x}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for _, format := range []Format{Text, Markdown, HTML} {
		out := render(t, c, Options{Format: format})
		for _, want := range []string{"table.c:49", "512", "a value", "which came this way", "computed 9 of it", "512 was made of"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q", format, want)
			}
		}
	}
}
