package evidence_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

func TestContradicts(t *testing.T) {
	const start = "main t1\nt1 create t2\n"
	for name, c := range map[string]struct {
		log  string
		want evidence.ContradictionKind
		// found is the value, or the turn, that the later access found, left what the earlier one left.
		left, found uint64
	}{
		"agrees":                           {"t1 W x 0->1 @1\nt2 R x 1 @2\nt2 RW x 1->2 @3\nt1 R x 2 @4", "", 0, 0},
		"a read of before the write":       {"t1 W x 0->1 @1\nt2 R x 0 @2", evidence.ContradictedValue, 1, 0},
		"a write over another value":       {"t1 W x 0->1 @1\nt2 W x 0->2 @2", evidence.ContradictedValue, 1, 0},
		"another word":                     {"t1 W x+8 0->1 @1\nt2 R x 0 @2", "", 0, 0},
		"the first of several":             {"t1 W x 0->5 @1\nt2 R x 7 @2\nt2 R x 9 @3", evidence.ContradictedValue, 5, 7},
		"a variable that is not all seen":  {"untraced x it is too busy\nt1 W x 0->1 @1\nt2 R x 0 @2", "", 0, 0},
		"a copy of a call":                 {"t1 W x 0->1 @1 by call\nt2 R x 3 @2", "", 0, 0},
		"a change by nothing":              {"t1 W x 0->1 @1\nt2 changed x 1->3\nt2 R x 3 @2", evidence.ContradictedChange, 1, 3},
		"a change by nothing, later":       {"t1 W x 0->1 @1\nt1 event\nt2 event\nt2 changed x 1->3", evidence.ContradictedChange, 1, 3},
		"a first value that nothing wrote": {"t2 changed x 0->3", evidence.ContradictedChange, 0, 3},
		"a change by a call":               {"t1 W x 0->1 @1\nt2 reaches x\nt2 changed x 1->3\nt2 R x 3 @2", "", 0, 0},
		"a call of before":                 {"t2 reaches x\nt1 event\nt1 W x 0->1 @1\nt2 changed x 1->3", evidence.ContradictedChange, 1, 3},
		"a call elsewhere":                 {"t1 W x 0->1 @1\nt2 reaches y\nt2 changed x 1->3", evidence.ContradictedChange, 1, 3},
		"memory given back":                {"t1 W x 0->1 @1\nt2 changed x 1->0", "", 0, 0},
		"the same memory":                  {"alias y x+8\nt1 W x+8 0->1 @1\nt1 W y 0->1 @1\nt2 R y 1 @2\nt2 R x+8 1 @2", "", 0, 0},
		"the same memory in one section":   {"alias y x+8\nt1 W x+8 0->1 @1\nt1 W x+8 1->2 @1\nt1 W y 0->1 @1\nt1 W y 1->2 @1", "", 0, 0},
		"the same memory, in disagreement": {"alias y x+8\nt1 W x+8 0->1 @1\nt2 R y 0 @2", evidence.ContradictedOverlap, 1, 0},
		"a part of the same memory":        {"alias y x+12\nt1 W x+8 0->4294967296 @1\nt2 R y 0 @2", evidence.ContradictedOverlap, 1, 0},
		"memory that overlaps, in order":   {"alias y x+12\nt1 W x+8 0->4294967297 @1\nt1 W y 0->1 @1\nt2 R y 1 @2", "", 0, 0},
		"two threads in one turn":          {"turn 3\nt1 W x 0->1 @1\nturn 3\nt2 R x 1 @2", evidence.ContradictedTurn, 3, 3},
		"turns that go back":               {"turn 3\nt1 W x 0->1 @1\nturn 2\nt2 R x 1 @2", evidence.ContradictedTurn, 3, 2},
	} {
		log := accesslog.Log(start + c.log)
		got := log.Contradicts()
		switch {
		case got == nil && c.want == "":
		case got == nil || got.Kind != c.want || got.Left != c.left || got.Found != c.found:
			t.Errorf("%s: %+v, want %s of %d and %d", name, got, c.want, c.left, c.found)
		case got.Later.Thread == 0 || got.Limit().Worded().Text == "":
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Other processes may write to the memory.
	log := accesslog.Log(start + "t1 W x 0->1 @1\nt2 changed x 1->3")
	if log.Others = true; log.Contradicts() != nil {
		t.Error("a change that another process may have made")
	}
	// Positions that go back with the turns.
	log = accesslog.Log(start + "t1 W x 0->1 @1\nt1 event\nt2 R x 1 @2")
	if log.Accesses[1].Position = 1; log.Contradicts() == nil {
		t.Error("a later turn at an earlier position")
	}
	// An access whose turn is not known may be merged at another place of its position.
	log = accesslog.Log(start + "turn 3\nt1 W x 0->1 @1\nturn 2\nt2 R x 1 @2\nturn 4\nt1 R x 1 @3")
	if log.Contradicts() == nil {
		t.Error("turns that go back")
	}
	if log.Accesses[1].Turn = 0; log.Contradicts() != nil {
		t.Errorf("a turn that is not known: %+v", log.Contradicts())
	}
}
