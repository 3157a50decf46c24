package probe_test

import (
	"fmt"
	"testing"

	"diagnose/probe"
)

// TestStacks: returns of calls that are open on several stacks of a thread.
func TestStacks(t *testing.T) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, "../internal/testdata/probe/stacks.c", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Returns: []string{"resumes", "waits", "helper", "interrupted", "handled", "leaves"}})
			var waits, resumes, interrupted, handled []string
			for n := range 4 {
				resumes, interrupted, handled = append(resumes, fmt.Sprint(n+1000)), append(interrupted, fmt.Sprint(n+7)), append(handled, "102")
				for self := 0; n < 3 && self < 3; self++ {
					waits = append(waits, fmt.Sprint((n+1)*10+self))
				}
			}
			check(t, values(log, probe.KindReturn, "resumes", probe.Result), resumes, "resumes")
			check(t, values(log, probe.KindReturn, "waits", probe.Result), waits, "waits")
			check(t, values(log, probe.KindReturn, "interrupted", probe.Result), interrupted, "interrupted")
			check(t, values(log, probe.KindReturn, "handled", probe.Result), handled, "handled")
			check(t, values(log, probe.KindReturn, "leaves", probe.Result), []string{"50"}, "leaves")
			if n := len(values(log, probe.KindReturn, "helper", probe.Result)); n != 9+4+1 {
				t.Errorf("%d returns of helper", n)
			}
			for i := range log.Places {
				p := &log.Places[i]
				if want := map[string]uint64{"leaves": 1}[p.Asked]; p.Left != want || p.Missed != 0 {
					t.Errorf("%s: %d calls left, want %d; %d missed", p.Asked, p.Left, want, p.Missed)
				}
			}
		})
	}
}

// TestTwoNames: two places at one entry both have rows.
func TestTwoNames(t *testing.T) {
	rec := recorded(t, "../internal/testdata/probe/templates.cc", "SIGABRT", "g++", "-O0")
	log := ask(t, rec, probe.Question{Returns: []string{"check", "shop::check"}})
	for _, name := range []string{"check", "shop::check"} {
		check(t, values(log, probe.KindReturn, name, probe.Result), []string{"50", "51", "52"}, name)
	}
	for i := range log.Places {
		if p := &log.Places[i]; p.Left != 2 || p.Missed != 0 {
			t.Errorf("%+v, want 2 that an exception left: the third may still run", p)
		}
	}
}

// TestUnseen: returns to an instruction where no thread can be stopped are counted, and the others have rows.
func TestUnseen(t *testing.T) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, "../internal/testdata/probe/unseen.c", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Returns: []string{"number"}})
			if p := &log.Places[0]; p.Missed != 3 || p.Left != 0 {
				t.Errorf("%+v, want 3 returns that were missed", p)
			}
			check(t, values(log, probe.KindReturn, "number", probe.Result), []string{"39"}, "number")
		})
	}
}

// TestJumped: a jump to the instruction after a call that was left is no return.
func TestJumped(t *testing.T) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, "../internal/testdata/probe/jumped.c", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Returns: []string{"third"}})
			check(t, values(log, probe.KindReturn, "third", probe.Result), []string{"73"}, "third")
			if p := &log.Places[0]; p.Left != 1 || p.Missed != 0 {
				t.Errorf("%+v, want 1 call that was left", p)
			}
		})
	}
}
