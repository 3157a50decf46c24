package eventlog

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/agent"
	"diagnose/evidence"
)

// shortEvents returns the events of reads, each similar to the one before, and of a mutex.
func shortEvents() []Event {
	read := func(ticket, fd, at uint64, result int64, data string) Event {
		return Event{Thread: 1, Kind: KindSyscall, Ticket: ticket, Site: 0x401000, Result: result,
			Args: []uint64{fd, at, 16}, Payloads: []Payload{{Addr: evidence.Addr(at), Kind: PayloadOut, Data: []byte(data)}}}
	}
	lock := func(ticket, object, skipped uint64, result int64) Event {
		return Event{Thread: 1, Kind: KindMutex, Ticket: ticket, Object: object, Site: 0x402000, Result: result, Skipped: skipped, Args: []uint64{1}}
	}
	return []Event{read(1, 3, 0x7000, 5, "first"), lock(2, 0x9000, 0, 0), read(3, 3, 0x7000, 9, "the other"), lock(7, 0x9000, 5, 0),
		read(8, 4, 0x8000, 1, "x"), lock(9, 0xa000, 0, 1<<40), lock(1<<32, 0x9000, 0, -16)}
}

// shortened encodes the event by its base, as the engine does.
func shortened(e, base *Event, last uint64, at int64) []byte {
	var more, args byte
	var words []uint64
	if e.Object != base.Object {
		more, words = more|agent.ShortObject, append(words, e.Object)
	}
	if int64(int32(e.Result)) != e.Result {
		more, words = more|agent.ShortResult, append(words, uint64(e.Result))
	}
	if e.Skipped != 0 {
		more, words = more|agent.ShortSkipped, append(words, e.Skipped)
	}
	for i, v := range e.Args {
		if v != base.Args[i] {
			args, words = args|1<<i, append(words, v)
		}
	}
	var data []byte
	if len(e.Payloads) > 0 {
		data = e.Payloads[0].Data
	}
	length := shortHeader + 8*len(words) + int(pad8(int64(len(data))))
	b := le.AppendUint32(nil, uint32(at/8)<<16|uint32(length)|agent.Short)
	b = append(b, args, more)
	b = le.AppendUint16(b, uint16(len(data)))
	b = le.AppendUint32(b, uint32(e.Ticket-last))
	b = le.AppendUint32(b, uint32(e.Result))
	for _, v := range words {
		b = le.AppendUint64(b, v)
	}
	b = append(b, data...)
	return append(b, make([]byte, length-len(b))...)
}

// shortLog has the events of thread 1, all but the first of each kind short.
func shortLog(t testing.TB, events []Event) []byte {
	t.Helper()
	b := logBytes(t, events[:1])
	bases := map[Kind]int64{}
	var extent []byte
	for i := range events {
		e := &events[i]
		at, there := bases[e.Kind]
		if there {
			base := events[0]
			if e.Kind != base.Kind {
				base = events[1]
			}
			extent = append(extent, shortened(e, &base, events[i-1].Ticket, at)...)
			continue
		}
		bases[e.Kind] = extentHeaderSize + int64(len(extent))
		var err error
		if extent, err = e.Encode(extent); err != nil {
			t.Fatal(err)
		}
	}
	copy(b[extentSize+extentHeaderSize:], extent)
	return b
}

func TestShortEvents(t *testing.T) {
	want := shortEvents()
	l := mustReadLog(t, shortLog(t, want))
	got, err := collect(l.Events(1))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(bare(want), bare(got)); d != "" {
		t.Error(d)
	}

	// The image that a replay reads has them in full.
	s, err := l.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	f := new(memoryFile)
	image, err := l.WriteImage(f, s, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rest := f.b[image.Threads[1].Start-ImageBase : image.Threads[1].End-ImageBase]
	for i := range want {
		e, n, err := DecodeEvent(rest)
		if err != nil {
			t.Fatal(err)
		}
		e.Thread = 1
		if d := cmp.Diff(bare(want[i:i+1]), bare([]Event{*e})); d != "" {
			t.Error(d)
		}
		rest = rest[n:]
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes more", len(rest))
	}
}

// TestShortEventsDamaged changes the third event, which is short, and the events that it refers
// to.
func TestShortEventsDamaged(t *testing.T) {
	whole := shortLog(t, shortEvents())
	const first, second = extentSize + extentHeaderSize, extentSize + extentHeaderSize + eventHeaderSize + 24 + payloadHeader + 8
	const third = second + eventHeaderSize + 8
	for name, damage := range map[string]func(b []byte){
		"base after it":        func(b []byte) { le.PutUint16(b[third+2:], (third-extentSize)/8) },
		"base in the header":   func(b []byte) { le.PutUint16(b[third+2:], 1) },
		"base inside another":  func(b []byte) { le.PutUint16(b[third+2:], (second-extentSize+8)/8) },
		"base without payload": func(b []byte) { le.PutUint16(b[third+2:], (second-extentSize)/8) },
		"base of no kind":      func(b []byte) { b[first+4] = 99 },
		"too many arguments":   func(b []byte) { b[third+4] = 1 << 3 },
		"unknown bit":          func(b []byte) { b[third+5] = 8 },
		"payload too long":     func(b []byte) { le.PutUint16(b[third+6:], 17) },
		"longer than the file": func(b []byte) { le.PutUint16(b[third:], 0xfff9) },
		"shorter than itself":  func(b []byte) { le.PutUint16(b[third:], 9) },
		"same ticket":          func(b []byte) { le.PutUint32(b[third+8:], 0) },
	} {
		b := append([]byte(nil), whole...)
		damage(b)
		got, err := collect(mustReadLog(t, b).Events(1))
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || len(got) > 2 {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
	// If the log is cut off anywhere in it, the events end there.
	for size := first; size < third+100; size++ {
		got, err := collect(mustReadLog(t, whole[:size]).Events(1))
		if err == nil || len(got) > 6 {
			t.Errorf("%d bytes: %d events, %v", size, len(got), err)
		}
	}
}
