package eventlog

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// Event is one event of a thread: struct dg_event of agent/src/record.h, which defines object,
// result and arguments for each kind.
type Event struct {
	// Thread is the index of the thread; 1 is the main one.
	Thread uint32
	// Ordinal counts the thread's events from 1.
	Ordinal uint64
	// Offset is the offset of the event in the log.
	Offset int64

	Kind   Kind
	Flags  EventFlags
	Ticket uint64
	Object uint64
	Site   evidence.Addr
	Result int64
	// Skipped counts the mutexes that the thread took without an event since the previous
	// event.
	Skipped  uint64
	Args     []uint64
	Payloads []Payload
}

// Payload is data that belongs to an event: struct dg_payload.
type Payload struct {
	Addr evidence.Addr
	Kind PayloadKind
	Data []byte
}

// Kind is the kind of an event: enum dg_kind.
type Kind uint8

// The kinds of event.
const (
	KindStart     Kind = agent.EvStart
	KindExit      Kind = agent.EvExit
	KindCreate    Kind = agent.EvCreate
	KindJoin      Kind = agent.EvJoin
	KindDetach    Kind = agent.EvDetach
	KindCreated   Kind = agent.EvCreated
	KindCancel    Kind = agent.EvCancel
	KindMutex     Kind = agent.EvMutex
	KindRWLock    Kind = agent.EvRwlock
	KindSpin      Kind = agent.EvSpin
	KindCond      Kind = agent.EvCond
	KindSem       Kind = agent.EvSem
	KindBarrier   Kind = agent.EvBarrier
	KindOnce      Kind = agent.EvOnce
	KindGuard     Kind = agent.EvGuard
	KindHeap      Kind = agent.EvHeap
	KindOrder     Kind = agent.EvOrder
	KindValue     Kind = agent.EvValue
	KindPoint     Kind = agent.EvPoint
	KindSyscall   Kind = agent.EvSyscall
	KindTSC       Kind = agent.EvTSC
	KindFork      Kind = agent.EvFork
	KindExec      Kind = agent.EvExec
	KindSignal    Kind = agent.EvSignal
	KindSignalEnd Kind = agent.EvSignalEnd
	KindLimit     Kind = agent.EvLimit
	KindEnd       Kind = agent.EvEnd
)

var kindNames = map[Kind]string{
	KindStart: "start", KindExit: "exit", KindCreate: "create", KindJoin: "join", KindDetach: "detach",
	KindCreated: "created", KindCancel: "cancel",
	KindMutex: "mutex", KindRWLock: "rwlock", KindSpin: "spin", KindCond: "cond", KindSem: "sem",
	KindBarrier: "barrier", KindOnce: "once", KindGuard: "guard", KindHeap: "heap", KindOrder: "order",
	KindValue: "value", KindPoint: "point", KindSyscall: "syscall", KindTSC: "tsc", KindFork: "fork", KindExec: "exec",
	KindSignal: "signal", KindSignalEnd: "signal-end", KindLimit: "limit", KindEnd: "end",
}

// String returns the name of the text form, "kind-20" if it has none.
func (k Kind) String() string { return nameOf(kindNames, k, "kind-") }

// EventFlags are bits of an event.
type EventFlags uint8

// The flags of an event.
const (
	FlagInterrupted EventFlags = agent.EventInterrupted
	FlagSoft        EventFlags = agent.EventSoft
	// FlagArrived: the last argument is the ticket of the time at which the thread began to
	// wait.
	FlagArrived EventFlags = agent.EventArrived
)

// Pending reports whether the process ended before the event had a place in the order: its thread's turn was over there, and it never
// continued. It is the thread's last one, and no replay goes beyond it.
func (e *Event) Pending() bool { return e.Ticket == agent.TicketPending }

// PayloadKind is the meaning of a payload's bytes: enum dg_payload_kind.
type PayloadKind uint32

// The kinds of payload.
const (
	PayloadOut       PayloadKind = agent.PayloadOut
	PayloadDigest    PayloadKind = agent.PayloadDigest
	PayloadText      PayloadKind = agent.PayloadText
	PayloadFile      PayloadKind = agent.PayloadFile
	PayloadInfo      PayloadKind = agent.PayloadInfo
	PayloadRegisters PayloadKind = agent.PayloadRegisters
	PayloadRanges    PayloadKind = agent.PayloadRanges
	PayloadWords     PayloadKind = agent.PayloadWords
	// PayloadWritten is the data written to descriptor 1 or 2, if the recording keeps it.
	PayloadWritten PayloadKind = agent.PayloadWritten
)

