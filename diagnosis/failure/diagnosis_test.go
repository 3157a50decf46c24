package failure_test

import (
	"testing"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// diagnosis is what this package says of one core.
type diagnosis struct {
	process  *image.Process
	failure  evidence.Failure
	limits   []evidence.Limit
	findings []evidence.Finding
	waiting  []string
}

func open(t *testing.T, core, exe string) *image.Process {
	t.Helper()
	p, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func diagnose(t *testing.T, core, exe string) diagnosis {
	t.Helper()
	p := open(t, core, exe)
	u := unwind.New(p)
	stacks := make([]unwind.Stack, len(p.Threads))
	for i := range p.Threads {
		stacks[i] = u.WalkEnds(&p.Threads[i], unwind.EndsOptions{Limit: 1 << 20, Top: 64, Bottom: 8})
		u.Symbolize(stacks[i].Frames)
	}
	waits := failure.WaitsOf(p, stacks, failure.WaitOptions{})
	d := diagnosis{process: p, findings: waits.Deadlocks()}
	for _, text := range waits.Texts() {
		d.waiting = append(d.waiting, text.For(1))
	}
	in := failure.Input{Process: p, Findings: d.findings}
	if p.Failing >= 0 {
		in.Stack = stacks[p.Failing]
	}
	d.failure, d.limits = failure.Classify(in)
	return d
}
