package explore

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// Candidates for each pair of instructions come in turn.
func TestVaried(t *testing.T) {
	a, b := racePlace{first: 1}, racePlace{first: 2}
	var words []evidence.Addr
	for _, c := range varied([]candidate{{race: a, word: 1}, {race: a, word: 2}, {race: a, word: 3}, {race: b, word: 4}, {race: b, word: 5}}) {
		words = append(words, c.word)
	}
	if want := []evidence.Addr{1, 4, 2, 5, 3}; !slices.Equal(words, want) {
		t.Errorf("%v, want %v", words, want)
	}
}

// A preemption that is inserted comes before all of those that last as long, and leaves them.
func TestInserted(t *testing.T) {
	at := func(thread uint32, pc evidence.Addr, until uint64) eventlog.Preemption {
		return eventlog.Preemption{Thread: thread, Ordinal: 4, Class: eventlog.PointPC, PC: pc, Count: 1, Until: until}
	}
	p := plan{list: []eventlog.Preemption{at(1, 0x10, 5), at(3, 0x30, 9), at(2, 0x20, 9)}}
	list := inserted(p, &trace{accesses: []replay.Stepped{
		{Thread: 2, Ordinal: 4, PC: 0x18, Count: 7, Addr: 0x1004},
		{Thread: 2, Ordinal: 4, PC: 0x18, Count: 8, Behind: 1}, // after the thread's preemption
		{Thread: 2, Ordinal: 5, PC: 0x18, Count: 1},            // in a step that has none
		{Thread: 2, Ordinal: 4, PC: 0x18},                      // too many arrivals
	}})
	if len(list) != 1 || list[0].word != 0x1000 {
		t.Fatalf("%+v", list)
	}
	want := []eventlog.Preemption{at(1, 0x10, 5), at(2, 0x18, 9), at(3, 0x30, 9), at(2, 0x20, 9)}
	want[1].Count = 7
	if !slices.Equal(list[0].plan.list, want) {
		t.Errorf("%v, want %v", list[0].plan.list, want)
	}
	if len(p.list) != 3 {
		t.Errorf("the plan is now %v", p.list)
	}
}

// Of two states the one with fewer places, fewer bytes, or a number less far from the recorded one is
// closer.
func TestCloser(t *testing.T) {
	of := func(bytes, apart uint64) *unlike {
		return unlikeOf(&replay.Comparison{Ranges: 1, Bytes: bytes, Differences: []replay.Difference{{Addr: 0x1000, Size: bytes, Order: 1, Apart: apart}}})
	}
	order := []*unlike{nil, of(1, 200), of(2, 300), of(2, 900)}
	for i := range order {
		for j := range order {
			if got := order[i].closer(order[j]); got != (i < j) {
				t.Errorf("%+v is closer than %+v: %v", order[i], order[j], got)
			}
		}
	}
}
