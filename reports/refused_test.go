package reports

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// A call that the recorder refused is the first limit of a program that ended itself, and one limit
// among others of other programs.
func TestRefusedCalls(t *testing.T) {
	for _, x := range []struct {
		kind   evidence.FailureKind
		severe bool
	}{{evidence.ExitStatus, true}, {evidence.Abort, true}, {evidence.NullPointer, false}} {
		c := sample()
		c.Failure.Kind, c.Limits = x.kind, nil
		c.Refused = []evidence.RefusedCall{{Call: "io_uring_setup", Error: "ENOSYS", Why: "it writes memory", Moment: evidence.Moment{Thread: 2, Ordinal: 7}}, {Call: "seccomp", Why: "its own"}}
		for _, format := range []Format{Text, Markdown, HTML, SARIF} {
			text := strings.ReplaceAll(render(t, c, Options{Format: format}), "\\", "") // of Markdown
			at := strings.Index(text, "refused io_uring_setup with ENOSYS, first at moment 2:7: it writes memory")
			if at < 0 || !strings.Contains(text, "was not enforced") || strings.Contains(text, "because of that alone") != x.severe {
				t.Errorf("%s %s: %s", x.kind, format, text)
			}
			if stacks := strings.Index(text, "Stacks"); format == Text && (at < stacks) != x.severe {
				t.Errorf("%s: at %d, the stacks at %d", x.kind, at, stacks)
			}
		}
		if got := withRefused(c); got == c || len(c.Limits) != 0 || len(got.Limits) != 2 || got.Limits[0].Severe != x.severe {
			t.Errorf("%s: %+v", x.kind, got.Limits)
		}
	}
}
