package driver

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"diagnose/evidence"
)

// draft is the Case that the stages fill, with the limits of what they could do.
type draft struct {
	result *evidence.Case
	// progress, if set, is called with the work that begins.
	progress func(string)
}

// stage is a part of an analysis.
type stage struct {
	name string
	run  func() error
}

// runStages runs the parts of an analysis in their order. The error says that ctx ended.
func (d *draft) runStages(ctx context.Context, list []stage) error {
	for _, s := range list {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted before the stage %s: %w", s.name, err)
		}
		d.runStage(s.name, s.run)
	}
	return nil
}

// runStage runs one part, measures its time, and turns its failure into a limit: a report that
// lacks a part is worth more than none. The part's error names its subject ("static scan: ...").
func (d *draft) runStage(name string, run func() error) {
	d.say(name)
	start := time.Now()
	defer func() {
		d.result.Timings = append(d.result.Timings, evidence.Timing{Stage: name, Duration: time.Since(start)})
		if r := recover(); r != nil {
			d.limit(evidence.Limit{Code: evidence.LimitFailedPart, Severe: true,
				Reason: fmt.Sprintf("the stage %s failed inside and its part is missing: %v; please report this: %s", name, r, panicSite(debug.Stack()))}.Worded())
		}
	}()
	// A file that is cut while it is mapped faults here (mmap(2), SIGBUS). The fault must cost this
	// stage and not the report.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := run(); err != nil {
		d.limit(failedPart(err))
	}
}

func (d *draft) say(text string) {
	if d.progress != nil {
		d.progress(text)
	}
}

// failedPart is the limit of a part that failed. The error names the part.
func failedPart(err error) evidence.Limit {
	return evidence.Limit{Code: evidence.LimitFailedPart, Reason: err.Error()}.Worded()
}

func (d *draft) limit(l ...evidence.Limit) { d.result.Limits = append(d.result.Limits, l...) }

// panicSite is the first line of a panic's stack trace that names our code.
func panicSite(trace []byte) string {
	for _, l := range strings.Split(string(trace), "\n") {
		if strings.HasPrefix(l, "diagnose/") && !strings.Contains(l, "driver.(*analysis).stage") {
			return l
		}
	}
	return "unknown place"
}
