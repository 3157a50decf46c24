package replay

import (
	"os"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracepoint"
)

// Request says what a replay does and what it observes. It is a PlainRequest, a WatchRequest, a
// ProbeRequest, a StepRequest, a WalkRequest, a DebugRequest or a FreeRequest.
type Request interface {
	parts() parts
}

// Common has the fields of every request. Its zero value replays as recorded and reports nothing.
type Common struct {
	// Image says how the files of the process are found.
	Image image.Options
	// Timing says when code between two events of a thread runs. Programs whose threads read
	// variables that no event orders (flags, counts) may need a special timing. If it is empty,
	// Run looks for the timing that reaches the recorded end. That may take two runs of the
	// process. A timing other than the usual one is written into the recording. A FreeRequest
	// without a timing uses the one in the recording.
	Timing record.Timing
	// Preemptions are made in addition to the order of events. If nil, those that a search found
	// and wrote into the recording are made.
	Preemptions []eventlog.Preemption
	// Hooks are called at Moments.
	Hooks []Hook
	// AtEnd is called when the replay has ended or stopped early, while the process still exists.
	AtEnd func(*Stopped) error
	// Sleeping and Computing bound the time without an event: Sleeping while all threads sleep,
	// Computing while one computes. 0 means 10 seconds for Sleeping, and for Computing a minute
	// plus five times the processor time of the recorded process. A thread that is found to be in
	// an endless loop is stopped earlier.
	Sleeping, Computing time.Duration
	// Echo, if set, receives what the program writes to descriptors 1 and 2.
	Echo *os.File
	// Unnamed leaves out names for the addresses in errors, and the stacks of threads: finding
	// names takes longer than many replays.
	Unnamed bool
	// Progress, if set, is called from time to time with the number of events done.
	Progress func(done, total uint64)
}

// PlainRequest replays the recording to the recorded end, unless a Hook ends it.
type PlainRequest struct {
	Common
	// Verify compares the process at its end with the recording's core.
	Verify bool
	// Schedule is another order of the recorded events. If nil, the recorded order is used.
	Schedule eventlog.Schedule
	// From, if set, is where the replay begins. It has the timing, order and preemptions of the replay that the checkpoint was
	// taken of; those of the request are not used. The hooks' events are after it.
	From *Checkpoint
}

// Watching traces the accesses to words of the process. The zero value traces none.
type Watching struct {
	Watches []Watch
	// Backend traces the accesses. If empty, the best one that works on this machine is used.
	Backend Backend
	// Probes are the instructions whose accesses BackendProbe sees. MostStops bounds how often it
	// may stop for accesses that it cannot see otherwise, and how often BackendPages may stop at
	// the pages of the words; beyond it the error is a *StopsError. 0 means no bound.
	Probes    []evidence.Addr
	MostStops uint64
	// Locks are read at each hit.
	Locks []LockWord
	// OnHit is called for each hit, in order. Inspect has functions by hit number, which are
	// called with all threads stopped. An error ends the replay.
	OnHit   func(*Hit) error
	Inspect map[uint64]func(*Hit, *Stopped) error
	// Earlier, if set, lets the replay begin at a checkpoint right after an event: the hits before that are not wanted. It returns how many these are;
	// known is false if that is not certain, or if one of them is wanted. If it is nil, all hits are wanted.
	Earlier func(*Checkpoint) (hits uint64, known bool)
}

// WatchRequest is a PlainRequest that traces accesses to words.
type WatchRequest struct {
	Common
	Watching
	// Verify compares the process at its end with the recording's core.
	Verify bool
}

// MappedFile is a file and where it is mapped.
type MappedFile = tracepoint.File

// Probing stops threads at instructions.
type Probing struct {
	// At are the instructions.
	At []evidence.Addr
	// Files are the files that instructions are of. While another one is mapped there, threads are not stopped. An instruction
	// without one is of the first file with code at its address.
	Files map[evidence.Addr]MappedFile
	// Begin, if set, is called when a replay begins. If no timing is known of the recording, a
	// second one may follow the first, and its arrivals replace those of the first.
	Begin func()
	// Copies: copies of the process can be made (Stopped.Copy).
	Copies bool
	// OnArrival is called each time that a thread arrives at one of the instructions, before it
	// executes it. ErrEnough ends the replay there; any other error ends it, too, and is returned.
	OnArrival func(*Arrival) error
	// Rules handle arrivals at instructions in the process. Where one does, OnLogged is called with its entry, and OnCounted with the
	// number of arrivals of a thread, in place of OnArrival. OnLogged is called in the order of the arrivals, and before anything later
	// is reported; of the Stopped only the process and Loads are of use. ErrEnough has its meaning only right after as many entries as
	// Room said.
	Rules     map[evidence.Addr]*Rule
	OnLogged  func(*Stopped, *Entry) error
	OnCounted func(pc evidence.Addr, thread uint32, arrivals uint64)
	// Asks: at instructions without a Rule a thread may wait for OnArrival in its code, which costs less than a stop.
	Asks bool
	// Room returns after how many entries the replay may end; nil: it does not.
	Room func() uint64
}

