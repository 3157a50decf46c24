package nightly

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"diagnose/corpus"
	"diagnose/evidence"
	"diagnose/evidence/signature"
	"diagnose/reports"
)

const (
	// mostReport is the maximum size of an analysis's report.
	mostReport = 128 << 20
	// mostPassing is how many recordings a failed one is compared with.
	mostPassing = 3
	// longestReason is the maximum length of the reason for a missing report.
	longestReason = 1 << 10
)

// attempt is one way to analyse a failure.
type attempt struct {
	args []string
	// lacks says what a report of this attempt lacks, after a reason; empty: nothing.
	lacks string
}

// analyse analyses a failure by its recording or, if that cannot be replayed, by its core. An
// error is one of the night, not of the failure: errOver, that of the context, or that no
// process can be started.
func (n *night) analyse(ctx context.Context, e *corpus.Entry) (*corpus.Result, error) {
	attempts, err := n.attempts(ctx, e)
	if err != nil {
		return nil, err
	}
	r := &corpus.Result{Diagnosis: corpus.Diagnosis{Version: n.Version, Started: time.Now().UTC()}}
	var reasons []string
	for _, a := range attempts {
		reason, err := n.try(ctx, a, r)
		if err != nil {
			return nil, err
		}
		if reason == "" {
			r.Diagnosed = true
			if len(reasons) > 0 {
				r.Reason = short(a.lacks + ": " + reasons[len(reasons)-1])
			}
			break
		}
		reasons = append(reasons, reason)
	}
	r.Took = time.Since(r.Started)
	if !r.Diagnosed {
		r.Reason = short(strings.Join(unique(reasons), "; then "))
	}
	return r, nil
}

// attempts returns the ways to analyse an entry, the most informative first.
func (n *night) attempts(ctx context.Context, e *corpus.Entry) ([]attempt, error) {
	dir := n.inside(e)
	if e.Kind == corpus.KindCore {
		return []attempt{{args: []string{"--core", filepath.Join(dir, "core")}}}, nil
	}
	// Most of the time is for the replays, the rest for the work before and after them.
	replay := []string{"--recording", dir, "--time", (n.Time * 3 / 4).String()}
	list := []attempt{{args: replay}}
	passing, err := n.passing(ctx, e)
	if err != nil {
		return nil, err
	}
	if len(passing) > 0 {
		with := append([]string{}, replay...)
		for _, p := range passing {
			with = append(with, "--passing", p)
		}
		list = []attempt{{args: with}, {args: replay, lacks: "not compared with runs that passed"}}
	}
	if _, err := os.Lstat(filepath.Join(dir, "core")); err == nil {
		list = append(list, attempt{args: []string{"--core", filepath.Join(dir, "core")}, lacks: "from the core alone"})
	}
	return list, nil
}

// passing returns recordings of the same executable that did not fail, the newest ones.
func (n *night) passing(ctx context.Context, e *corpus.Entry) ([]string, error) {
	if e.BuildID == "" {
		return nil, nil
	}
	entries, err := n.Corpus.List(ctx, corpus.Filter{Program: e.Name()})
	if err != nil {
		return nil, err
	}
	var list []string
	for i := range entries {
		p := &entries[i]
		if p.Passed && p.Kind == corpus.KindRecording && p.BuildID == e.BuildID && p.Program == e.Program && n.trusts(p) && len(list) < mostPassing {
			list = append(list, n.inside(p))
		}
	}
	return list, nil
}

