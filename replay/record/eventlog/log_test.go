package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/evidence"
)

// memoryFile is a file in memory.
type memoryFile struct{ b []byte }

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) {
	if end := at + int64(len(p)); end > int64(len(f.b)) {
		f.b = append(f.b, make([]byte, end-int64(len(f.b)))...)
	}
	return copy(f.b[at:], p), nil
}

func each(list []Event) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	}
}

// logBytes writes a log of the events.
func logBytes(t testing.TB, list []Event) []byte {
	t.Helper()
	f := new(memoryFile)
	if err := WriteLog(f, 4711, each(list)); err != nil {
		t.Fatal(err)
	}
	return f.b
}

func readLog(b []byte) (*Log, error) {
	return ReadLog(context.Background(), "log", bytes.NewReader(b), int64(len(b)), 0)
}

func mustReadLog(t testing.TB, b []byte) *Log {
	t.Helper()
	l, err := readLog(b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sampleEvents is a small recording of two threads.
func sampleEvents() []Event {
	list := []Event{
		{Thread: 1, Kind: KindStart, Object: 1, Args: []uint64{0, 4711, 0x7ffff7d8a740, 0x7ffffffde000, 0x7ffffffff000}},
		{Thread: 1, Kind: KindSyscall, Site: 0x7ffff7e5a1b2, Args: []uint64{3, 0x7fffffffe000, 16}, Result: 5,
			Payloads: []Payload{{0x7fffffffe000, PayloadOut, []byte("hello")}}},
		{Thread: 1, Kind: KindCreate, Object: 2, Args: []uint64{0x24a000001000, 0x24a001000000, 0x401000}},
		{Thread: 2, Kind: KindStart, Object: 2, Args: []uint64{1, 4712, 0x24a000fff000, 0x24a000001000, 0x24a001000000}},
		{Thread: 2, Kind: KindMutex, Object: 0x404040, Site: 0x401020, Args: []uint64{uint64(SyncLock)}, Skipped: 7},
		{Thread: 1, Kind: KindSyscall, Object: 202, Site: 0x7ffff7e5a000, Flags: FlagSoft | FlagInterrupted, Result: -4, Args: []uint64{0x404044, 0, 1}},
		{Thread: 1, Kind: KindMutex, Object: 0x404040, Site: 0x401090, Args: []uint64{uint64(SyncTry)}, Result: 16},
		{Thread: 2, Kind: KindSyscall, Object: 1, Site: 0x7ffff7e5b1b2, Args: []uint64{1, 0x404060, 3}, Result: 3,
			Payloads: []Payload{{0x404060, PayloadDigest, bytes.Repeat([]byte{0xa5, 0}, 8)}}},
		{Thread: 2, Kind: KindSignal, Object: 10, Args: []uint64{uint64(PlaceAsync), 0x401033, 1, 2, 3, 4, 0x401200, 0x4000004},
			Payloads: []Payload{{0, PayloadInfo, make([]byte, 128)}}},
		{Thread: 2, Kind: KindSignalEnd, Object: 10},
		{Thread: 2, Kind: KindLimit, Object: uint64(LimitSyscall), Payloads: []Payload{{0, PayloadText, []byte("bpf\n\xff")}}},
		{Thread: 2, Kind: KindExit, Object: 2},
		{Thread: 1, Kind: KindEnd, Result: 3},
	}
	for i := range list {
		list[i].Ticket = uint64(i + 1)
	}
	return list
}

// clone copies an event, which outlives the iteration.
func clone(e *Event) Event {
	c := *e
	c.Args = slices.Clone(e.Args)
	c.Payloads = slices.Clone(e.Payloads)
	for i := range c.Payloads {
		c.Payloads[i].Data = slices.Clone(c.Payloads[i].Data)
	}
	return c
}

func collect(seq iter.Seq2[*Event, error]) ([]Event, error) {
	var list []Event
	for e, err := range seq {
		if err != nil {
			return list, err
		}
		list = append(list, clone(e))
	}
	return list, nil
}

// bare returns the events without their places in the log.
func bare(list []Event) []Event {
	list = slices.Clone(list)
	for i := range list {
		list[i].Offset, list[i].Ordinal = 0, 0
		if len(list[i].Args) == 0 {
			list[i].Args = nil
		}
		if len(list[i].Payloads) == 0 {
			list[i].Payloads = nil
		}
	}
	return list
}

func TestLogOrdered(t *testing.T) {
	want := sampleEvents()
	l := mustReadLog(t, logBytes(t, want))
	got, err := collect(l.Ordered())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(bare(want), bare(got)); d != "" {
		t.Error(d)
	}
	ordinals := map[uint32]uint64{}
	for _, e := range got {
		if ordinals[e.Thread]++; e.Ordinal != ordinals[e.Thread] {
			t.Errorf("ticket %d is event %d of thread %d, want %d", e.Ticket, e.Ordinal, e.Thread, ordinals[e.Thread])
		}
	}
	if l.PID != 4711 || !slices.Equal(l.Threads(), []uint32{1, 2}) || l.Cut() != nil {
		t.Errorf("pid %d, threads %v, cut %v", l.PID, l.Threads(), l.Cut())
	}
}

func TestLogThreadFromNowhere(t *testing.T) {
	events := []Event{{Thread: 1, Kind: KindStart, Ticket: 1}, {Thread: 1, Kind: KindCreate, Object: 2, Result: 11, Ticket: 2},
		{Thread: 2, Kind: KindStart, Ticket: 3}}
	got, err := collect(mustReadLog(t, logBytes(t, events)).Ordered())
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || len(got) != 2 {
		t.Errorf("%d events, %v", len(got), err)
	}
}

// Events larger than an extent, and events of more than one extent.
func TestLogExtents(t *testing.T) {
	want := []Event{{Thread: 1, Kind: KindCreate, Ticket: 1, Object: 2}, {Thread: 1, Kind: KindCreate, Ticket: 2, Object: 3}}
	for i := range 90 {
		e := Event{Thread: uint32(1 + i%3), Kind: KindSyscall, Ticket: uint64(10 + 10*i), Args: []uint64{uint64(i)}}
		if size := i * 37 % 200000; i%5 == 0 {
			e.Payloads = []Payload{{evidence.Addr(i), PayloadOut, bytes.Repeat([]byte{byte(i)}, size)}}
		}
		want = append(want, e)
	}
	got, err := collect(mustReadLog(t, logBytes(t, want)).Ordered())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(bare(want), bare(got)); d != "" {
		t.Error(d)
	}
}

// A log may end at any byte. The rest is read, and the end is reported unless it looks like the
// end of a complete log.
func TestLogCutAnywhere(t *testing.T) {
	whole := logBytes(t, sampleEvents())
	all, _ := collect(mustReadLog(t, whole).Ordered())
	last := 0
	for n := 0; n <= len(whole); n++ {
		if n%extentSize > 1200 && n%1021 != 0 {
			continue // only zeros remain
		}
		l, err := ReadLog(t.Context(), "log", bytes.NewReader(whole[:n]), int64(n), int64(len(whole)))
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		got, err := collect(l.Ordered())
		var cut *CutError
		if n < len(whole) && !errors.As(err, &cut) && len(got) < len(all) {
			t.Fatalf("%d bytes: %d events and %v", n, len(got), err)
		}
		if len(got) > 0 && cmp.Diff(all[:len(got)], got) != "" {
			t.Fatalf("%d bytes: events differ", n)
		}
		if len(got) < last {
			t.Fatalf("%d bytes: %d events, fewer than before", n, len(got))
		}
		last = len(got)
	}
	if last < 4 {
		t.Errorf("only %d events were read", last)
	}
}

// Threads killed while they write leave extents without a header, and an event without a
// length.
func TestLogHoles(t *testing.T) {
	list := sampleEvents()
	b := logBytes(t, list)
	hole := slices.Concat(b[:extentSize], make([]byte, 3*extentSize), b[extentSize:])
	got, err := collect(mustReadLog(t, hole).Ordered())
	if err != nil || len(got) != len(list) {
		t.Errorf("%d events, %v", len(got), err)
	}
	last := got[len(got)-1]
	le.PutUint32(hole[last.Offset:], 0)
	got, err = collect(mustReadLog(t, hole).Ordered())
	if err != nil || len(got) != len(list)-1 {
		t.Errorf("without the last one: %d events, %v", len(got), err)
	}
}

func TestLogCorrupt(t *testing.T) {
	list := sampleEvents()
	good := logBytes(t, list)
	events, _ := collect(mustReadLog(t, good).Ordered())
	at := func(i int) int64 { return events[i].Offset }
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		want   string
	}{
		{"magic", func(b []byte) []byte { b[0]++; return b }, "not a log's"},
		{"version", func(b []byte) []byte { b[8] = 9; return b }, "use a newer diagnose"},
		{"extent magic", func(b []byte) []byte { b[extentSize]++; return b }, "magic of an extent"},
		{"extent size", func(b []byte) []byte { b[extentSize+16] = 1; return b }, "extent of 65537 bytes"},
		{"thread 0", func(b []byte) []byte { b[extentSize+8] = 0; return b }, "extent of thread 0"},
		{"sequence", func(b []byte) []byte { b[extentSize+12] = 1; return b }, "extent 0 of the thread is missing"},
		{"extent twice", func(b []byte) []byte {
			n := len(b)
			b = append(b, b[extentSize:2*extentSize]...)
			b[n+18]++ // not a copy: copies have the same size
			return b
		}, "extent 0 of the thread is there twice"},
		{"length", func(b []byte) []byte { b[at(0)] = 7; return b }, "event of 7 bytes"},
		{"long", func(b []byte) []byte { b[at(0)+2] = 7; return b }, "in an extent that has"},
		{"kind", func(b []byte) []byte { b[at(0)+4] = 200; return b }, "event of kind 200"},
		{"arguments", func(b []byte) []byte { b[at(0)+6] = 99; return b }, "has 99 arguments"},
		{"fewer arguments", func(b []byte) []byte { b[at(0)+6] = 1; return b }, "too many"},
		{"payloads", func(b []byte) []byte { b[at(0)+7] = 1; return b }, "no room for payload 1 of 1"},
		{"payload length", func(b []byte) []byte { b[at(1)+eventHeaderSize+24+10] = 1; return b }, "payload 1 of"},
		{"payload kind", func(b []byte) []byte { b[at(1)+eventHeaderSize+24+12] = 99; return b }, "payload 1 has kind 99"},
		{"backward", func(b []byte) []byte { le.PutUint64(b[at(1)+8:], 1); return b }, "thread 1, event 2: ticket 1 follows 1"},
		{"twice", func(b []byte) []byte { le.PutUint64(b[at(4)+8:], 6); return b }, "ticket 6 is thread"},
	} {
		l, err := readLog(c.change(slices.Clone(good)))
		var got []Event
		if err == nil {
			got, err = collect(l.Ordered())
		}
		var corrupt *CorruptError
		var version *VersionError
		if !errors.As(err, &corrupt) && !errors.As(err, &version) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if len(got) > 0 && cmp.Diff(events[:len(got)], got) != "" {
			t.Errorf("%s: what comes before differs", c.name)
		}
	}
}

// Whatever byte is wrong, the reader returns the rest and ends.
func TestLogEveryByte(t *testing.T) {
	good := logBytes(t, sampleEvents())
	l := mustReadLog(t, good)
	used := []int{}
	for i := range logHeaderSize {
		used = append(used, i)
	}
	for _, thread := range l.Threads() {
		c := l.Cursor(thread)
		for c.err == nil {
			c.Next()
		}
		for i := c.thread.extents[0].offset; i < c.at+16; i++ {
			used = append(used, int(i))
		}
	}
	for _, i := range used {
		for _, value := range []byte{0, 0x7f, 0xff, good[i] ^ 1} {
			if value == good[i] {
				continue
			}
			b := slices.Clone(good)
			b[i] = value
			exerciseLog(t, b)
		}
	}
}

// exerciseLog calls every reader of a log.
func exerciseLog(t testing.TB, b []byte) {
	l, err := readLog(b)
	if err != nil {
		return
	}
	for _, thread := range l.Threads() {
		ticket, n := uint64(0), uint64(0)
		for e, err := range l.Events(thread) {
			if err != nil {
				break
			}
			if n++; e.Ordinal != n || n > 1 && e.Ticket <= ticket || e.Thread != thread {
				t.Fatalf("event %+v follows %d", e, ticket)
			}
			ticket = e.Ticket
		}
	}
	s, err := l.Schedule()
	image, imageErr := l.WriteImage(new(memoryFile), s, ImageOptions{})
	if imageErr != nil {
		t.Fatalf("the order ends with %v and has no image: %v", err, imageErr)
	}
	var events uint64
	for _, n := range s.Events() {
		events += n
	}
	if image.Events != events || events*shortHeader > uint64(len(b)) {
		t.Fatalf("image of %d events, schedule of %d", image.Events, events)
	}
}

func FuzzLog(f *testing.F) {
	b := logBytes(f, sampleEvents())
	f.Add(b[:logHeaderSize], b[extentSize:extentSize+2000], b[2*extentSize:2*extentSize+2000])
	f.Add([]byte{}, []byte{}, []byte{})
	short := shortLog(f, shortEvents())
	f.Add(short[:logHeaderSize], short[extentSize:extentSize+1000], []byte{})
	f.Fuzz(func(t *testing.T, header, first, second []byte) {
		b := make([]byte, 3*extentSize)
		copy(b[:extentSize], header)
		copy(b[extentSize:2*extentSize], first)
		copy(b[2*extentSize:], second)
		exerciseLog(t, b)
	})
}

// failingReader reads up to a limit and fails there as a bad disk does.
type failingReader struct {
	b     []byte
	limit int64
}

func (r *failingReader) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > r.limit {
		return 0, fmt.Errorf("input/output error")
	}
	return copy(p, r.b[at:]), nil
}

