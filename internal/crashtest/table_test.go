package crashtest_test

import (
	"os"
	"testing"

	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// TestFixtures runs the whole table: the bug leaves a core, and the fixed twin
// ends with status 0.
func TestFixtures(t *testing.T) {
	for _, f := range crashtest.Fixtures(t) {
		for _, v := range f.Variants() {
			t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				crash := f.Crash(t, v)
				info, err := os.Stat(crash.Core)
				if err != nil || info.Size() == 0 {
					t.Errorf("no core: %v", err)
				}
				f.Passes(t, v)
			})
		}
	}
}
