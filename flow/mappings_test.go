package flow_test

import (
	"testing"

	"diagnose/flow"
)

// Each mapping is an object, which ends with the call that took it away.
func TestMappings(t *testing.T) {
	x := recordedProgram(t, "testdata/mappings.c", flow.Request{})
	for _, c := range []struct {
		name      string
		size      uint64
		by, freed string
	}{
		{"unmapped", 8192, "mmap", "munmap"},
		{"old", 4096, "mmap", "mremap"},
		{"moved", 8192, "mremap", ""},
		{"grown", 8192, "mmap", ""},
		{"detached", 8192, "shmat", "shmdt"},
		{"attached", 8192, "shmat", ""},
	} {
		o := x.ObjectAt(x.pointer(t, c.name), x.last)
		if o == nil || o.Size != c.size || o.By != c.by || o.FreedBy != c.freed || o.Freed >= 0 != (c.freed != "") {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
	if d := x.Define(flow.Memory(x.pointer(t, "moved"), 8), x.last); d.Kind != flow.Copied || d.Call != "mremap" {
		t.Errorf("the bytes that mremap moved are %+v", d)
	}
}
