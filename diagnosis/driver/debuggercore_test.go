package driver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

const protectedText = `
#include <sys/mman.h>
int main(void)
{
	char *p = mmap(0, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)p = 1;
	return 0;
}
`

// TestProtectedPageByDebugger: gdb marks a page without any permission as readable. That does not
// turn the failure into a write to read-only memory.
func TestProtectedPageByDebugger(t *testing.T) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip("not supported here: gdb is not installed")
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "protected.c", Text: protectedText, Compiler: "gcc", Flags: []string{"-O0"}})
	core := filepath.Join(t.TempDir(), "core")
	out, err := exec.Command(gdb, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "run", "-ex", "generate-core-file "+core, exe).CombinedOutput()
	if _, statErr := os.Stat(core); statErr != nil {
		t.Fatalf("gdb wrote no core: %v\n%s", err, out)
	}
	f := crash(t, driver.Request{Core: core}).Failure
	if f.Kind != evidence.ProtectedPage || f.Proof != evidence.Inferred || strings.Contains(f.Sentence, "read-only") {
		t.Errorf("%s [%s]: %s", f.Kind, f.Proof, f.Sentence)
	}
	t.Log(f.Sentence)
}