// try runs one analysis. It stores the report in r, or returns why there is none.
func (n *night) try(ctx context.Context, a attempt, r *corpus.Result) (string, error) {
	scratch, discard, err := n.Corpus.Scratch()
	if err != nil {
		return "", err
	}
	defer discard()
	report := filepath.Join(scratch, "report.json")
	p := process{
		args:    append(append(append([]string{}, n.Command...), "crash", "--format", "json", "--output", report), a.args...),
		environ: append(append(os.Environ(), n.Environ...), "TMPDIR="+scratch, "NO_COLOR=1"),
		dir:     scratch,
		time:    n.Time,
		memory:  n.Memory,
	}
	over := false
	if left := time.Until(n.deadline); !n.deadline.IsZero() && left < p.time {
		p.time, over = max(left, 0), true
	}
	end, err := n.bounded(ctx, p)
	if err != nil {
		return "", err
	}
	r.CPU += end.cpu
	r.Memory = max(r.Memory, end.memory)
	switch {
	case end.tooLong && over:
		return "", errOver
	case end.tooLong:
		return fmt.Sprintf("it took longer than %v", n.Time), nil
	case end.tooLarge:
		return fmt.Sprintf("it needed more than %d MiB of memory", n.Memory>>20), nil
	case end.starved:
		return "the kernel ended it for want of memory, though it was within its budget", nil
	case end.status != 0:
		return why(end), nil
	}
	return take(report, r), nil
}

// bounded runs a process in its own control group, or without one if none can be made.
func (n *night) bounded(ctx context.Context, p process) (*ending, error) {
	groups := n.groups.Load()
	if groups == nil {
		return p.runToEnd(ctx)
	}
	group, err := groups.new(p.memory)
	if err == nil {
		defer group.close()
		p.group = group
		var end *ending
		var start *startError
		if end, err = p.runToEnd(ctx); !errors.As(err, &start) {
			return end, err
		}
		p.group = nil
	}
	end, again := p.runToEnd(ctx)
	var start *startError
	if !errors.As(again, &start) { // the group was the reason
		n.poll(err)
	}
	return end, again
}

// poll continues without control groups.
func (n *night) poll(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.groups.Store(nil)
	n.run.MemoryBy, n.run.MemoryWhy = MemoryPolled, why.Error()
}

// why returns the error that a failed analysis reported: its error, the runtime's message if it
// crashed, or its last line.
func why(end *ending) string {
	said, died, last := "", "", ""
	for line := range strings.Lines(end.stderr) {
		line = strings.TrimSpace(line)
		if text, found := strings.CutPrefix(line, "diagnose: "); found {
			said = text
		}
		if died == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "SIG")) {
			died = line
		}
		if line != "" {
			last = line
		}
	}
	return fmt.Sprintf("%s (%s)", short(cmp.Or(died, said, last, "it said nothing")), end.how)
}

// take stores a report in a result, or returns why it cannot.
func take(name string, r *corpus.Result) string {
	text, err := readBounded(name)
	if err != nil {
		return "its report: " + err.Error()
	}
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		return "its report: " + err.Error()
	}
	if doc.Case == nil {
		return "its report has no case"
	}
	c := doc.Case
	r.Report, r.Signature = text, signature.Of(c)
	r.Program, r.BuildID = c.Program.Exe, c.Program.BuildID
	if c.Failure.Signal != nil {
		r.Ended = c.Failure.Signal.Name
	}
	r.Kind, r.Proof, r.Summary = string(c.Failure.Kind), string(c.Failure.Proof), c.Failure.Sentence
	if c.Severity != nil {
		r.Class, r.Estimate = c.Severity.Class, c.Severity.Estimate
	}
	if first := firstCause(c); first != nil {
		r.Kind, r.Proof, r.Summary = string(first.Kind), string(first.Proof), first.Summary
	}
	return ""
}

// firstCause returns the cause that the signature is of; nil if there is none.
func firstCause(c *evidence.Case) *evidence.Cause {
	if c.Diagnosis == nil {
		return nil
	}
	for i := range c.Diagnosis.Causes {
		if p := c.Diagnosis.Causes[i].Proof; p == evidence.Proved || p == evidence.Replayed {
			return &c.Diagnosis.Causes[i]
		}
	}
	return nil
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostReport+1))
	if err == nil && len(text) > mostReport {
		err = errors.New("it has more than 128 MiB")
	}
	return text, err
}

func short(text string) string {
	if len(text) <= longestReason {
		return text
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "..."
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}
