package main

import (
	"context"

	"diagnose/debug"
	"diagnose/diagnosis/driver"
	"diagnose/replay/record"
)

// diagnoseRecording returns the causes and leads of a recorded failure.
func diagnoseRecording(ctx context.Context, rec *record.Recording) ([]debug.Cause, error) {
	request := driver.Request{Recordings: []string{rec.Dir}, Opened: map[string]*record.Recording{rec.Dir: rec}}
	result, err := driver.Crash(ctx, request)
	if err != nil || result.Diagnosis == nil {
		return nil, err
	}
	var list []debug.Cause
	for c := range result.Diagnosis.Told() {
		x := debug.Cause{Summary: c.Summary, Proof: c.Proof}
		for _, step := range c.Story {
			y := debug.CauseStep{Text: step.Text, Proof: step.Proof, Site: step.Site}
			if step.Access != nil {
				y.Moment = step.Access.Moment
			}
			x.Steps = append(x.Steps, y)
		}
		list = append(list, x)
	}
	return list, nil
}
