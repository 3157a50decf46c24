package patterns_test

import (
	"fmt"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
	"diagnose/patterns"
)

// The order of accesses that the failing run has and the passing run lacks: another thread
// writes between a thread's read and its write.
func ExampleFind() {
	failing := accesslog.Log(`
run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 R count 0 @10
t3 R count 0 @10
t3 W count 0->1 @11
t2 W count 1->1 @11
t1 join t2
t1 join t3
t1 R count 1 @30
`)
	passing := accesslog.Log(`
main t1
t1 create t2 worker
t1 create t3 worker
t2 R count 0 @10
t2 W count 0->1 @11
t3 R count 1 @10
t3 W count 1->2 @11
t1 join t2
t1 join t3
t1 R count 2 @30
`)
	runs, err := delta.Align([]*evidence.AccessLog{failing}, []*evidence.AccessLog{passing})
	if err != nil {
		panic(err)
	}
	first := patterns.Find(delta.Compare(runs), patterns.Options{}).Candidates[0]
	fmt.Println(first.Pattern, first.Variables)
	fmt.Printf("in %d of %d failing runs, in %d of %d passing runs\n", first.FailingRuns, first.FailingOf, first.PassingRuns, first.PassingOf)
	// Output:
	// RWW [count]
	// in 1 of 1 failing runs, in 0 of 1 passing runs
}
