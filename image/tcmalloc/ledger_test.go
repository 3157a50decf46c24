package tcmalloc_test

import (
	"testing"

	"diagnose/image/allocator/allocatortest"
	"diagnose/image/tcmalloc"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// TestLedger: the state and the size that are told of objects are those that the program wrote down.
func TestLedger(t *testing.T) {
	for _, l := range allocatortest.Tcmalloc {
		for _, compiler := range []string{"gcc", "clang"} {
			t.Run(l.Name+"/"+compiler, func(t *testing.T) {
				p, events := allocatortest.Ledger(t, &l, compiler, "-O1")
				h, err := tcmalloc.Open(p)
				if err != nil {
					t.Fatal(err)
				}
				a := allocatortest.Compare(t, h, events)
				if a.Live < 500 || a.Freed < 100 || a.Wrong > 0 {
					t.Errorf("%+v", a)
				}
				t.Logf("%+v", a)
			})
		}
	}
}
