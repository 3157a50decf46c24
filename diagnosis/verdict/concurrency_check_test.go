package verdict

import (
	"testing"

	"diagnose/evidence"
)

// An order is not proved where a smaller change contradicts it, nor where one that leaves the failure was not seen to have another order.
func TestSmallerChanges(t *testing.T) {
	for _, test := range []struct {
		name                       string
		kept                       bool
		failed                     int
		undecided                  string
		wantLoose, wantUnconfirmed bool
	}{
		{"the other order, and the failure is gone", false, 0, "", false, false},
		{"the other order, and the failure stays", false, 1, "", true, false},
		{"the recorded order, and the failure stays", true, 1, "", false, false},
		{"the recorded order, and the failure is gone", true, 0, "", true, false},
		{"the order is not seen to be another, and the failure stays", false, 1, notSeenToBeOther, false, true},
		{"the order is not seen to be another, and the failure is gone", false, 0, keptAllTheSame, false, false},
		{"the order is not seen, and the failure is gone", true, 0, notSeenAsRecorded, false, false},
	} {
		tested := &tested{}
		tested.addCheck(order{kept: test.kept}, evidence.Experiment{Runs: 1, Failed: test.failed, Undecided: test.undecided})
		if tested.loose != test.wantLoose || tested.unconfirmed != test.wantUnconfirmed {
			t.Errorf("%s: loose %v, unconfirmed %v", test.name, tested.loose, tested.unconfirmed)
		}
	}
}
