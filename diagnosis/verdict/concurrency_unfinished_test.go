package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
	"diagnose/patterns"
)

// TestCompletion: of an order that a passing run has as well, the write is found by which
// the writer is further there, and nothing where that is not what differs.
func TestCompletion(t *testing.T) {
	const (
		head  = "main t1\nt1 create t2 mover\nt1 create t3 measure\n"
		begin = "t2 W begin 0->1 @13\n"
		end   = "t2 W end 0->1 @15\n"
		width = "t3 R begin 1 @21\nt3 R end 0 @22\n"
	)
	for _, x := range []struct{ name, fails, passes, want string }{
		{"both are written", begin + width, begin + end + width, "end"},
		{"the second write is later", begin + width, begin + width + end, ""},
		{"the other order", begin + width, width + begin + end, ""},
		{"the failing run is as far", begin + end + width, begin + end + width, ""},
		{"nobody looks at it", begin + "t3 R begin 1 @21\n", begin + end + "t3 R begin 1 @21\n", ""},
		{"another thread's write", begin + width, begin + "t1 W end 0->1 @15\n" + width, ""},
	} {
		failing, passing := accesslog.Log("run failed\n"+head+x.fails), accesslog.Log(head+x.passes)
		write, read := -1, -1
		for i := range failing.Accesses {
			switch failing.Contexts[failing.Accesses[i].Context].Site.Line {
			case 13:
				write = i
			case 21:
				read = i
			}
		}
		if write < 0 || read < 0 {
			t.Fatalf("%s: the failing run has no write and read of begin", x.name)
		}
		got := ""
		if a := completion(failing, write, read, passing); a != nil {
			got = passing.Variables[a.Variable].Name
		}
		if got != x.want {
			t.Errorf("%s: %q, not %q", x.name, got, x.want)
		}
	}
}

// TestDifferentLocks: where each side holds a lock of its own, both are told.
func TestDifferentLocks(t *testing.T) {
	seen := func(function string, locks ...string) evidence.SeenAccess {
		s := evidence.SeenAccess{Site: &evidence.Site{Function: function}}
		for i, name := range locks {
			s.Locks = append(s.Locks, evidence.Lock{Address: evidence.Addr(0x1000 + i), Name: name})
		}
		return s
	}
	refund, pay, free := seen("refund", "taxes.m"), seen("pay", "wages.m"), seen("peek")
	both := "refund holds taxes.m and pay holds wages.m, which are different locks"
	for _, x := range []struct {
		name    string
		failing []evidence.SeenAccess
		want    string
	}{
		{"a lock each", []evidence.SeenAccess{refund, pay, refund}, both},
		{"none on one side", []evidence.SeenAccess{refund, free, refund}, ""},
		{"two on one side", []evidence.SeenAccess{refund, seen("pay", "log", "wages.m")}, both},
		{"the lock on both sides", []evidence.SeenAccess{refund, refund}, ""},
	} {
		if got := apartText(&evidence.Interleaving{Failing: x.failing, Missing: "taxes.m"}); got != x.want {
			t.Errorf("%s: %q, not %q", x.name, got, x.want)
		}
	}
}

// TestInstead: that passing runs do something else is not said of all, if some have the
// order as well.
func TestInstead(t *testing.T) {
	for _, x := range []struct {
		c    patterns.Candidate
		want string
	}{
		{patterns.Candidate{Instead: patterns.InPassing("A comes before B"), PassingOf: 3}, "in passing runs A comes before B"},
		{patterns.Candidate{Instead: patterns.InPassing("A comes before B"), PassingRuns: 1, PassingOf: 3}, "in 2 of 3 passing runs A comes before B"},
		{patterns.Candidate{PassingRuns: 1, PassingOf: 3}, ""},
	} {
		if got := insteadText(&x.c); got != x.want {
			t.Errorf("%q, not %q", got, x.want)
		}
	}
}
