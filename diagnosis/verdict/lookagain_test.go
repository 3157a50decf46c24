package verdict

import (
	"testing"

	"diagnose/evidence"
)

// relayed is a log in which one instruction stores the same value in two words, and twice in
// the second one.
func relayed() *evidence.AccessLog {
	log := &evidence.AccessLog{Variables: []evidence.Watched{{Address: 0x1000}, {Address: 0x2000}}}
	for i, variable := range []int32{0, 1, 1} {
		log.Accesses = append(log.Accesses, evidence.Access{Position: 3, Ordinal: 2, PC: 0x401000, Thread: 1, Size: 8,
			Kind: evidence.CodeWrite, Variable: variable, Hit: uint64(i)})
	}
	return log
}

// A store is found again in another pass by its word, and by how many were the same before.
func TestIndexIn(t *testing.T) {
	log, other := relayed(), relayed()
	other.Variables[0], other.Variables[1] = other.Variables[1], other.Variables[0]
	for i := range other.Accesses {
		other.Accesses[i].Variable = 1 - other.Accesses[i].Variable
		other.Accesses[i].Hit += 7
	}
	for i := range log.Accesses {
		l := link{log: log, access: log.Accesses[i]}
		if got := l.indexIn(other); got != i {
			t.Errorf("store %d is %d in the other log", i, got)
		}
	}
	l := link{log: log, access: log.Accesses[2]}
	other.Accesses = other.Accesses[:2]
	if got := l.indexIn(other); got != -1 {
		t.Errorf("a store that is not in the other log is %d there", got)
	}
}

// Of the stores that a second look sees only those of the program contradict that there was
// none, if they are of the victim's life and not known to be later than the read.
func TestStoredSince(t *testing.T) {
	v := victim{start: 0x1000, size: 8}
	had := &evidence.Access{Position: 5}
	for name, test := range map[string]struct {
		access          evidence.Access
		begin           int
		had             *evidence.Access
		stored, earlier bool
	}{
		"store":            {evidence.Access{Kind: evidence.CodeWrite, Position: 4, Size: 8}, -1, had, true, true},
		"read":             {evidence.Access{Kind: evidence.CodeRead, Position: 4, Size: 8}, -1, had, false, false},
		"of the heap":      {evidence.Access{Kind: evidence.CodeWrite, By: evidence.ByHeap, Size: 8}, -1, had, false, false},
		"of another word":  {evidence.Access{Kind: evidence.CodeWrite, Variable: 1, Size: 8}, -1, had, false, false},
		"before its life":  {evidence.Access{Kind: evidence.CodeWrite, Size: 8}, 0, had, false, false},
		"after the read":   {evidence.Access{Kind: evidence.CodeWrite, Position: 6, Size: 8}, -1, had, false, false},
		"read not known":   {evidence.Access{Kind: evidence.CodeWrite, Position: 6, Size: 8}, -1, nil, true, true},
		"not told apart":   {evidence.Access{Kind: evidence.CodeWrite, Position: 5, Size: 8}, -1, had, true, false},
		"by a system call": {evidence.Access{Kind: evidence.CodeWrite, By: evidence.ByCall, Size: 8}, -1, had, true, true},
	} {
		log := &evidence.AccessLog{Variables: []evidence.Watched{{Address: 0x1000}, {Address: 0x2000}}, Accesses: []evidence.Access{test.access}}
		c := chain{had: test.had}
		if stored, earlier := c.storedSince(&v, &secondLook{log: log, begin: test.begin}); stored != test.stored || earlier != test.earlier {
			t.Errorf("%s: %v and %v, want %v and %v", name, stored, earlier, test.stored, test.earlier)
		}
	}
}
