package verdict

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// What lies in a frame's place belongs to it from its call to the next one there.
func TestOfFrames(t *testing.T) {
	const slot, variable, global, returns = 0, 1, 2, 0x5555
	own, other := uint32(1), uint32(2)
	s := &stackVariables{process: &image.Process{}, places: map[string]stackPlace{}}
	place := stackPlace{thread: own, function: "main", slot: "main's return address", returns: returns}
	s.places["main's return address"], s.places["main's sum"] = place, place
	access := func(v int32, thread uint32, ordinal, position, value uint64) evidence.Access {
		return evidence.Access{Variable: v, Thread: thread, Ordinal: ordinal, Position: position, New: value}
	}
	variables := []evidence.Watched{slot: {Name: "main's return address"}, variable: {Name: "main's sum"}, global: {Name: "sum"}}
	accesses := []evidence.Access{
		access(slot, own, 1, 1, 7),
		access(variable, own, 1, 1, 1), // before the call
		access(variable, other, 1, 2, 2),
		access(global, own, 1, 2, 3),
		access(slot, own, 3, 3, returns),
		access(variable, own, 3, 3, 4), // perhaps before it
		access(variable, own, 4, 4, 5),
		access(variable, other, 2, 5, 6),
		access(slot, own, 6, 6, 8),
		access(variable, own, 7, 7, 9), // when main has returned
		access(variable, other, 3, 8, 10),
	}
	kept := func(list []evidence.Access) (values []uint64) {
		log := &evidence.AccessLog{Variables: variables, Accesses: list}
		s.ofFrames(log)
		for _, a := range log.Accesses {
			values = append(values, a.New)
		}
		return values
	}
	for _, x := range []struct {
		what string
		list []evidence.Access
		want []uint64
	}{
		{"a frame that was left", accesses, []uint64{3, 5, 6}},
		{"a frame that is there at the end", accesses[:8], []uint64{3, 5, 6}},
		{"a call that was not seen", append(accesses[:4:4], accesses[5:8]...), []uint64{3}},
	} {
		if got := kept(x.list); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v are left, not %v", x.what, got, x.want)
		}
	}
}

func TestMovedBy(t *testing.T) {
	there := []outermostFrame{{thread: 1, function: "main"}, {thread: 3, function: "work(int)"}}
	there[0].frame.CFA, there[1].frame.CFA = 0x7ffe010, 0x5000
	for _, x := range []struct {
		place stackPlace
		by    evidence.Addr
		fails bool
	}{
		{place: stackPlace{thread: 1, function: "main", cfa: 0x7ffe000, moves: true}, by: 0x10},
		{place: stackPlace{thread: 1, function: "main", cfa: 0x7ffe000}, fails: true},
		{place: stackPlace{thread: 1, function: "main", cfa: 0x7ffdfd0}, by: 0x40},
		{place: stackPlace{thread: 2, function: "work(int)", cfa: 0x5000, moves: true}, fails: true},
		{place: stackPlace{thread: 3, function: "rest(int)", cfa: 0x5000, moves: true}, fails: true},
	} {
		by, err := x.place.movedBy(there)
		if (err != nil) != x.fails || by != x.by {
			t.Errorf("%+v: %v, %v", x.place, by, err)
		}
	}
}

// A frame begins on its own stack, also when a signal handler runs on one at higher addresses.
func TestLowestOf(t *testing.T) {
	frames := func(pointers ...uint64) []unwind.Frame {
		list := make([]unwind.Frame, len(pointers))
		for i, sp := range pointers {
			list[i].Registers.Set(image.RSP, sp)
		}
		return list
	}
	for _, x := range []struct {
		frames []unwind.Frame
		want   evidence.Addr
	}{
		{frames(0x7000, 0x7040, 0x7080), 0x7000},
		{frames(0x9000, 0x9040, 0x7000, 0x7080), 0x7000},
		{frames(0x9000), 0x9000},
	} {
		if low := lowestOf(x.frames); low != x.want {
			t.Errorf("the lowest is %v, not %v", low, x.want)
		}
	}
}
