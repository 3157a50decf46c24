package nightly

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
)

// helpers answer without a process.
type helpers struct {
	mu     sync.Mutex
	lack   *Lack
	asked  map[string]int
	stored map[string]int
}

func (o *helpers) Analyse(ctx context.Context, t Task) (*corpus.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[t.Entry.ID]++
	if o.lack != nil {
		return nil, &UnableError{o.lack}
	}
	return &corpus.Result{Diagnosis: corpus.Diagnosis{Version: "v1", Started: time.Now(), Reason: "nothing to see"}}, nil
}

func (o *helpers) Stored(_ context.Context, entry string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored[entry]++
	return nil
}

func (o *helpers) Fleet() *Fleet { return &Fleet{Workers: []FleetWorker{}} }

// A night asks the others once for each failure, and tells them of each that the corpus has. What
// they cannot do is left, and named.
func TestRemote(t *testing.T) {
	c, ids := filled(t, failure{what: "ok"}, failure{what: "ok", cause: "copy"})
	o := options(c)
	r := &helpers{asked: map[string]int{}, stored: map[string]int{}, lack: &Lack{Kind: LackFeature, Name: "avx512f"}}
	o.Remote = r
	run := night1(t, o)
	if run.Diagnosed+run.Undiagnosed+run.NotReached != 0 || len(run.Fleet.Unable) != 1 || len(run.Fleet.Unable[0].Entries) != 2 || len(r.stored) != 0 {
		t.Errorf("%+v, %+v, %+v", run, run.Fleet, r)
	}
	if set, err := c.Claimed(t.Context()); err != nil || len(set) != 0 {
		t.Errorf("%v, %v", set, err)
	}
	r.lack = nil
	if run := night1(t, o); run.Undiagnosed != 2 || len(run.Fleet.Unable) != 0 {
		t.Errorf("%+v, %+v", run, run.Fleet)
	}
	for _, id := range ids {
		if r.asked[id] != 2 || r.stored[id] != 1 {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

func TestUnreachable(t *testing.T) {
	c, _ := filled(t, failure{what: "ok"})
	o := options(c)
	o.Remote = &awayRemote{}
	if _, err := Diagnose(t.Context(), o); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
}

var errAway = errors.New("the engine is away")

type awayRemote struct{ helpers }

func (*awayRemote) Analyse(context.Context, Task) (*corpus.Result, error) { return nil, errAway }

// The summary says of workers what it says of one host, and what they did not do.
func TestFleetFacts(t *testing.T) {
	s := sampleSummary()
	s.Run.Fleet = &Fleet{Engine: "nats://queue:4222", Repeated: 1,
		Workers: []FleetWorker{{Name: "a", Host: "one", Failures: 2, MemoryBy: analysis.MemoryGrouped, Confined: true},
			{Name: "b", Host: "two", Failures: 1, MemoryBy: analysis.MemoryPolled, MemoryWhy: "want of a group", FreeWhy: "no namespaces"}},
		SetAside: []SetAside{{Entry: "00ff", Program: "bank", Tries: make([]Try, 3)}},
		Unable:   []Unable{{Entries: []string{"11", "22"}}, {Lack: &Lack{Kind: LackObject, Name: "/srv/bin/bank", BuildID: "abcd"}, Entries: []string{"33"}}}}
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"workers: 2 workers on 2 hosts, by nats://queue:4222",
		"(a control group each)",
		"looked at ten times a second, for want of a group",
		"the rights of the worker's user: no namespaces",
		"repeated: 1 failure took more than one try",
		"set aside: 1 failure that no try finished: 00ff bank (3 tries)",
		"no worker: 2 failures that no worker could take: there was none: 11, 22",
		"no worker: 1 failure that no worker could take: none has /srv/bin/bank of build-id abcd: 33",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, text.String())
		}
	}
	if page := pageOf(t, s, samplePage(s)); !strings.Contains(page, "that no worker could take") {
		t.Error("the page lacks them")
	}
	s.Run.Fleet.SetAside[0].Tries[0].Error = "password=hunter2 in the log"
	s.Redact(nil)
	if got := s.Run.Fleet.SetAside[0].Tries[0].Error; strings.Contains(got, "hunter2") || !strings.Contains(got, "[redacted]") {
		t.Errorf("%q", got)
	}
}