// A failed read is an error, not the end of the log.
func TestLogReadError(t *testing.T) {
	b := logBytes(t, sampleEvents())
	for _, limit := range []int64{0, extentSize + 40, 2*extentSize + 40} {
		l, err := ReadLog(t.Context(), "log", &failingReader{b, limit}, int64(len(b)), 0)
		if err == nil {
			_, err = collect(l.Ordered())
		}
		if err == nil || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("up to %d: %v", limit, err)
		}
	}
}

func TestEventDecode(t *testing.T) {
	for _, want := range sampleEvents() {
		b, err := want.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, n, err := DecodeEvent(append(b, 1, 2, 3))
		if err != nil || n != len(b) {
			t.Fatalf("%d bytes of %d, %v", n, len(b), err)
		}
		got.Thread = want.Thread
		if d := cmp.Diff(bare([]Event{want}), bare([]Event{*got})); d != "" {
			t.Error(d)
		}
	}
	if _, _, err := DecodeEvent(nil); err == nil || err == io.EOF {
		t.Errorf("nothing: %v", err)
	}
}

// emptyLog is a log of which only the head exists, as large as size says. It counts the reads.
type emptyLog struct {
	head []byte
	size int64
	read int
}

func (l *emptyLog) ReadAt(p []byte, at int64) (int, error) {
	l.read++
	clear(p)
	if at < int64(len(l.head)) {
		copy(p, l.head[at:])
	}
	return len(p), nil
}

