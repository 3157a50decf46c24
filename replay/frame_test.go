package replay_test

import (
	"os/exec"
	"testing"

	"diagnose/internal/recordtest"
)

// TestSignalFrame compares a signal frame made by the engine with the kernel's.
func TestSignalFrame(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/record/signals/frame.c")
	if err != nil {
		t.Fatal(err)
	}
	path := p.Build(t)
	kernels, err := exec.CommandContext(t.Context(), path).Output()
	if _, ended := err.(*exec.ExitError); !ended || len(kernels) < 1000 {
		t.Fatalf("alone, the program ended with %v and wrote %d bytes", err, len(kernels))
	}
	if r := recordtest.RecordProgram(t, path, nil, "", p.Ends); r.Output != string(kernels) {
		t.Errorf("the frame is\n%sthe kernel's is\n%s", r.Output, kernels)
	}
}