var payloadNames = map[PayloadKind]string{
	PayloadOut: "out", PayloadDigest: "digest", PayloadText: "text", PayloadFile: "file", PayloadInfo: "info",
	PayloadRegisters: "registers", PayloadRanges: "ranges", PayloadWords: "words", PayloadWritten: "written",
}

// String returns the name of the text form, "payload-7" if it has none.
func (k PayloadKind) String() string { return nameOf(payloadNames, k, "payload-") }

// Sync is args[0] of a synchronisation event: enum dg_sync.
type Sync uint64

// The synchronisation operations.
const (
	SyncLock      Sync = agent.SyncLock
	SyncTry       Sync = agent.SyncTry
	SyncTimed     Sync = agent.SyncTimed
	SyncRead      Sync = agent.SyncRead
	SyncTryRead   Sync = agent.SyncTryRead
	SyncTimedRead Sync = agent.SyncTimedRead
	SyncWait      Sync = agent.SyncWait
	SyncTimedWait Sync = agent.SyncTimedWait
	SyncGet       Sync = agent.SyncGet
	SyncInit      Sync = agent.SyncInit
	SyncFound     Sync = agent.SyncFound
	SyncReal      Sync = agent.SyncReal
)

var syncNames = map[Sync]string{
	SyncLock: "lock", SyncTry: "try", SyncTimed: "timed", SyncRead: "read", SyncTryRead: "try-read",
	SyncTimedRead: "timed-read", SyncWait: "wait", SyncTimedWait: "timed-wait", SyncGet: "get",
	SyncInit: "init", SyncFound: "found", SyncReal: "real",
}

// String returns a name, "sync-99" if there is none.
func (s Sync) String() string { return nameOf(syncNames, s, "sync-") }

// Reads reports whether the operation takes a lock for reading.
func (s Sync) Reads() bool { return s == SyncRead || s == SyncTryRead || s == SyncTimedRead }

// SignalPlace is args[0] of a signal's event: enum dg_signal_place.
type SignalPlace uint64

// The places at which a signal arrives.
const (
	PlaceEvent SignalPlace = agent.SignalEvent
	PlaceAsync SignalPlace = agent.SignalAsync
	PlaceFault SignalPlace = agent.SignalFault
)

var placeNames = map[SignalPlace]string{PlaceEvent: "event", PlaceAsync: "async", PlaceFault: "fault"}

// String returns a name, "place-99" if there is none.
func (p SignalPlace) String() string { return nameOf(placeNames, p, "place-") }

// LimitKind is the object of a limit's event: enum dg_limit.
type LimitKind uint64

// The limits: what a replay cannot reproduce.
const (
	LimitDisk    LimitKind = agent.LimitDisk
	LimitSyscall LimitKind = agent.LimitSyscall
	LimitShared  LimitKind = agent.LimitShared
	LimitSite    LimitKind = agent.LimitSite
	LimitPlace   LimitKind = agent.LimitPlace
	LimitTracer  LimitKind = agent.LimitTracer
	LimitStart   LimitKind = agent.LimitStart
	LimitTraced  LimitKind = agent.LimitTraced
	LimitFiles   LimitKind = agent.LimitFiles
	LimitSize    LimitKind = agent.LimitSize
)

var limitNames = map[LimitKind]string{
	LimitDisk: "disk", LimitSyscall: "syscall", LimitShared: "shared", LimitSite: "site",
	LimitPlace: "place", LimitTracer: "tracer", LimitStart: "start", LimitTraced: "traced",
	LimitFiles: "files", LimitSize: "size",
}

// String returns a name, "limit-99" if there is none.
func (l LimitKind) String() string { return nameOf(limitNames, l, "limit-") }

func nameOf[K ~uint8 | ~uint32 | ~uint64](names map[K]string, k K, prefix string) string {
	if name, ok := names[k]; ok {
		return name
	}
	return fmt.Sprintf("%s%d", prefix, uint64(k))
}

// Limit is something that the recording cannot reproduce.
type Limit struct {
	Kind string `json:"kind"` // a LimitKind's name, or a kind of the tracer
	Text string `json:"text"` // in words
	// Thread and Ordinal identify the event; 0: the tracer noted it.
	Thread  uint32 `json:"thread,omitempty"`
	Ordinal uint64 `json:"ordinal,omitempty"`
}
