package eventlog

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/agent"
)

func TestSummary(t *testing.T) {
	b := logBytes(t, sampleEvents())
	s, err := mustReadLog(t, b).Summarize()
	if err != nil {
		t.Fatal(err)
	}
	bytesOf := func(thread uint32) (n int64) {
		for _, e := range sampleEvents() {
			if e.Thread == thread {
				b, _ := e.Encode(nil)
				n += int64(len(b))
			}
		}
		return n
	}
	want := []ThreadSummary{
		{Index: 1, TID: 4711, Events: 6, Bytes: bytesOf(1), Ended: true},
		{Index: 2, Parent: 1, TID: 4712, Events: 7, Bytes: bytesOf(2), Skipped: 7, Ended: true},
	}
	if d := cmp.Diff(want, s.Threads); d != "" {
		t.Error(d)
	}
	if s.Events != 13 || s.Kinds[0].Kind != KindSyscall || s.Kinds[0].Events != 3 || len(s.Calls) != 3 || s.Calls[2].Number != 202 ||
		s.Calls[2].Errors != 1 {
		t.Errorf("%+v", s)
	}
	if len(s.Limits) != 1 || s.Limits[0] != (Limit{Kind: "syscall", Text: "bpf\n\xff", Thread: 2, Ordinal: 6}) {
		t.Errorf("limits %+v", s.Limits)
	}
	// After a broken event of one thread the other threads still count.
	events, _ := collect(mustReadLog(t, b).Ordered())
	b[events[1].Offset] = 3
	s, err = mustReadLog(t, b).Summarize()
	if err != nil || s.Events != 1+7 || s.Threads[0].Err == nil || s.Threads[1].Err != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSchedule(t *testing.T) {
	l := mustReadLog(t, logBytes(t, sampleEvents()))
	s, err := l.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Schedule{{1, 3}, {2, 2}, {1, 2}, {2, 5}, {1, 1}}); !slices.Equal(s, want) {
		t.Errorf("%v, want %v", s, want)
	}
	again, err := ParseSchedule("# made by hand\n" + s.String())
	if err != nil || !slices.Equal(s, again) {
		t.Errorf("%v, %v", again, err)
	}
	for _, bad := range []string{"1", "0 1", "1 0", "1 2 3", "65536 1", "1 4294967296", "x 1"} {
		if _, err := ParseSchedule(bad); err == nil {
			t.Errorf("%q is a schedule", bad)
		}
	}
}

// A replayed process finds in the image what the log holds.
// TestCommon: two schedules share a beginning however it is cut into turns.
func TestCommon(t *testing.T) {
	for _, x := range []struct {
		a, b Schedule
		want map[uint32]uint64
	}{
		{nil, Schedule{{1, 3}}, map[uint32]uint64{}},
		{Schedule{{1, 3}, {2, 1}}, Schedule{{1, 3}, {2, 1}}, map[uint32]uint64{1: 3, 2: 1}},
		{Schedule{{1, 3}, {2, 4}}, Schedule{{1, 2}, {1, 1}, {2, 1}, {3, 1}}, map[uint32]uint64{1: 3, 2: 1}},
		{Schedule{{1, 3}, {2, 4}}, Schedule{{1, 2}, {2, 4}}, map[uint32]uint64{1: 2}},
		{Schedule{{1, 0}, {2, 4}}, Schedule{{2, 4}}, map[uint32]uint64{}},
		{Schedule{{1, 1}}, Schedule{{2, 1}}, map[uint32]uint64{}},
	} {
		for range 2 {
			if got := x.a.Common(x.b); !maps.Equal(got, x.want) {
				t.Errorf("%v and %v: %v, want %v", x.a, x.b, got, x.want)
			}
			x.a, x.b = x.b, x.a
		}
	}
}

