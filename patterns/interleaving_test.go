package patterns

import "diagnose/evidence"

const (
	counterFails = `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 R n 0 @10
t3 event
t3 R n 0 @10
t3 W n 0->1 @11
t2 event
t2 W n 0->1 @11
t1 join t2
t1 join t3
t1 R n 1 @30
`
	counterPasses = `main t1
t1 create t2 worker
t1 create t3 worker
t2 R n 0 @10
t2 event
t2 W n 0->1 @11
t3 event
t3 R n 1 @10
t3 W n 1->2 @11
t1 join t2
t1 join t3
t1 R n 2 @30
`
)

// interleavings are patterns of three.
var interleavings = []testCase{{
	name: "lost update", fails: counterFails, passes: counterPasses,
	pattern: evidence.PatternRWW, variables: "n", lines: "10 11 11", instead: "not interleaved",
	twin: `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 lock L
t2 R n 0 @10
t2 W n 0->1 @11
t2 unlock L
t3 lock L
t3 R n 1 @10
t3 W n 1->2 @11
t3 unlock L
t1 join t2
t1 join t3
t1 R n 2 @30
`, failed: 1,
}, {
	name: "check then act under one lock twice",
	fails: `run failed
main t1
t1 create t2 payer
t1 create t3 payer
t2 lock L
t2 R balance 100 @10
t2 unlock L
t3 lock L
t3 R balance 100 @10
t3 unlock L
t3 lock L
t3 W balance 100->0 @14
t3 unlock L
t2 lock L
t2 R balance 0 @13
t2 W balance 0->18446744073709551516 @14
t2 unlock L
t2 R balance 18446744073709551516 @15
`,
	passes: `main t1
t1 create t2 payer
t1 create t3 payer
t2 lock L
t2 R balance 100 @10
t2 unlock L
t2 lock L
t2 R balance 100 @13
t2 W balance 100->0 @14
t2 unlock L
t3 lock L
t3 R balance 0 @10
t3 unlock L
`,
	pattern: evidence.PatternRWR, variables: "balance", lines: "10 14 13", missing: "L", instead: "payer at a.c:10 and payer at a.c:13 are not interleaved", failed: 2,
	twin: `run failed
main t1
t1 create t2 payer
t1 create t3 payer
t2 lock L
t2 R balance 100 @10
t2 R balance 100 @13
t2 W balance 100->0 @14
t2 unlock L
t3 lock L
t3 R balance 0 @10
t3 unlock L
`,
}, {
	name: "value set and looked at",
	fails: `run failed
main t1
t1 create t2 other
t1 W user 0->1 @5
t1 event
t2 W user 1->2 @20
t1 event
t1 R user 2 @7
`,
	passes: `main t1
t1 create t2 other
t2 W user 0->2 @20
t1 W user 2->1 @5
t1 event
t1 R user 1 @7
`,
	pattern: evidence.PatternWWR, variables: "user", lines: "5 20 7", failed: 1,
	twin: `run failed
main t1
t1 W user 0->1 @5
t1 R user 1 @7
t1 create t2 other
t2 W user 1->2 @20
`,
}, {
	name: "intermediate value seen",
	fails: `run failed
main t1
t1 create t2 reader
t1 W head 0->16 @5
t1 event
t2 R head 16 @20
t1 event
t1 W head 16->0 @7
`,
	passes: `main t1
t1 create t2 reader
t1 W head 0->16 @5
t1 event
t1 W head 16->0 @7
t2 R head 0 @20
`,
	pattern: evidence.PatternWRW, variables: "head", lines: "5 20 7", failed: 2,
	twin: `run failed
main t1
t1 create t2 reader
t1 lock L
t1 W head 0->16 @5
t1 W head 16->0 @7
t1 unlock L
t2 lock L
t2 R head 0 @20
t2 unlock L
`,
}, {
	name: "handler between two looks",
	fails: `run failed
main t1
t1 R cols 120 @10
t1 event
t1 signal 28
t1 W cols 120->64 @40
t1 return
t1 R cols 64 @12
`,
	passes: `main t1
t1 R cols 120 @10
t1 event
t1 R cols 120 @12
t1 signal 28
t1 W cols 120->64 @40
t1 return
`,
	pattern: evidence.PatternRWR, variables: "cols", lines: "10 40 12", instead: "comes after both", failed: 1,
	twin: `run failed
main t1
t1 event
t1 R cols 120 @10
t1 R cols 120 @12
t1 signal 28
t1 W cols 120->64 @40
t1 return
t1 R cols 64 @10
t1 R cols 64 @12
`, twinPasses: `main t1
t1 R cols 120 @10
t1 R cols 120 @12
t1 signal 28
t1 W cols 120->64 @40
t1 return
t1 R cols 64 @10
t1 R cols 64 @12
`,
}, {
	name: "ABA",
	fails: `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 R head 16 @10
t2 event
t3 R head 16 @10
t3 RW head 16->32 @12
t3 event
t3 W head 32->48 @20
t3 event
t3 W head 48->16 @21
t3 event
t2 RW head 16->32 @12
t2 R head 32 @14
`,
	passes: `main t1
t1 create t2 worker
t1 create t3 worker
t2 R head 16 @10
t2 event
t2 RW head 16->32 @12
t2 R head 32 @14
t3 event
t3 R head 32 @10
t3 RW head 32->48 @12
t3 event
t3 W head 48->64 @20
t3 event
t3 W head 64->16 @21
`,
	pattern: evidence.PatternRWR, variables: "head", lines: "10 21 12", failed: 2,
	twin: `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 lock L
t2 R head 16 @10
t2 RW head 16->32 @12
t2 unlock L
t3 lock L
t3 R head 32 @10
t3 RW head 32->48 @12
t3 unlock L
`,
}, {
	name: "wrong lock",
	fails: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L
t2 R n 0 @10
t2 event
t3 W n 0->5 @20
t2 event
t2 W n 0->1 @11
t2 unlock L
t1 R n 1 @30
`,
	passes: `main t1
t1 create t2 a
t1 create t3 b
t2 lock L
t2 R n 0 @10
t2 event
t2 W n 0->1 @11
t2 unlock L
t3 W n 1->5 @20
t1 R n 5 @30
`,
	pattern: evidence.PatternRWW, variables: "n", lines: "10 20 11", missing: "L", failed: 1,
	twin: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L
t2 R n 0 @10
t2 W n 0->1 @11
t2 unlock L
t3 lock L
t3 W n 1->5 @20
t3 unlock L
t1 join t2
t1 join t3
t1 R n 5 @30
`,
}}
