package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// TestLayout compares the mirror with the compiler's view of control.h.
func TestLayout(t *testing.T) {
	var c control
	var o operation
	var r callRegisters
	values := []struct {
		text string
		want uint64
	}{
		{"DG_VERSION", version}, {"DG_PAGE", pageSize}, {"DG_OPERATIONS", mostOps}, {"DG_FRAMES", mostFrames}, {"DG_OUTPUT", outputSize},
		{"DG_ARGUMENT_PAGES", argumentPages}, {"DG_POOL_PAGES", poolPages}, {"DG_SLOTS", mostSlots}, {"DG_MISSING_SHIFT", missingShift}, {"DG_UNMAP", unmap},
		{"DG_READY", eventReady}, {"DG_DONE", eventDone}, {"DG_WANTED", eventWanted}, {"DG_PRINTED", eventPrinted}, {"DG_FAILED", eventFailed}, {"DG_ENDED", eventEnded}, {"DG_CALLED", eventCalled},
		{"DG_READ", uint64(Read)}, {"DG_STORE", uint64(Store)}, {"DG_MISSING", uint64(Missing)}, {"DG_CALL", uint64(Call)}, {"DG_SYSTEM_CALL", uint64(SystemCall)},
		{"DG_SIGNAL", uint64(Signal)}, {"DG_TIME", uint64(Time)}, {"DG_LOAD", uint64(Load)},
		{"sizeof(struct dg_operation)", uint64(unsafe.Sizeof(o))}, {"offsetof(struct dg_operation, page)", uint64(unsafe.Offsetof(o.Page))},
		{"offsetof(struct dg_operation, count)", uint64(unsafe.Offsetof(o.Count))},
		{"sizeof(struct dg_call)", uint64(unsafe.Sizeof(r))}, {"offsetof(struct dg_call, integer)", uint64(unsafe.Offsetof(r.Integer))},
		{"offsetof(struct dg_call, vector)", uint64(unsafe.Offsetof(r.Vector))}, {"offsetof(struct dg_call, answered)", uint64(unsafe.Offsetof(r.Answered))},
		{"offsetof(struct dg_call, result)", uint64(unsafe.Offsetof(r.Result))}, {"offsetof(struct dg_call, x87)", uint64(unsafe.Offsetof(r.X87))},
		{"offsetof(struct dg_control, call)", uint64(unsafe.Offsetof(c.Call))},
		{"sizeof(struct dg_control)", uint64(unsafe.Sizeof(c))}, {"offsetof(struct dg_control, block)", uint64(unsafe.Offsetof(c.Block))},
		{"offsetof(struct dg_control, slots)", uint64(unsafe.Offsetof(c.Slots))}, {"offsetof(struct dg_control, operations)", uint64(unsafe.Offsetof(c.Operations))},
		{"offsetof(struct dg_control, operation)", uint64(unsafe.Offsetof(c.Operation))}, {"offsetof(struct dg_control, event)", uint64(unsafe.Offsetof(c.Event))},
		{"offsetof(struct dg_control, failure)", uint64(unsafe.Offsetof(c.Failure))}, {"offsetof(struct dg_control, address)", uint64(unsafe.Offsetof(c.Address))},
		{"offsetof(struct dg_control, base)", uint64(unsafe.Offsetof(c.Base))}, {"offsetof(struct dg_control, arguments)", uint64(unsafe.Offsetof(c.Arguments))},
		{"offsetof(struct dg_control, missing)", uint64(unsafe.Offsetof(c.Missing))}, {"offsetof(struct dg_control, frames)", uint64(unsafe.Offsetof(c.Frames))},
		{"offsetof(struct dg_control, output)", uint64(unsafe.Offsetof(c.Output))}, {"offsetof(struct dg_control, frame)", uint64(unsafe.Offsetof(c.Frame))},
		{"offsetof(struct dg_control, text)", uint64(unsafe.Offsetof(c.Text))},
	}
	dir := t.TempDir()
	var b, want strings.Builder
	b.WriteString("#include \"control.h\"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n")
	for _, v := range values {
		fmt.Fprintf(&b, "printf(\"%%s %%lu\\n\", \"%s\", (unsigned long)(%s));\n", v.text, v.text)
		fmt.Fprintf(&want, "%s %d\n", v.text, v.want)
	}
	b.WriteString("}\n")
	for name, data := range map[string][]byte{"main.c": []byte(b.String()), "control.h": controlText} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exe := filepath.Join(dir, "main")
	if out, err := exec.Command("cc", "-o", exe, filepath.Join(dir, "main.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != want.String() {
		t.Errorf("C has\n%s\nGo has\n%s", out, want.String())
	}
}
