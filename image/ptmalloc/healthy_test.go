package ptmalloc_test

import (
	"testing"

	"diagnose/image"
	"diagnose/image/ptmalloc"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// open reads the heap of a core.
func open(t *testing.T, core, exe string) (*image.Process, *ptmalloc.Heap) {
	t.Helper()
	p, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	h, err := ptmalloc.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, h
}

// healthy fails the test if anything in a heap looks bad, and returns the numbers of chunks in use and in lists.
func healthy(t *testing.T, h *ptmalloc.Heap) (used, free int) {
	t.Helper()
	for _, b := range h.BadLinks {
		t.Errorf("bad link: %+v", b)
	}
	for _, s := range h.Segments() {
		bad, err := h.Check(&s)
		if err != nil || bad != nil {
			t.Errorf("segment %+v: %+v, %v", s, bad, err)
		}
		if _, err := h.Chunks(&s, func(c *ptmalloc.Chunk) bool {
			switch {
			case c.InUse():
				used++
			case !c.Top:
				free++
			}
			return true
		}); err != nil {
			t.Error(err)
		}
	}
	return used, free
}

// TestHealthy: a heap that four threads used for long, in four arenas, has no fault.
func TestHealthy(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O1", "-static"}} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/churn.c", Flags: append(flags, "-pthread")})
		_, h := open(t, crashtest.Core(t, exe, crashtest.Run{}), exe)
		used, free := healthy(t, h)
		if len(h.Arenas) < 2 || len(h.Segments()) < len(h.Arenas) || used < 500 || free < 500 {
			t.Errorf("%v: %d arenas, %d segments, %d chunks in use, %d free", flags, len(h.Arenas), len(h.Segments()), used, free)
		}
		t.Logf("%v: version %d, %d arenas, %d segments, %d chunks in use, %d free", flags, h.Version, len(h.Arenas), len(h.Segments()), used, free)
	}
}
