package unwind_test

import (
	"strings"
	"testing"

	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/crashtest"
)

// openCrash crashes a fixture and opens its core.
func openCrash(t testing.TB, fixture, variant string) *image.Process {
	t.Helper()
	f := crashtest.Named(t, fixture)
	v, ok := f.Variant(variant)
	if !ok {
		t.Fatalf("%s has no variant %s", fixture, variant)
	}
	p, err := image.OpenCore(f.Crash(t, v).Core, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestWalkEnds(t *testing.T) {
	for _, test := range []struct {
		fixture, variant string
		period           int
		outermost        string
		leastDepth       int
	}{
		{"stack_overflow", "O0", 1, "_start", 50000},
		{"stack_overflow", "O2-nofp", 1, "_start", 50000},
		{"stack_overflow_mutual", "O2", 3, "_start", 3000},
		{"stack_overflow_thread", "O0", 1, "clone3", 500},
	} {
		t.Run(test.fixture+"/"+test.variant, func(t *testing.T) {
			t.Parallel()
			p := openCrash(t, test.fixture, test.variant)
			u := unwind.New(p)
			s := u.WalkEnds(&p.Threads[p.Failing], unwind.EndsOptions{Limit: 1 << 20, Top: 20, Bottom: 10})
			if s.Stopped != "" || s.Truncated {
				t.Errorf("stopped %q, truncated %v", s.Stopped, s.Truncated)
			}
			if len(s.Frames) != 30 || s.OmittedAt != 20 || s.Omitted != s.Depth-30 || s.Depth < test.leastDepth {
				t.Errorf("%d frames, depth %d, %d omitted at %d", len(s.Frames), s.Depth, s.Omitted, s.OmittedAt)
			}
			u.Symbolize(s.Frames)
			calls := s.Frames[len(s.Frames)-1].Calls
			if got := calls[len(calls)-1].Site.Function; !strings.HasPrefix(got, test.outermost) {
				t.Errorf("the outermost frame is %s, want %s", got, test.outermost)
			}
			if s.Cycle == nil || s.Cycle.Period != test.period || s.Cycle.Turns < s.Depth/test.period-10 {
				t.Errorf("cycle %+v of %d frames, want period %d", s.Cycle, s.Depth, test.period)
			}
		})
	}
}

// TestWalkEndsShort keeps a short stack complete, for any lengths of the two
// ends.
func TestWalkEndsShort(t *testing.T) {
	p := openCrash(t, "tail_calls", "O0")
	u := unwind.New(p)
	thread := &p.Threads[p.Failing]
	whole := u.Walk(thread, 100)
	for _, o := range []unwind.EndsOptions{
		{Limit: 100, Top: 100, Bottom: 5}, {Limit: 100, Top: 1, Bottom: 100},
		{Limit: 100, Top: 0, Bottom: len(whole.Frames)}, {Limit: 100, Top: len(whole.Frames), Bottom: 0},
	} {
		s := u.WalkEnds(thread, o)
		if s.Omitted != 0 || len(s.Frames) != len(whole.Frames) {
			t.Fatalf("%+v: %d frames, %d omitted; want %d", o, len(s.Frames), s.Omitted, len(whole.Frames))
		}
		for i := range s.Frames {
			if s.Frames[i].PC() != whole.Frames[i].PC() {
				t.Errorf("%+v: frame %d is %v, want %v", o, i, s.Frames[i].PC(), whole.Frames[i].PC())
			}
		}
	}
	if s := u.WalkEnds(thread, unwind.EndsOptions{Limit: 3, Top: 1, Bottom: 1}); s.Omitted != 1 || !s.Truncated {
		t.Errorf("three frames, two kept: %d omitted, truncated %v", s.Omitted, s.Truncated)
	}
}

// BenchmarkWalk walks a stack of about 90,000 frames.
func BenchmarkWalk(b *testing.B) {
	p := openCrash(b, "stack_overflow", "O0")
	u := unwind.New(p)
	b.ReportAllocs()
	depth := 0
	for b.Loop() {
		depth = u.WalkEnds(&p.Threads[p.Failing], unwind.EndsOptions{Limit: 1 << 20, Top: 100, Bottom: 20}).Depth
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(depth), "ns/frame")
}

// BenchmarkThreads walks 201 threads with a new unwinder.
func BenchmarkThreads(b *testing.B) {
	p := openCrash(b, "threads_200", "O2")
	b.ReportAllocs()
	for b.Loop() {
		u := unwind.New(p)
		for i := range p.Threads {
			u.Walk(&p.Threads[i], 1000)
		}
	}
}
