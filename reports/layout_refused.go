package reports

import (
	"fmt"

	"diagnose/evidence"
)

// withRefused returns a case whose limits say which system calls the recorder refused. They come
// first if the program ended itself, as it may have done so for that reason.
func withRefused(c *evidence.Case) *evidence.Case {
	if len(c.Refused) == 0 {
		return c
	}
	out := *c
	out.Limits = nil
	for i := range c.Refused {
		out.Limits = append(out.Limits, refusedLimit(&c.Refused[i], endedItself[c.Failure.Kind]))
	}
	out.Limits = append(out.Limits, c.Limits...)
	return &out
}

func refusedLimit(r *evidence.RefusedCall, ended bool) evidence.Limit {
	if r.Error == "" {
		return evidence.Limit{Code: evidence.LimitRefused, Subject: "recording", Severe: ended, Reason: fmt.Sprintf("the filter for system calls that the program set (%s, at moment %s) was not enforced: %s, so what it forbids succeeded",
			r.Call, r.Moment, r.Why)}.Worded()
	}
	text := fmt.Sprintf("the recorder, not the kernel, refused %s with %s, first at moment %s: %s", r.Call, r.Error, r.Moment, r.Why)
	if ended {
		text += "; the program may have failed because of that alone, and not fail unrecorded"
	}
	return evidence.Limit{Code: evidence.LimitRefused, Subject: "recording", Severe: ended, Reason: text}.Worded()
}

// endedItself are the failures of programs that end when something they need is missing.
var endedItself = map[evidence.FailureKind]bool{evidence.ExitStatus: true, evidence.Abort: true, evidence.AssertionFailure: true,
	evidence.CxxTerminate: true, evidence.RustPanic: true, evidence.GoPanic: true, evidence.BadSystemCall: true, evidence.TrapInsn: true}
