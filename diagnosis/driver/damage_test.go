package driver_test

import (
	"bytes"
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/internal/crashtest"
)

// Debug information that could not be read is reported with its section.
func TestDamageIsNamed(t *testing.T) {
	x := crashtest.Named(t, "null_read").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	exe := read(t, x.Exe)
	file, err := elf.NewFile(bytes.NewReader(exe))
	if err != nil {
		t.Fatal(err)
	}
	const versionOffset = 4 // of the unit's version, after its length
	exe[file.Section(".debug_info").Offset+versionOffset] = 77
	c := survives(t, "version", driver.Request{Core: x.Core, Exe: write(t, filepath.Join(t.TempDir(), "exe"), exe)})
	if c == nil {
		t.Fatal("no report")
	}
	for _, l := range c.Limits {
		if strings.Contains(l.Text, ".debug_info") && strings.Contains(l.Text, "77") {
			return
		}
	}
	t.Errorf("no limit names the section and the version: %v", c.Limits)
}