func TestImage(t *testing.T) {
	l := mustReadLog(t, logBytes(t, sampleEvents()))
	s, _ := l.Schedule()
	f := new(memoryFile)
	image, err := l.WriteImage(f, s, ImageOptions{Skipped: map[uint32]uint64{2: 5}})
	if err != nil {
		t.Fatal(err)
	}
	word := func(at uint64) uint64 { return binary.LittleEndian.Uint64(f.b[at:]) }
	offset := func(addr uint64) uint64 { return addr - agent.EngineImage }
	if word(0) != agent.RecordMagic || word(8) != agent.RecordVersion|3<<32 || word(48) != uint64(len(f.b)) || image.Size != int64(len(f.b)) {
		t.Errorf("header % x, %d bytes", f.b[:56], len(f.b))
	}
	table, runs := offset(word(16)), offset(word(24))
	if word(32) != uint64(len(s)) || word(40) != 13 {
		t.Errorf("%d runs, %d events", word(32), word(40))
	}
	for i, r := range s {
		if word(runs+uint64(i)*8) != uint64(r.Thread)|uint64(r.Events)<<32 {
			t.Errorf("run %d is %#x, want %v", i, word(runs+uint64(i)*8), r)
		}
	}
	for thread, skipped := range map[uint64]uint64{1: ^uint64(0), 2: 5} {
		at := table + thread*32
		if word(at+16) != skipped {
			t.Errorf("thread %d: skipped %d", thread, word(at+16))
		}
		b := f.b[offset(word(at)):offset(word(at+8))]
		if word(at)%8 != 0 || uint64(image.Threads[uint32(thread)].Start) != word(at) {
			t.Errorf("thread %d begins at %#x", thread, word(at))
		}
		for e := range l.Events(uint32(thread)) {
			got, n, err := DecodeEvent(b)
			if err != nil {
				t.Fatal(err)
			}
			b = b[n:]
			got.Thread = uint32(thread)
			if d := cmp.Diff(bare([]Event{*e}), bare([]Event{*got})); d != "" {
				t.Error(d)
			}
		}
		if len(b) != 0 {
			t.Errorf("thread %d: %d bytes more", thread, len(b))
		}
	}
	if _, err := l.WriteImage(new(memoryFile), append(s, Turn{2, 1}), ImageOptions{}); err == nil || !strings.Contains(err.Error(), "8 events of thread 2, the log 7") {
		t.Errorf("a schedule that is too long: %v", err)
	}
}

// TestImageLayout: the sizes are those of the structs.
func TestImageLayout(t *testing.T) {
	var header agent.RawReplayHeader
	var thread agent.RawReplayThread
	var run agent.RawRun
	var event agent.RawEvent
	var payload agent.RawPayload
	var extent agent.RawExtent
	var mapped agent.RawMapped
	for _, x := range []struct {
		name      string
		got, want int
	}{
		{"image", imageHeaderSize, sizeOf(header)}, {"thread", imageThreadSize, sizeOf(thread)}, {"run", runSize, sizeOf(run)},
		{"event", eventHeaderSize, sizeOf(event)}, {"payload", payloadHeader, sizeOf(payload)}, {"extent", extentHeaderSize, sizeOf(extent)},
		{"mapped", MappedSize, sizeOf(mapped)}, {"log", logHeaderSize, sizeOf(agent.RawLogHeader{})},
	} {
		if x.got != x.want {
			t.Errorf("%s has %d bytes, want %d", x.name, x.got, x.want)
		}
	}
}

func sizeOf[T any](v T) int { return binary.Size(v) }

func FuzzSchedule(f *testing.F) {
	f.Add("1 3\n2 2 # and more\n\n1 4294967295\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			return
		}
		again, err := ParseSchedule(s.String())
		if err != nil || !slices.Equal(s, again) {
			t.Errorf("%v became %v, %v", s, again, err)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var decoded Schedule
		if err := json.Unmarshal(b, &decoded); err != nil || !slices.Equal(s, decoded) {
			t.Errorf("%s became %v, %v", b, decoded, err)
		}
	})
}
