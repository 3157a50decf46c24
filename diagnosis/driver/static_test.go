package driver_test

import (
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// otherStatic are fixtures that fail in another way with the C library in them.
var otherStatic = map[string]string{
	"cxx_pure_virtual": "gcc and clang: the weak __cxa_pure_virtual may stay undefined, and the call is one through null",
	"wild_read":        "a static-pie program is mapped where the index leads to a non-canonical address",
}

// The programs of TestFixtures with the C library in them have the same reports, and the next step says that they need another link.
func TestStaticFixtures(t *testing.T) {
	for _, f := range crashtest.Fixtures(t) {
		for _, v := range f.StaticVariants() {
			t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				if why := otherStatic[f.Name]; why != "" {
					t.Skip(why)
				}
				x := f.Crash(t, v)
				c := crash(t, driver.Request{Core: x.Core})
				checkWant(t, f.Want, c)
				checkLocks(t, f.Hang, c)
				if c.Next != nil && c.Next.Need != evidence.NeedDynamicLinking {
					t.Errorf("the next step is %+v", c.Next)
				}
			})
		}
	}
}

// A dynamically linked program needs nothing.
func TestDynamicNeedsNothing(t *testing.T) {
	f := crashtest.Named(t, "null_read")
	c := crash(t, driver.Request{Core: f.Crash(t, f.AllVariants()[0]).Core})
	if c.Next == nil || c.Next.Need != "" {
		t.Errorf("the next step is %+v", c.Next)
	}
	for _, s := range c.Stacks {
		for i := range s.Stack.Frames {
			if s.Stack.Frames[i].Site.Archive {
				t.Errorf("%s is called a library's", s.Stack.Frames[i].Site.Function)
			}
		}
	}
}

// musl has no call frame information: its stacks end at the program's entry point and at clone, and nothing is beyond.
func TestMusl(t *testing.T) {
	f := crashtest.Named(t, "threads_work")
	for _, v := range []crashtest.Variant{
		{Name: "musl-O0-static", Compiler: "musl-gcc", Flags: []string{"-O0", "-static"}},
		{Name: "musl-O2-static", Compiler: "musl-gcc", Flags: []string{"-O2", "-static"}},
	} {
		t.Run(v.Name, func(t *testing.T) {
			c := crash(t, driver.Request{Core: f.Crash(t, v).Core})
			checkWant(t, f.Want, c)
			for _, g := range c.Stacks {
				last := g.Stack.Frames[len(g.Stack.Frames)-1].Site.Function
				if last != "_start" && last != "__clone" || g.Stack.Stopped != "" {
					t.Errorf("the stack of thread %d ends in %s: %s", g.Threads[0].Number, last, g.Stack.Stopped)
				}
			}
		})
	}
}