func (l *emptyLog) nextData(at int64) (int64, error) {
	if at < int64(len(l.head)) {
		return at, nil
	}
	return l.size, nil
}

func (l *emptyLog) nextHole(at int64) (int64, error) { return max(at, int64(len(l.head))), nil }

// TestHollowEvent: memory is allocated for events that the file holds, not for holes.
func TestHollowEvent(t *testing.T) {
	head := logBytes(t, sampleEvents())[:extentSize+extentHeaderSize+eventHeaderSize]
	const size, event = 8 << 30, 0xfffffff8
	le.PutUint64(head[extentSize+16:], size)
	le.PutUint32(head[extentSize+extentHeaderSize:], event)
	name := filepath.Join(t.TempDir(), "log")
	if err := errors.Join(os.WriteFile(name, head, 0o600), os.Truncate(name, extentSize+size)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := ReadLog(t.Context(), "log", logFile{f, extentSize + size}, extentSize+size, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Cursor(mainThread)
	var corrupt *CorruptError
	if _, err := c.Next(); !errors.As(err, &corrupt) || cap(c.buffer) > mostHole {
		t.Errorf("%v, with %d bytes of memory", err, cap(c.buffer))
	}
	// An event's zeros that a copy has turned into a hole are read.
	if ok, err := l.holds(extentSize, mostHole); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestLogUntil: a log with endless extents is read until the context ends.
func TestLogUntil(t *testing.T) {
	head := logBytes(t, sampleEvents())
	ctx, cancel := context.WithCancelCause(t.Context())
	log := &endingLog{emptyLog{head: head, size: 1 << 50}, cancel}
	if _, err := ReadLog(ctx, "log", log, log.size, 0); !errors.Is(err, errEnded) {
		t.Error(err)
	}
}

var errEnded = errors.New("ended")

// endingLog has data everywhere, and ends a context after some reads.
type endingLog struct {
	emptyLog
	end context.CancelCauseFunc
}

func (l *endingLog) ReadAt(p []byte, at int64) (int, error) {
	if l.read == 1000 {
		l.end(errEnded)
	}
	if l.read > 1_000_000 {
		return 0, errors.New("it was read on")
	}
	return l.emptyLog.ReadAt(p, at)
}

func (l *endingLog) nextData(at int64) (int64, error) { return at, nil }

// TestSparseLog: holes of any size are skipped.
func TestSparseLog(t *testing.T) {
	head := logBytes(t, sampleEvents())
	whole := mustReadLog(t, head)
	log := &emptyLog{head: head, size: 1 << 40}
	l, err := ReadLog(t.Context(), "log", log, log.size, int64(len(head)))
	if err != nil || !slices.Equal(l.Threads(), whole.Threads()) {
		t.Fatalf("threads %v, %v", l.Threads(), err)
	}
	if most := len(head)/extentSize + 3; log.read > most {
		t.Errorf("%d reads, want at most %d", log.read, most)
	}
	want, _ := collect(whole.Ordered())
	if got, err := collect(l.Ordered()); err != nil || len(got) != len(want) {
		t.Errorf("%d events, want %d: %v", len(got), len(want), err)
	}

	// The same for a file: the file system says where it has data.
	name := filepath.Join(t.TempDir(), "log")
	if err := errors.Join(os.WriteFile(name, head, 0o600), os.Truncate(name, 1<<40)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file := logFile{f, 1 << 40}
	if at, err := file.nextData(1 << 30); err != nil || at != 1<<40 && at != 1<<30 {
		t.Errorf("data at %#x, %v", at, err)
	}
}
