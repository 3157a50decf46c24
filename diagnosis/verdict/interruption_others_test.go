package verdict

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// A handler that writes two variables moves the orders of both; what is accessed where
// the signal is not moved over does not count.
func TestMovedIn(t *testing.T) {
	const alarm, user = 14, 10
	log := &evidence.AccessLog{Variables: []evidence.Watched{{Name: "events"}, {Name: "config"}, {Name: "mine"}}}
	add := func(variable int32, handler uint8, kind evidence.AccessCode) {
		log.Accesses = append(log.Accesses, evidence.Access{Variable: variable, Handler: handler, Kind: kind})
	}
	add(0, 0, evidence.CodeRead)         // 0
	add(2, 0, evidence.CodeWrite)        // 1: no handler's
	add(0, alarm, evidence.CodeWrite)    // 2
	add(1, alarm, evidence.CodeWrite)    // 3
	add(0, 0, evidence.CodeWrite)        // 4
	add(1, 0, evidence.CodeRead)         // 5
	add(0, user, evidence.CodeReadWrite) // 6
	for name, x := range map[string]struct {
		order []int
		want  []string
	}{
		"between two accesses":    {[]int{0, 2, 4}, nil},
		"config is read after it": {[]int{0, 2}, []string{"config"}},
		"the other handler":       {[]int{4, 6}, nil},
		"not in this run":         {nil, nil},
	} {
		if x.want == nil {
			x.want = []string{}
		}
		if got := movedIn(log, x.order); !slices.Equal(append([]string{}, got...), x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
