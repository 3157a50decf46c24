package unwind

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// TestFindChain searches graphs that are written as "caller:callee" with one letter for each
// function, from s to e; a callee ? is not known. The results are the calls that all
// sequences begin with, a bar if there is more than one sequence, and those that all end
// with.
func TestFindChain(t *testing.T) {
	for graph, want := range map[string]string{
		"s:e":                     "s:e",
		"s:a a:b b:e":             "s:a a:b b:e",
		"s:a s:b a:e":             "s:a a:e",       // b does not lead there
		"s:a s:b a:e b:e":         "none",          // nothing in common
		"s:a a:b a:c b:d c:d d:e": "s:a | d:e",     // known but for the middle
		"s:a s:b a:c b:c c:e":     "| c:e",         // the last
		"s:a a:b a:c b:e c:e":     "s:a |",         // the first
		"s:a s:a a:e":             "| a:e",         // by one of two calls
		"s:a a:s a:e":             "| s:a a:e",     // a loop that has both
		"s:e s:s":                 "| s:e",         // a recursion before
		"s:a a:a a:e":             "s:a | a:e",     // a recursion in between
		"s:a a:b b:a b:e":         "s:a | a:b b:e", // a loop of two in between
		"s:e e:a a:e":             "s:e",           // what e calls is not of interest
		"s:a a:b":                 "none",          // no way
		"s:a a:e s:b b:?":         "none",          // b may lead to e
		"s:a a:e e:?":             "s:a a:e",       // e was reached already
		"s:a s:b s:c a:d b:d c:d": "none",          // no way
		"s:a a:b b:c c:a c:d d:e": "s:a | a:b b:c c:d d:e",
	} {
		if got := chainText(graph); got != want {
			t.Errorf("%s: %q, want %q", graph, got, want)
		}
	}
}

func chainText(graph string) string {
	calls := map[evidence.Addr][]jump{}
	unknown := map[evidence.Addr]bool{}
	names := map[evidence.Addr]string{}
	for i, call := range strings.Fields(graph) {
		from, to := evidence.Addr(call[0]), evidence.Addr(call[2])
		calls[from] = append(calls[from], jump{after: evidence.Addr(1000 + i), to: to})
		names[evidence.Addr(1000+i)] = call
		unknown[from] = unknown[from] || to == '?'
	}
	c, ok := findChain('s', 'e', func(f evidence.Addr) ([]jump, bool) { return calls[f], !unknown[f] })
	if !ok {
		return "none"
	}
	var parts []string
	for _, j := range c.first {
		parts = append(parts, names[j.after])
	}
	if !c.whole {
		parts = append(parts, "|")
	}
	for _, j := range c.last {
		parts = append(parts, names[j.after])
	}
	return strings.Join(parts, " ")
}

// TestFindChainBounds gives up on more functions than any chain has, and needs little time for
// a graph with more sequences than can be counted.
func TestFindChainBounds(t *testing.T) {
	endless := func(f evidence.Addr) ([]jump, bool) { return []jump{{after: f, to: f + 2}}, true }
	if c, ok := findChain(2, 1, endless); ok {
		t.Errorf("an endless chain is %v", c)
	}
	dense := func(f evidence.Addr) ([]jump, bool) {
		var list []jump
		for to := range evidence.Addr(60) {
			list = append(list, jump{after: f*100 + to, to: to + 1})
		}
		return list, true
	}
	if c, ok := findChain(2, 1, dense); ok {
		t.Errorf("any of 60 functions may call any: %v", c)
	}
	ladder := func(f evidence.Addr) ([]jump, bool) { // two ways at each of 200 steps
		switch {
		case f == 1000:
			return []jump{{after: 1, to: 3}}, true
		case f > 200:
			return []jump{{after: f, to: 1}}, true
		}
		return []jump{{after: f * 10, to: f + 1}, {after: f*10 + 1, to: f + 1}}, true
	}
	if c, ok := findChain(1000, 1, ladder); !ok || fmt.Sprint(len(c.first), len(c.last), c.whole) != "1 1 false" {
		t.Errorf("a ladder: %v %v", c, ok)
	}
}

// FuzzJumps reads calls and jumps in code that is the fuzzer's. Every jump found ends in the code
// and leads to the module.
func FuzzJumps(f *testing.F) {
	f.Add([]byte("\xe8\xfb\xff\xff\xff\xff\x25\x00\x00\x00\x00\xe9\x10\x00\x00\x00\xc3"), uint8(17))
	f.Add([]byte("\xff\x15\x00\x00\x00\x00\xff\xe0\xff\x24\xc5\x00\x00\x40\x00\x0f\x84\x00\x01\x00\x00"), uint8(4))
	f.Fuzz(func(t *testing.T, code []byte, size uint8) {
		p := newFake(code, nil)
		u := &Unwinder{process: p}
		low, high := p.module.Start, p.module.Start+evidence.Addr(min(int(size), len(code)))
		for at := low; at <= high; at++ {
			if to, ok := u.calledBefore(at); ok && !p.module.Contains(to) {
				t.Errorf("the call before %v leads to %v", at, to)
			}
		}
		function := &image.FunctionCode{Entry: low, Ranges: [][2]evidence.Addr{{low, high}}, TailCalls: debuginfo.TailCalls{Complete: true}}
		s := jumpSearch{unwinder: u, module: p.module, function: function, described: map[evidence.Addr]bool{}}
		s.scan(low, high)
		for _, j := range s.jumps {
			if j.after <= low || j.after > high || !p.module.Contains(j.to) {
				t.Errorf("jump %v in [%v, %v)", j, low, high)
			}
		}
	})
}
