package driver_test

import (
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// TestPointedObject: a plain core tells which object of glibc's heap the bad pointer, or a pointer of the failing instruction, is in, and
// whether it is free; of a pointer in a global variable nothing.
func TestPointedObject(t *testing.T) {
	for _, build := range [][]string{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O1"}} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/malloc/pointed.c", Compiler: build[0], Output: "pointed", Flags: []string{build[1]}})
		for _, c := range []struct {
			name   string
			state  evidence.ChunkState
			offset uint64
		}{
			{"live", evidence.ChunkInUse, 8}, {"far", evidence.ChunkInUse, 0}, {"freed", evidence.ChunkFree, 0}, {"global", "", 0},
		} {
			t.Run(build[0]+build[1]+"/"+c.name, func(t *testing.T) {
				list := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{c.name}})}).Findings
				if c.state == "" {
					if len(list) > 0 {
						t.Errorf("%s", list[0].Summary)
					}
					return
				}
				if len(list) == 0 && c.name == "live" && build[1] != "-O0" {
					return // the compiler kept the object's address no longer than the code needed it
				}
				if len(list) != 1 {
					t.Fatalf("%d findings: %v", len(list), list)
				}
				f := &list[0]
				if f.Kind != evidence.FindingHeapObject || f.Heap == nil || f.Heap.Object.Size != 56 || f.Heap.Object.State != c.state || f.Heap.Offset != c.offset {
					t.Errorf("%s: %s", f.Kind, f.Summary)
				}
				if len(f.Heap.Object.Holders) == 0 {
					t.Errorf("no pointer to the object: %s", f.Summary)
				}
			})
		}
	}
}
