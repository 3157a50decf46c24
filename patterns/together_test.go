package patterns

import "diagnose/evidence"

// pairs are of two variables that belong together.
var pairs = []testCase{{
	name: "stale length",
	fails: `run failed
main t1
t1 create t2 reader
t1 W bytes 0->4096 @5
t1 event
t2 event
t2 R bytes 4096 @20
t2 R length 3 @21
t1 event
t1 W length 3->5 @6
`,
	passes: `main t1
t1 create t2 reader
t1 W bytes 0->4096 @5
t1 event
t1 W length 3->5 @6
t2 event
t2 R bytes 4096 @20
t2 R length 5 @21
`,
	pattern: evidence.PatternPair, variables: "bytes length", lines: "5 20 21 6", instead: "not interleaved", failed: 2,
	twin: `run failed
main t1
t1 create t2 reader
t1 lock L
t1 W bytes 0->4096 @5
t1 event
t1 W length 3->5 @6
t1 unlock L
t2 lock L
t2 R bytes 4096 @20
t2 R length 5 @21
t2 unlock L
`,
}, {
	name: "published before it is whole",
	fails: `run failed
main t1
t1 create t2 reader
t1 W list 0->4096 @5
t1 event
t2 R list 4096 @20
t2 R probe 0 @21
t1 event
t1 W probe 0->7 @6
`,
	passes: `main t1
t1 create t2 reader
t1 W list 0->4096 @5
t1 W probe 0->7 @6
t2 R list 4096 @20
t2 R probe 7 @21
`,
	pattern: evidence.PatternRW, variables: "probe", lines: "21 6", instead: "comes before", failed: 2,
	twin: `run failed
main t1
t1 create t2 reader
t1 lock L
t1 W probe 0->7 @6
t1 W list 0->4096 @5
t1 unlock L
t2 lock L
t2 R list 4096 @20
t2 R probe 7 @21
t2 unlock L
`,
}}

// lockOrders are rings of locks.
var lockOrders = []testCase{{
	name: "lock order",
	fails: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L @10
t3 lock M @20
t2 waits M @11
t3 waits L @21
`,
	passes: `main t1
t1 create t2 a
t1 create t3 b
t2 lock L @10
t2 lock M @11
t2 unlock M
t2 unlock L
t3 lock M @20
t3 lock L @21
`,
	pattern: evidence.PatternLockOrder, variables: "L M", instead: "never there at the same time",
	twin: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L @10
t2 lock M @11
t2 unlock M
t2 unlock L
t3 lock L @20
t3 lock M @21
`,
}}
