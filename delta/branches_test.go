package delta

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// taking is a run that took these ways.
func taking(ways ...Way) *Branches {
	b := NewBranches()
	for _, w := range ways {
		b.Add(w, []uint64{uint64(w.Next)})
	}
	return b
}

func wayOf(pc, caller, next evidence.Addr) Way {
	return Way{Branch{PC: pc, Caller: caller}, next}
}

func TestSeparate(t *testing.T) {
	common, rare := wayOf(1, 100, 11), wayOf(2, 100, 21)
	fromHere, unreached := wayOf(3, 100, 31), wayOf(4, 100, 41)
	ways := []Way{common, unreached, fromHere, rare, rare}
	passing := []*Branches{
		taking(common, wayOf(2, 100, 22), wayOf(3, 100, 32), wayOf(3, 200, 31)), // from another caller it goes the failing run's way
		taking(common, wayOf(2, 100, 22), wayOf(3, 100, 32)),
	}
	list := Separate(ways, []*Branches{taking(ways...)}, passing)
	if len(list) != 2 || list[0].Index != 2 || list[1].Index != 3 {
		t.Fatalf("%+v", list)
	}
	if s := list[0]; s.Way != fromHere || s.Score() != 1 || s.Passing != 0 || s.Reached != 2 || s.FailingOf != 1 || s.PassingOf != 2 {
		t.Errorf("only from one caller: %+v", s)
	}
	if s := list[1]; s.Way != (Way{rare.anywhere(), rare.Next}) || s.Score() != 1 || !slices.EqualFunc(s.Values, [][]uint64{{22}}, slices.Equal) {
		t.Errorf("from any caller: %+v", s)
	}
}

func TestSeparateRanks(t *testing.T) {
	sometimes, never := wayOf(1, 0, 11), wayOf(2, 0, 21)
	other := []Way{wayOf(1, 0, 12), wayOf(2, 0, 22)}
	failing := []*Branches{taking(sometimes, never), taking(append(other, never)...)}
	passing := []*Branches{taking(append(other, sometimes)...), taking(other...), taking(other...)}
	list := Separate([]Way{sometimes, never}, failing, passing)
	if len(list) != 2 || list[0].Way != never || list[0].Score() != 1 || list[0].Failing != 2 {
		t.Fatalf("%+v", list)
	}
	if s := list[1]; s.Failing != 1 || s.Passing != 1 || s.Score() != (0.5+1-1.0/3)/2 {
		t.Errorf("%+v, %v", s, s.Score())
	}
	if list := Separate([]Way{sometimes}, failing[:1], []*Branches{taking(sometimes)}); len(list) > 0 {
		t.Errorf("the only way is told: %+v", list)
	}
}

func TestBranchValues(t *testing.T) {
	b := NewBranches()
	w := wayOf(1, 2, 3)
	for v := range uint64(100) {
		b.Add(w, []uint64{v % 20})
	}
	b.Add(w, nil)
	if n := len(b.values[w.Branch]); n != fewValues {
		t.Errorf("%d values are kept", n)
	}
}
