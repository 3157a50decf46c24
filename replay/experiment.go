package replay

import (
	"diagnose/evidence"
)

// Edit changes the run at one point: an experiment. After it the process may differ from the
// recording, so edits are part of a FreeRequest.
type Edit struct {
	Kind EditKind
	// At is the point of the change. With OnHit it is the replay's hit with the number Hit
	// instead; At, if it is set, is then the event and the instruction that the hit has to have.
	At    evidence.Moment
	OnHit bool
	Hit   uint64
	// Bytes is how much larger the object is made (EditPad), or how large the object is (EditKeepFreed).
	// Until is the event of the thread
	// after which a delayed signal arrives (EditDelaySignal); 0: never. With Raised the signal
	// arrives when Stopped.Raise is called, and its handler's events are expected after Until,
	// which may be before the signal's own.
	Bytes  uint64
	Until  uint64
	Raised bool
	// Addr, Value and Size describe the store of EditStore; Size is 1 to 8.
	Addr  evidence.Addr
	Value uint64
	Size  int
}

// EditKind is what an Edit does.
type EditKind string

// The kinds of edit.
const (
	// EditUndo restores the watched word's value from before the hit.
	EditUndo EditKind = "store skipped"
	// EditKeepFreed has a call that frees an object leave it as it is. At is the first instruction
	// of the called function. A call of realloc makes a new object, with the content of the old one.
	EditKeepFreed EditKind = "object kept"
	// EditPad increases the size in an allocation call. At is the first instruction of the called
	// function.
	EditPad EditKind = "object padded"
	// EditStore gives a word of memory another value.
	EditStore EditKind = "value replaced"
	// EditDelaySignal delays the signal that is the thread's event At.Ordinal. There may be
	// several, in their order, of one thread and with one Until.
	EditDelaySignal EditKind = "signal delayed"
)
