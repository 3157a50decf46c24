package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/corpus"
	"diagnose/evidence"
	"diagnose/evidence/signature"
	"diagnose/reports"
)

const (
	// MostReport is the maximum size of an analysis's report, in bytes.
	MostReport = 128 << 20
	// longestReason is the maximum length of the reason for a missing report.
	longestReason = 1 << 10
)

// Failure is a failure to analyse.
type Failure struct {
	// Kind is corpus.KindRecording or corpus.KindCore.
	Kind string
	// Dir is the recording, or the directory that has the core.
	Dir string
	// Passing are recordings of the same executable that did not fail, to compare with.
	Passing []string
	// Needed are directories that a confined process must be able to read: Dir and Passing are in
	// them.
	Needed []string
	// Time and Memory are the limits of each process with its descendants, Memory in bytes.
	Time   time.Duration
	Memory int64
}

// attempt is one way to analyse a failure.
type attempt struct {
	args []string
	// lacks says what a report of this attempt lacks, after a reason; empty: nothing.
	lacks string
	// replays says that it runs recordings, and does not only read a core.
	replays bool
}

// Analyse analyses a failure by its recording or, if that cannot be replayed, by its core. What
// is wrong with the failure is in the result. An error is that of the context, or says that no
// process can be started.
func (a *Analyser) Analyse(ctx context.Context, f Failure) (*corpus.Result, error) {
	r := &corpus.Result{Diagnosis: corpus.Diagnosis{Version: a.Version, Started: time.Now().UTC()}}
	var reasons []string
	for _, way := range a.attempts(f) {
		reason, err := a.try(ctx, f, way, r)
		if err != nil {
			return nil, err
		}
		if reason == "" {
			r.Diagnosed = true
			if len(reasons) > 0 {
				r.Reason = short(way.lacks + ": " + reasons[len(reasons)-1])
			}
			break
		}
		reasons = append(reasons, reason)
	}
	r.Took = time.Since(r.Started)
	if !r.Diagnosed {
		r.Reason = short(strings.Join(slices.Compact(reasons), "; then "))
	}
	return r, nil
}

// attempts returns the ways to analyse a failure, the most informative first.
func (a *Analyser) attempts(f Failure) []attempt {
	if f.Kind == corpus.KindCore {
		return []attempt{{args: []string{"--core", filepath.Join(f.Dir, "core")}}}
	}
	// Most of the time is for the replays, the rest for the work before and after them.
	replay := []string{"--recording", f.Dir, "--time", (f.Time * 3 / 4).String()}
	list := []attempt{{args: replay, replays: true}}
	if len(f.Passing) > 0 {
		with := append([]string{}, replay...)
		for _, p := range f.Passing {
			with = append(with, "--passing", p)
		}
		list = []attempt{{args: with, replays: true}, {args: replay, lacks: "not compared with runs that passed", replays: true}}
	}
	if _, err := os.Lstat(filepath.Join(f.Dir, "core")); err == nil {
		list = append(list, attempt{args: []string{"--core", filepath.Join(f.Dir, "core")}, lacks: "from the core alone"})
	}
	return list
}

// try runs one analysis. It stores the report in r, or returns why there is none.
func (a *Analyser) try(ctx context.Context, f Failure, way attempt, r *corpus.Result) (string, error) {
	scratch, discard, err := a.Scratch()
	if err != nil {
		return "", err
	}
	defer discard()
	report := filepath.Join(scratch, "report.json")
	p := process{
		args:    append(append(append([]string{}, a.Command...), "crash", "--format", "json", "--output", report), way.args...),
		environ: append(append(os.Environ(), a.Environ...), "TMPDIR="+scratch, "NO_COLOR=1"),
		dir:     scratch,
		time:    f.Time,
		memory:  f.Memory,
	}
	end, err := a.confined(ctx, p, f.Needed, way.replays)
	var files *confineError
	if errors.As(err, &files) {
		return files.err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	r.CPU += end.cpu
	r.Memory = max(r.Memory, end.memory)
	switch {
	case end.tooLong:
		return fmt.Sprintf("it took longer than %v", f.Time), nil
	case end.tooLarge:
		return fmt.Sprintf("it needed more than %d MiB of memory", f.Memory>>20), nil
	case end.starved:
		return "the kernel ended it for want of memory, though it was within its budget", nil
	case end.status != 0:
		return why(end), nil
	}
	text, err := readBounded(report)
	if err == nil {
		err = Fill(r, text)
	}
	if err != nil {
		return "its report: " + err.Error(), nil
	}
	return "", nil
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

// Fill stores a report, the JSON document that "diagnose crash" writes, in a result, with all
// fields that follow from it. It fails if the document is none or has no case.
func Fill(r *corpus.Result, text []byte) error {
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	if doc.Case == nil {
		return errors.New("it has no case")
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
	return nil
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
	text, err := io.ReadAll(io.LimitReader(f, MostReport+1))
	if err == nil && len(text) > MostReport {
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
