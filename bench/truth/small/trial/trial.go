package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/small/program"
	"diagnose/bench/truth/ways"
)

// Unconfirmed is the outcome of a program that is not as the generator meant it: its twin fails
// without a recording, or the sanitizer sees no violation or another one. It says nothing about diagnose.
const Unconfirmed score.Outcome = "unconfirmed"

// attempts is how many recordings are made until one of them failed.
const attempts = 3

// Verdict is how a diagnosis was judged.
type Verdict struct {
	score.Score
	// Headline is that of the report; nil: there is none.
	Headline *score.Headline `json:"headline,omitempty"`
	// FalseAlarm says that the recording of the twin is one of a failure.
	FalseAlarm bool `json:"false_alarm,omitempty"`
	// Seconds is how long the diagnosis took.
	Seconds float64 `json:"seconds,omitempty"`
	// Report is the text of the report; nil: there is none.
	Report []byte `json:"-"`
	// Note says why there is no report.
	Note string `json:"note,omitempty"`
}

// Run tries a program in a directory, which it empties first.
func Run(ctx context.Context, tool *ways.Tool, p *program.Program, dir string) (*Verdict, error) {
	if err := limit.Empty(dir); err != nil {
		return nil, err
	}
	v, err := try(ctx, tool, p, dir)
	if refused, ok := errors.AsType[*buildError](err); ok {
		return &Verdict{Score: score.Score{Outcome: Unconfirmed}, Note: refused.Error()}, nil
	}
	return v, err
}

func try(ctx context.Context, tool *ways.Tool, p *program.Program, dir string) (*Verdict, error) {
	bug, err := build(ctx, p, p.Source, dir, "bug")
	if err != nil {
		return nil, err
	}
	v := &Verdict{}
	failing, err := recordFailing(ctx, tool, p, bug, dir)
	if err != nil {
		return nil, err
	}
	if failing == nil {
		v.Outcome = score.NotReproduced
		return v, nil
	}
	answer, err := confirm(ctx, tool, p, v, dir)
	if err != nil || answer == nil {
		v.Outcome = Unconfirmed
		return v, err
	}
	return v, diagnose(ctx, tool, p, failing, answer, v, dir)
}

func diagnose(ctx context.Context, tool *ways.Tool, p *program.Program, failing *ways.Failing, answer *mutant.Answer, v *Verdict, dir string) error {
	start := time.Now()
	doc, text, err := tool.Diagnose(ctx, failing, dir)
	v.Seconds = time.Since(start).Seconds()
	var failed *ways.ToolError
	switch {
	case errors.As(err, &failed):
		v.Outcome, v.Note = score.ToolFailed, failed.Error()
	case err != nil:
		return err
	default:
		v.Score, v.Headline, v.Report = judge(doc.Case, answer, p), score.HeadlineOf(doc.Case), text
	}
	return nil
}

// confirm looks whether the twin runs well, and whether the bug is the intended one. The answer is nil if
// not.
func confirm(ctx context.Context, tool *ways.Tool, p *program.Program, v *Verdict, dir string) (*mutant.Answer, error) {
	well, err := tryTwin(ctx, tool, p, v, dir)
	if err != nil || !well {
		return nil, err
	}
	answer := &mutant.Answer{File: p.File(), Root: p.Root}
	if p.Sanitizer != "" {
		if answer.Violation, err = violation(ctx, p, p.Source, dir); err != nil {
			return nil, err
		}
		if !intended(answer.Violation, p) {
			v.Note = fmt.Sprintf("the sanitizer sees %+v", answer.Violation)
			return nil, nil
		}
	}
	if p.Concurrent() {
		answer.Violation = nil // the accesses of the bug are the answer, and not any race
	}
	return answer, nil
}

// tryTwin records the twin. Where that is a recording of a failure, the twin has to end well without diagnose, too.
func tryTwin(ctx context.Context, tool *ways.Tool, p *program.Program, v *Verdict, dir string) (well bool, err error) {
	twin, err := build(ctx, p, p.Twin, dir, "twin")
	if err != nil {
		return false, err
	}
	recorded, err := record(ctx, tool, p.Failing, twin, filepath.Join(dir, "twin-recordings"))
	if err != nil || recorded != "" && ways.Passed(recorded) {
		return err == nil, err
	}
	r, err := limit.Run(ctx, limit.Command{Path: twin, Args: p.Failing, Dir: dir, Time: runLimit})
	if err != nil {
		return false, err
	}
	if r.Status != 0 || r.Signal != 0 {
		v.Note = fmt.Sprintf("the twin ended with status %d, signal %d", r.Status, r.Signal)
		return false, nil
	}
	v.FalseAlarm = true
	return true, nil
}

// recordFailing records the program until it fails; nil: it does not. With it comes the recording of a run that
// passed, where the program has arguments for one.
func recordFailing(ctx context.Context, tool *ways.Tool, p *program.Program, bug, dir string) (*ways.Failing, error) {
	f := &ways.Failing{}
	for _, environment := range environments(p) {
		path, err := record(ctx, tool, p.Failing, bug, filepath.Join(dir, "failing"), environment...)
		if err != nil {
			return nil, err
		}
		if path != "" && !ways.Passed(path) {
			f.Recording = path
			break
		}
	}
	if f.Recording == "" {
		return nil, nil
	}
	if p.Concurrent() {
		path, err := record(ctx, tool, p.Passing, bug, filepath.Join(dir, "passing"))
		if err != nil {
			return nil, err
		}
		if path != "" && ways.Passed(path) {
			f.Passing = []string{path}
		}
	}
	return f, nil
}

// environments are those of the attempts to record a failure. Fresh memory is 0 while a program is recorded; filled with another byte,
// as docs/recording.md has it for such programs, it makes one fail that uses what it did not initialise.
func environments(p *program.Program) [][]string {
	if p.Concurrent() {
		return make([][]string, attempts)
	}
	return [][]string{nil, {"DIAGNOSE_OPTIONS=fresh_byte=170"}}
}

// record records a run and returns the path of the recording; empty: there is none.
func record(ctx context.Context, tool *ways.Tool, args []string, exe, dir string, environment ...string) (string, error) {
	return tool.RecordOnce(ctx, ways.Once{Path: exe, Args: args, Env: environment, Time: runLimit}, dir)
}