// Rule is what code in the process does when a thread arrives at an instruction, Entry a record that it writes.
type (
	Rule      = tracepoint.Rule
	RuleValue = tracepoint.Value
	Entry     = tracepoint.Entry
	Logged    = tracepoint.Logged
)

// The bounds of a Rule.
const (
	MostRuleBytes  = tracepoint.MostBytes
	MostRuleValues = tracepoint.MostValues
	RuleTextBytes  = tracepoint.TextBytes
)

// ProbeRequest is a PlainRequest that stops threads at instructions.
type ProbeRequest struct {
	Common
	Probing
	// Verify compares the process at its end with the recording's core.
	Verify bool
}

// StepRequest executes parts of the replay one instruction at a time.
type StepRequest struct {
	Common
	Stepping
	// Verify compares the process at its end with the recording's core.
	Verify bool
}

// WalkRequest follows one call of a function. The replay ends with that call.
type WalkRequest struct {
	Common
	Walk
}

// DebugRequest stops the process wherever a debugger asks.
type DebugRequest struct {
	Common
	Debugging
	// From is that of a PlainRequest. OnStop is called there first, with the kind of the stop at which the checkpoint was taken.
	From *Checkpoint
}

// FreeRequest lets the process diverge from the recording. Results of events that are not in the
// log are made up, and the threads run in a fixed order. Experiments use it.
type FreeRequest struct {
	Common
	Watching
	// Schedule is another order of the events. It may have more events of a thread than the log.
	// If nil, the recorded order is used.
	Schedule eventlog.Schedule
	// Edits change the run, each at one point.
	Edits []Edit
	// Breaks are instructions where the process is inspected or changed.
	Breaks []Break
	// Carried, if set, is what the breaks know of the arrivals so far. Without it a replay with breaks begins at the recording's start.
	Carried *Carried
}

// Carried lets a free replay begin at a checkpoint that one with the same breaks and without a change has left.
type Carried struct {
	// Of is equal for requests with the same breaks.
	Of any
	// Save returns a copy of what the breaks know, Load has them know that.
	Save func() any
	Load func(any)
}

// parts is a request as the controller sees it. A nil part was not requested.
type parts struct {
	Common
	verify   bool
	schedule eventlog.Schedule
	watching Watching
	probing  *Probing
	step     *Stepping
	walk     *Walk
	debug    *Debugging
	free     *freePart
	from     *Checkpoint
	// leaving says which checkpoints the replay leaves; nil: none.
	leaving *leaving
}

// freePart has the fields that only a FreeRequest has.
type freePart struct {
	edits   []Edit
	breaks  []Break
	carried *Carried
}

// bounds returns the times without an event after which a replay counts as stuck.
func (p *parts) bounds(rec *record.Recording) (sleeping, computing time.Duration) {
	sleeping, computing = p.Sleeping, p.Computing
	if sleeping == 0 {
		sleeping = defaultSleeping
	}
	if computing == 0 {
		times := rec.Manifest.Times
		computing = defaultComputing + 5*time.Duration(times.UserNS+times.SystemNS)
	}
	return sleeping, computing
}

func (r PlainRequest) parts() parts {
	return parts{Common: r.Common, verify: r.Verify, schedule: r.Schedule, from: r.From}
}

func (r WatchRequest) parts() parts {
	return parts{Common: r.Common, verify: r.Verify, watching: r.Watching}
}

func (r ProbeRequest) parts() parts {
	return parts{Common: r.Common, verify: r.Verify, probing: &r.Probing}
}

func (r StepRequest) parts() parts {
	return parts{Common: r.Common, verify: r.Verify, step: &r.Stepping}
}

func (r WalkRequest) parts() parts {
	return parts{Common: r.Common, walk: &r.Walk}
}

func (r DebugRequest) parts() parts {
	p := parts{Common: r.Common, debug: &r.Debugging, from: r.From}
	p.AtEnd = r.Debugging.atEnd
	return p
}

func (r FreeRequest) parts() parts {
	return parts{Common: r.Common, schedule: r.Schedule, watching: r.Watching, free: &freePart{r.Edits, r.Breaks, r.Carried}}
}
