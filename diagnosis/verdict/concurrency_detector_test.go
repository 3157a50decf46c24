package verdict

import (
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/accesslog"
	"diagnose/patterns"
	"diagnose/watchtrace"
)

// codeAt is memory that has code at one address.
type codeAt struct {
	at   evidence.Addr
	code string
}

func (c codeAt) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr < c.at || addr >= c.at+evidence.Addr(len(c.code)) {
		return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	n := copy(p, c.code[addr-c.at:])
	if n < len(p) {
		return n, &image.MemoryError{Addr: addr + evidence.Addr(n), Reason: "is not mapped", Unmapped: true}
	}
	return n, nil
}

func TestAtomic(t *testing.T) {
	for _, x := range []struct {
		name, code string
		want       bool
	}{
		{"lock xadd", "\xf0\x0f\xc1\x07", true},
		{"lock cmpxchg of 16 bits", "\x66\xf0\x0f\xb1\x0f", true},
		{"xchg", "\x87\x07", true},
		{"xchg of 64 bits", "\x48\x87\x07", true},
		{"xchg of a byte", "\x86\x07", true},
		{"add to memory", "\x01\x07", false},
		{"add to memory, of 64 bits", "\x48\x83\x07\x01", false},
		{"inc, of 16 bits", "\x66\xff\x07", false},
		{"code that is not there", "", false},
		{"code that ends with a prefix", "\x66", false},
	} {
		if got := atomic(codeAt{0x1000, x.code}, 0x1000); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// TestDetects: two that find each other by atomic instructions of the failing function
// say nothing of why both are there. Everything else says something.
func TestDetects(t *testing.T) {
	const head = "main t1\nt1 create t2 a\nt1 create t3 b\n"
	for _, x := range []struct {
		name, fails, passes string
		want                bool
	}{
		{"an exchange that two make", "t2 RW taken 0->1 @60\nt3 RW taken 1->1 @60\n", "t2 RW taken 0->1 @60\n", true},
		{"a store, and an exchange", "t2 W taken 0->1 @61\nt3 RW taken 1->1 @60\n", "t2 W taken 0->1 @61\n", false},
		{"the other function's instruction", "t2 RW taken 0->1 @10\nt3 RW taken 1->1 @60\n", "t2 RW taken 0->1 @10\n", false},
		{"a count that is dropped before it is raised", "t2 RW count 0->9 @60\nt3 RW count 9->0 @61\n", "t3 RW count 0->1 @61\nt2 RW count 1->0 @60\n", false},
	} {
		texts := []*accesslog.Text{accesslog.Parse("run failed\n" + head + x.fails), accesslog.Parse(head + x.passes)}
		runs, err := delta.Align([]*evidence.AccessLog{texts[0].Log}, []*evidence.AccessLog{texts[1].Log})
		if err != nil {
			t.Fatal(err)
		}
		found := patterns.Find(delta.Compare(runs), patterns.Options{})
		own := func(a *evidence.Access) bool { return texts[0].Log.Contexts[a.Context].Site.Line >= 60 }
		seen := false
		for i := range found.Candidates {
			c := &found.Candidates[i]
			if len(c.Accesses) != 2 || c.Never {
				continue
			}
			seen = true
			if got := detects(c, texts[0].Log, own); got != x.want {
				t.Errorf("%s: %s: %v", x.name, c.Key, got)
			}
		}
		if !seen {
			t.Errorf("%s: no order of two accesses", x.name)
		}
	}
}

// TestLeadsTo: what there is one way from only, to the call that ends the process, is
// behind the decision.
func TestLeadsTo(t *testing.T) {
	const (
		load  = "\x8b\x07"             // mov (%rdi),%eax
		call  = "\xe8\x00\x10\x00\x00" // call far away
		jump  = "\xeb\x02"             // over two bytes
		skip  = "\x74\x05"             // je over a call
		nops  = "\x90\x90"
		leave = "\xc3"
	)
	for _, x := range []struct {
		name, code string
		want       bool
	}{
		{"an argument of the message", load + call + call, true},
		{"one in code of its own", load + jump + nops + call, true},
		{"what is decided by", load + skip + call, false},
		{"a function that returns", load + leave + call, false},
		{"another call's way", load + call + leave, false},
	} {
		end := evidence.Addr(0x1000 + len(x.code))
		if got := leadsTo(codeAt{0x1000, x.code}, 0x1000, end); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

func TestInsideLock(t *testing.T) {
	for _, x := range []struct {
		name, typ string
		want      bool
	}{
		{"pool.lock.__data.__owner", "int", true},
		{"pool.lock.__data", "struct __pthread_mutex_s", true},
		{"pool->lock.__data.__lock", "int", true},
		{"slots.__size", "char [32]", true},
		{"slots.__align", "long", true},
		{"cache._M_impl._M_rwlock.__data.__readers", "unsigned int", true},
		{"ready", "pthread_once_t", true},
		{"spin", "volatile pthread_spinlock_t", true},
		{"slots", "sem_t", true},
		{"bank::DESK.inner.futex.v.value", "u32", true},
		{"bank::DESK.data.value", "u32", false},
		{"pool.data__size", "int", false},
		{"owner", "int", false},
		{"table.inner.state", "int", false},
	} {
		if got := insideLock(watchtrace.Target{Name: x.name, Type: x.typ}); got != x.want {
			t.Errorf("%s, a %s: %v", x.name, x.typ, got)
		}
	}
}
