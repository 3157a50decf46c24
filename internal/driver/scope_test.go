package driver_test

import (
	"slices"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/internal/driver"
)

// A failure inside a template of the standard library is scanned up to the
// program's own function that called it.
func TestScanReachesThroughTemplates(t *testing.T) {
	x := crashtest.Named(t, "cxx_vector_at").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	c := crash(t, driver.Request{Core: x.Core})
	if c.Scan == nil || !slices.Contains(c.Scan.Functions, "element") {
		t.Errorf("scanned %+v, want element among them", c.Scan)
	}
}
