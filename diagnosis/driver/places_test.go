package driver

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
)

// Arrivals are counted for each thread, event and address, whatever came between.
func TestMomentsCountArrivals(t *testing.T) {
	counts := moments{}
	for i, x := range []struct {
		thread  uint32
		ordinal uint64
		pc      evidence.Addr
		want    uint64
	}{
		{1, 4, 0x10, 1}, {1, 4, 0x20, 1}, {1, 4, 0x10, 2}, {1, 4, 0x20, 2}, {2, 4, 0x20, 1}, {1, 4, 0x20, 3}, {1, 5, 0x20, 1},
	} {
		got := counts.arrive(evidence.Moment{Thread: x.thread, Ordinal: x.ordinal}, x.pc)
		if want := (evidence.Moment{Thread: x.thread, Ordinal: x.ordinal, PC: x.pc, Count: x.want}); got != want {
			t.Errorf("arrival %d is %v, want %v", i, got, want)
		}
	}
}

// A place of the source is found by its line, by a function's name, and where the function
// was inlined.
func TestPlacesNamed(t *testing.T) {
	const text = `int sum;
static inline __attribute__((always_inline)) void tell(int n) { sum += n; }
__attribute__((noinline)) static void add(int n)
{
	tell(n);
}
int main(void) { add(1); tell(2); return *(volatile int *)8; }
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "add.c", Text: text, Flags: []string{"-O1"}})
	p, err := image.OpenCore(crashtest.Core(t, exe, crashtest.Run{}), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	names := sourceNames{process: p}
	for place, want := range map[string]string{"add": "add", "add.c:5": "add", "add.c:7": "main", "tell": "add"} {
		pcs, err := names.placesNamed(place)
		if err != nil || len(pcs) == 0 {
			t.Errorf("%s is at %v, %v", place, pcs, err)
			continue
		}
		found := false
		for _, pc := range pcs {
			s, ok := p.SymbolAt(pc)
			found = found || ok && s.Name == want
		}
		if !found {
			t.Errorf("%s is at %v, none of which is in %s", place, pcs, want)
		}
	}
	for place, want := range map[string]string{"add.c:1": "line 1 of add.c has no code", "sub.c:1": "no source file of the program is called sub.c",
		"adds": "no function has this name; like it are add"} {
		if _, err := names.placesNamed(place); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", place, err, want)
		}
	}
}
