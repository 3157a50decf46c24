package realprograms

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportOfRecording wants a report of a recorded core to be about the
// program: not about the library that it aborted in, nor about the log.
func TestReportOfRecording(t *testing.T) {
	t.Parallel()
	p := identity{name: "C++ threads", command: compiled(t, "threads.cc", "-std=c++17")}
	dir := p.record(t)
	out, err := exec.Command(tool(t), "crash", "--core", filepath.Join(dir, "core")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	if !strings.Contains(text, "#0 ") || !strings.Contains(text, "abort") {
		t.Errorf("no stack of an abort:\n%s", text)
	}
	for _, foreign := range []string{"dg_", "/log", "are missing"} {
		if strings.Contains(text, foreign) {
			t.Errorf("the report tells of %q:\n%s", foreign, text)
		}
	}
}
