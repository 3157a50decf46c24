package crashtest

import (
	"os"
	"testing"

	"diagnose/replay/ptrace"
)

// slowWatches is the name of an environment variable that has tests trace accesses even where each
// costs a hundred times as much.
const slowWatches = "DIAGNOSE_SLOW_WATCHES"

// TracesAccesses skips a test on a machine whose debug registers stop no thread. Accesses are traced
// by protected pages there, with which the tests take hours.
func TracesAccesses(t testing.TB) {
	t.Helper()
	if err := ptrace.DebugRegistersFire(); err != nil && os.Getenv(slowWatches) == "" {
		t.Skip(&UnsupportedError{What: err.Error() + "; " + slowWatches + "=1 runs this test all the same"})
	}
}
