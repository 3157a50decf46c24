package evidence_test

import (
	"fmt"

	"diagnose/evidence"
)

// A cause is proved only by an experiment that changed what the cause names, and after which the
// failing check came out the other way.
func ExampleCause_Prove() {
	claim := evidence.Event{Thing: "limit", At: evidence.Moment{Thread: 1, Ordinal: 4, PC: 0x401000, Count: 2}}
	again := evidence.Experiment{What: "the recorded run again", Failed: 3, Runs: 3, Expect: true, Control: true}
	skipped := evidence.Experiment{What: "the store skipped", Runs: 3, Change: &claim}
	cause := evidence.Cause{Kind: evidence.CauseBadValue, Proof: evidence.Replayed, Experiments: []evidence.Experiment{again, skipped}}
	fmt.Println(cause.Prove(claim))

	cause.Experiments[1].Check = &evidence.FailingCheck{Place: 0x401100, Recorded: 1, Arrivals: 1, Again: 1, After: evidence.CheckedValue{Good: true}}
	fmt.Println(cause.Prove(claim), cause.Proof)
	// Output:
	// evidence: not proved: it is required that the failing check was evaluated again, and came out the other way
	// <nil> proved
}
