package show

import (
	"time"

	"diagnose/ask"
	"diagnose/evidence"
)

// hostile is text of a recording that is written to do harm.
const hostile = `<script>document.title="owned"</script><img src=x onerror=alert(1)>"'&` + "\x1b[31m\u202e"

func at(thread uint32, ordinal, position uint64) ask.Instant {
	m := evidence.Moment{Thread: thread, Ordinal: ordinal, PC: 0x401156, Count: 2}
	return ask.Instant{Moment: m, At: m.String(), Position: position}
}

// samples are answers of each form, as of a recording with hostile names.
func samples() map[string]*ask.Answer {
	site := evidence.Site{PC: 0x401156, Function: "book" + hostile, File: "/src/ledger" + hostile + ".c", Line: 27}
	plain := evidence.Site{PC: 0x401156, Function: "book", File: "/src/ledger.c", Line: 27}
	threads := []evidence.ThreadRef{{Number: 1, Start: "main"}, {Number: 2, Start: "clerk"}, {Number: 3, Start: hostile}}
	base := func(f ask.Form, asked string) *ask.Answer {
		return &ask.Answer{Recording: "ledger-0001", Form: f, Asked: asked, Threads: threads, Span: ask.Span{Events: 120}, Elapsed: 120 * time.Millisecond,
			Coverage: ask.Coverage{Replays: 1, Backend: "bpf", Complete: true}}
	}
	writes := base(ask.FormWrites, "head->balance")
	writes.Memory = &ask.Memory{Address: 0x5000, Size: 8, Type: "long", Home: ask.HomeHeap, Object: &ask.Object{Address: 0x5000, Size: 24, State: evidence.HeapLive, Allocated: &site}, Earlier: 3, Proof: evidence.Replayed}
	since := at(1, 11, 11)
	writes.Memory.Since = &since
	for n := range uint64(40) {
		writes.Writes = append(writes.Writes, ask.Write{Instant: at(uint32(n%2)+2, n, 40+n), Thread: uint32(n%2) + 2, Size: 8, Old: "1", New: hostile, Site: site, By: ask.ByProgram,
			Locks: []evidence.Lock{{Address: 0x6000, Name: "lock"}}})
	}
	last := base(ask.FormLastWrite, "booked")
	last.Writes = []ask.Write{{Instant: at(2, 4, 44), Thread: 2, Size: 4, Old: "1", New: "2", Site: plain, By: ask.ByCall, Call: "read",
		Stack: &evidence.Stack{Frames: []evidence.Frame{{Site: plain}, {Index: 1, Site: site}}}}}
	values := base(ask.FormValues, "booked")
	values.Values = []ask.Reading{{Value: evidence.Value{Text: "0"}}, {Instant: at(2, 4, 44), Thread: 2, Value: evidence.Value{Unavailable: hostile}, Site: plain, By: ask.ByProgram}}
	calls := base(ask.FormCalls, "book")
	returned := at(2, 9, 60)
	calls.Places = []ask.Place{{PC: 0x401156, Site: site, Hits: 2, Proof: evidence.Replayed, Left: 1}}
	calls.Calls = []ask.Call{{Instant: at(2, 4, 44), Thread: 2, Arguments: []evidence.Variable{{Name: "sum", Value: evidence.Value{Text: hostile}}}, Returned: &returned, Result: &evidence.Value{Text: "7"}},
		{Instant: at(3, 4, 50), Thread: 3, Arguments: []evidence.Variable{{Name: "sum", Value: evidence.Value{Text: "2"}}}}}
	did := base(ask.FormDid, "2")
	result := int64(-2)
	did.Did = []ask.Deed{{Instant: at(2, 4, 44), Thread: 2, Kind: ask.DeedSyscall, Name: `openat("` + hostile + `")`, Result: &result, Site: site},
		{Instant: at(2, 5, 45), Thread: 2, Kind: ask.DeedLock, Name: "mutex lock", Object: "lock", Waited: true, Again: 3}}
	holds := base(ask.FormHolders, "lock")
	holds.Holds = []ask.Hold{{Instant: at(2, 4, 44), Thread: 2, Site: plain, Released: &returned, By: &site}, {Instant: at(3, 9, 61), Thread: 3, Site: site}}
	holds.Waits = []ask.Wait{{Thread: 1, Event: 5, Site: site}}
	executed := base(ask.FormExecuted, "ledger.c:27")
	executed.Places = []ask.Place{{PC: 0x401156, Site: plain, Hits: 1, Proof: evidence.Inferred}}
	executed.Executed = []ask.Arrival{{Instant: at(2, 4, 44), Thread: 2}}
	nothing := base(ask.FormWrites, "untouched")
	return map[string]*ask.Answer{"writes": writes, "last-write": last, "values": values, "calls": calls, "did": did, "holders": holds, "executed": executed, "nothing": nothing}
}
