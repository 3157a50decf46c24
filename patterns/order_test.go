package patterns

import "diagnose/evidence"

// orders are patterns of two.
var orders = []testCase{{
	name: "used after its destruction",
	fails: `run failed
main t1
t1 W fifo 0->4096 @3
t1 create t2 consumer
t2 R fifo 4096 @21
t2 event
t2 R fifo 4096 @20
t1 W fifo 4096->0 @9
t2 event
t2 R fifo 0 @20
`,
	passes: `main t1
t1 W fifo 0->4096 @3
t1 create t2 consumer
t2 R fifo 4096 @20
t2 event
t2 R fifo 4096 @21
t2 event
t2 R fifo 4096 @20
t1 W fifo 4096->0 @9
`,
	pattern: evidence.PatternWR, variables: "fifo", lines: "9 20", instead: "comes before", failed: 2,
	twin: `run failed
main t1
t1 W fifo 0->4096 @3
t1 create t2 consumer
t2 R fifo 4096 @20
t2 event
t2 R fifo 4096 @20
t1 join t2
t1 W fifo 4096->0 @9
`,
}, {
	name: "used before it is there",
	fails: `run failed
main t1
t1 create t2 worker
t2 R handle 0 @20
`,
	passes: `main t1
t1 create t2 worker
t1 W handle 0->7 @5
t2 R handle 7 @20
`,
	pattern: evidence.PatternRW, variables: "handle", lines: "20", instead: "main at a.c:5 comes before worker at a.c:20", failed: 2,
	twin: `run failed
main t1
t1 W handle 0->7 @5
t1 create t2 worker
t2 R handle 7 @20
`,
}, {
	name: "written over too early",
	fails: `run failed
main t1
t1 create t2 callback
t2 W state 0->2 @20
t1 W state 2->1 @5
t1 R state 1 @9
`,
	passes: `main t1
t1 create t2 callback
t1 W state 0->1 @5
t2 W state 1->2 @20
t1 R state 2 @9
`,
	pattern: evidence.PatternWW, variables: "state", lines: "20 5", instead: "comes before", failed: 1,
	twin: `run failed
main t1
t1 W state 0->1 @5
t1 create t2 callback
t2 W state 1->2 @20
t1 join t2
t1 R state 2 @9
`,
}, {
	name: "handler ends the run before the write",
	fails: `run failed
main t1
t1 R lines 0 @10
t1 signal 1
t1 R lines 0 @40
t1 W lines 0->0 @41
`,
	passes: `main t1
t1 R lines 0 @10
t1 W lines 0->1 @11
t1 signal 1
t1 R lines 1 @40
t1 W lines 1->0 @41
`,
	pattern: evidence.PatternRW, variables: "lines", lines: "40", instead: "comes before", failed: 1,
	twin: `run failed
main t1
t1 R lines 0 @10
t1 W lines 0->1 @11
t1 signal 1
t1 R lines 1 @40
t1 W lines 1->0 @41
t1 return
`,
}}
