package agent

// The mirror of src/record.h, which says what everything means. A test compares
// names, sizes, offsets and values with what the compiler says; the tag is the C
// name where it is not the Go name in lower case.

// Versions, and the engine's own range of addresses.
const (
	RecordMagic      = 0x64726f6365726764
	RecordVersion    = 3
	EngineBase       = 0x21a000000000
	EngineControl    = EngineBase
	EngineHunt       = EngineBase + 0x0000400000
	EngineSites      = EngineBase + 0x0001000000
	EngineAtomics    = EngineBase + 0x0070000000
	EngineSync       = EngineBase + 0x0080000000
	EngineThreads    = EngineBase + 0x0100000000
	EnginePaths      = EngineBase + 0x0200000000
	EngineLog        = EngineBase + 0x1000000000
	EngineImage      = EngineBase + 0x2000000000
	EngineStacks     = EngineBase + 0x3000000000
	EngineEnd        = EngineBase + 0x6000000000
	ThreadSlot       = 65536
	PathsSlot        = 0xe0000
	SignalStackAt    = 4096
	SignalStack      = 16384
	RThreads         = 1 << 16
	ExtentSize       = 65536
	StackSlot        = 0x1000000
	ExtentMagic      = 0x746e657478656764
	ExtentIdle       = 0x656c646978656764
	EventInterrupted = 1
	EventSoft        = 2
	// TicketPending is the ticket of an event that had no place in the order yet when the process ended.
	TicketPending = 1<<63 - 1
	EventExtra    = 8
	EventRaised   = 16
	EventArrived  = 4
	TrapMagic     = 0x646961676e6f7365
)

// What the process does: enum dg_mode.
const (
	ModeOff    = 0
	ModeRecord = 1
	ModeReplay = 2
)

// The kinds of event: enum dg_kind.
const (
	EvNone      = 0
	EvStart     = 1
	EvExit      = 2
	EvCreate    = 3
	EvJoin      = 4
	EvDetach    = 5
	EvCreated   = 6
	EvCancel    = 7
	EvMutex     = 8
	EvRwlock    = 9
	EvSpin      = 10
	EvCond      = 11
	EvSem       = 12
	EvBarrier   = 13
	EvOnce      = 14
	EvGuard     = 15
	EvHeap      = 16
	EvOrder     = 17
	EvValue     = 18
	EvPoint     = 19
	EvSyscall   = 24
	EvTSC       = 25
	EvFork      = 26
	EvExec      = 27
	EvSignal    = 32
	EvSignalEnd = 33
	EvLimit     = 40
	EvEnd       = 41
	Kinds       = 42
)

// How a thread was created: bits, enum dg_creation_flag.
const (
	CreateDetached = 1
	CreateOwnStack = 2
	CreateInternal = 4
)

// What an event of synchronisation did: enum dg_sync.
const (
	SyncLock      = 1
	SyncTry       = 2
	SyncTimed     = 3
	SyncRead      = 4
	SyncTryRead   = 5
	SyncTimedRead = 6
	SyncWait      = 7
	SyncTimedWait = 8
	SyncGet       = 9
	SyncInit      = 11
	SyncFound     = 12
	SyncReal      = 13
)

// Where a thread was preempted: enum dg_point.
const (
	PointEvent  = 0
	PointCode   = 1
	PointPC     = 2
	PointState  = 3
	PointAtomic = 4
)

// What a thread is parked for: enum dg_parked.
const (
	ParkedEnd   = 0
	ParkedPoint = 1
	ParkedTurn  = 2
)

// Where a signal came: enum dg_signal_place.
const (
	SignalEvent = 1
	SignalAsync = 2
	SignalFault = 3
)

// What a recording cannot bring back: enum dg_limit.
const (
	LimitDisk    = 1
	LimitSyscall = 2
	LimitShared  = 3
	LimitSite    = 5
	LimitPlace   = 6
	LimitTracer  = 7
	LimitStart   = 8
	LimitTraced  = 9
	LimitFiles   = 10
	LimitSize    = 11
)

// What a payload has: enum dg_payload_kind.
const (
	PayloadOut       = 1
	PayloadDigest    = 2
	PayloadText      = 3
	PayloadFile      = 4
	PayloadInfo      = 5
	PayloadRegisters = 6
	PayloadRanges    = 7
	PayloadWords     = 8
	PayloadWritten   = 9
)

// How a system call is made to ask the engine: enum dg_patch.
const (
	PatchJump  = 1
	PatchTrap  = 2
	PatchClone = 3
	PatchTSC   = 4
	// PatchTSCTrap replaces nothing.
	PatchTSCTrap = 5
	// PatchAtomic is a window with atomic instructions, which entries with the code that is executed instead follow.
	PatchAtomic    = 6
	PatchCode      = 7
	PatchAddress   = 8
	PatchOperation = 9
)

// What the process asks its tracer: enum dg_trap.
const (
	TrapHello    = 1
	TrapObjects  = 2
	TrapForked   = 3
	TrapExit     = 4
	TrapArm      = 5
	TrapLast     = 6
	TrapDiverged = 7
	TrapFinished = 8
	TrapMoment   = 9
	TrapLeft     = 10
	TrapFatal    = 11
	TrapStuck    = 12
	TrapUnpark   = 13
	TrapReady    = 14
	TrapTraced   = 15
	TrapRefused  = 16
	TrapShared   = 17
)

// Whether a replay may diverge from the recording, or has: enum dg_free.
const (
	FreeNot = 0
	FreeMay = 1
	FreeIs  = 2
)

// What the program advised the kernel for forks: enum dg_fork_advice.
const (
	ForkHasAll  = 1
	ForkAdvised = 2
)

// Why a free replay cannot continue: enum dg_stuck.
const (
	StuckBlocked = 0
	StuckInput   = 1
	StuckCycle   = 2
	StuckEvents  = 3
)

// How a recording that hunts chooses the thread that runs: enum dg_hunt_strategy.
const (
	HuntNot    = 0
	HuntRandom = 1
	HuntPCT    = 2
	HuntDelay  = 3
	HuntPlan   = 4
	HuntTurns  = 5
)

// The lists of struct dg_hunt.
const (
	HuntDecisions    = 32768
	HuntPlanAt       = 4096
	HuntMadeAt       = 0x100000
	HuntTrailAt      = 0x1c0000
	HuntSitesAt      = 0x200000
	HuntSites        = 32767
	HuntAreas        = 8
	HuntBytes        = 0x400000
	DecisionPreempts = 1
	TurnSignal       = 16
	TurnValue        = 0x6e727574
)

// RawDecision is struct dg_decision.
type RawDecision struct {
	Thread uint32
	To     uint32
	Step   uint64
	At     uint32
	Flags  uint32
}

// RawHunt is struct dg_hunt.
type RawHunt struct {
	Strategy   uint32
	Depth      uint32
	Seed       uint64
	Length     uint64
	Most       uint64
	Clock      uint64
	Chance     uint32
	Quiet      uint32
	Processor  int32
	Planned    uint32
	Steps      uint64
	Points     uint64
	Switches   uint64
	Made       uint32
	Missing    uint32
	Unused     uint32
	MostReady  uint32 `c:"most_ready"`
	State      uint64
	Sites      uint32
	SitesDone  uint32 `c:"sites_done"`
	SitesSet   uint32 `c:"sites_set"`
	Areas      uint32
	AreaLow    [HuntAreas]uint64 `c:"area_low"`
	AreaHigh   [HuntAreas]uint64 `c:"area_high"`
	Turn       uint64
	TurnLength uint64 `c:"turn_length"`
	TurnOver   uint32 `c:"turn_over"`
	TurnExact  uint32 `c:"turn_exact"`
	TurnIdle   uint32 `c:"turn_idle"`
	TurnAlone  uint32 `c:"turn_alone"`
	Placed     uint64
	Misplaced  uint64
	PutOff     uint64 `c:"put_off"`
}

// RawPointSite is struct dg_point_site.
type RawPointSite struct {
	At       uint64
	Insn     uint64
	Length   uint8
	Relative uint8
	Behind   uint8
	Reserved [5]uint8
	Bytes    [16]uint8
}

// Why a replay differs: enum dg_reason.
const (
	DiffersNone     = 0
	DiffersKind     = 1
	DiffersObject   = 2
	DiffersSite     = 3
	DiffersArgument = 4
	DiffersData     = 5
	DiffersSkipped  = 6
	DiffersMapping  = 7
	DiffersState    = 8
	DiffersThread   = 9
	DiffersLog      = 10
)

// What a thread does: enum dg_rstate.
const (
	RNone     = 0
	RStarting = 1
	RRunning  = 2
	RWaiting  = 3
	REnded    = 4
)

// How the engine was entered: enum dg_entry.
const (
	EntrySyscall = 1
	EntryCall    = 2
	EntryTSC     = 3
	EntryInsn    = 4
	EntrySignal  = 5
	EntryPoint   = 6
)

// RawLogHeader is struct dg_log_header.
type RawLogHeader struct {
	Magic    uint64
	Version  uint32
	PID      uint32
	Reserved [6]uint64
}

// RawExtent is struct dg_extent.
type RawExtent struct {
	Magic    uint64
	Thread   uint32
	Sequence uint32
	Size     uint64
	Reserved uint64
}

// RawEvent is struct dg_event.
type RawEvent struct {
	Length   uint32
	Kind     uint8
	Flags    uint8
	Args     uint8
	Payloads uint8
	Ticket   uint64
	Object   uint64
	Site     uint64
	Result   int64
	Skipped  uint64
}

// RawPayload is struct dg_payload.
type RawPayload struct {
	Address uint64
	Length  uint32
	Kind    uint32
}

// RawShort is struct dg_short.
type RawShort struct {
	Length uint32
	Args   uint8
	More   uint8
	Bytes  uint16
	Ticket uint32
	Result int32
}

// Short events.
const (
	Short        = 1
	ShortBytes   = 512
	ShortArgs    = 8
	ShortObject  = 1
	ShortResult  = 2
	ShortSkipped = 4
)

// RawMapped is struct dg_mapped.
type RawMapped struct {
	Data    uint64
	Length  uint64
	Device  uint64
	Inode   uint64
	Size    uint64
	MTimeNS uint64 `c:"mtime_ns"`
	Path    [216]byte
}

// RawSitePatch is struct dg_site_patch.
type RawSitePatch struct {
	At     uint64
	Resume uint64
	Kind   uint32
	Length uint32
	Before uint32
	After  uint32
}

// RawSiteCode is struct dg_site_code.
type RawSiteCode struct {
	At       uint64
	Target   uint64
	Kind     uint32
	Count    uint8
	Link     uint8
	More     uint8
	Reserved uint8
	Bytes    [8]byte
}

// What is known of atomic instructions in the process.
const (
	AtomicAreas = 64
	AtomicSites = 65536
	AtomicLines = 1 << 18
	// AtomicLinesAt is the offset of the words of lines from EngineAtomics.
	AtomicLinesAt = 0x1000000
)

// RawAtomicSite is struct dg_atomic_site.
type RawAtomicSite struct {
	Insn uint64
	At   uint64
}

// RawAtomics is struct dg_atomics.
type RawAtomics struct {
	Areas    uint32
	Sites    uint32
	AreaLow  [AtomicAreas]uint64 `c:"area_low"`
	AreaHigh [AtomicAreas]uint64 `c:"area_high"`
	Site     [AtomicSites]RawAtomicSite
}

// RawDivergence is struct dg_divergence.
type RawDivergence struct {
	Thread   uint32
	Reason   uint32
	Ordinal  uint64
	Expected uint64
	PC       uint64
	SP       uint64
	Place    uint64
	Want     uint64
	Got      uint64
	Event    RawEvent
	Args     [6]uint64
}

// RawControl is struct dg_control.
type RawControl struct {
	Magic       uint64
	Version     uint32
	Mode        uint32
	PID         uint32
	Tracer      uint32
	TrapPC      uint64 `c:"trap_pc"`
	InsnPC      uint64 `c:"insn_pc"`
	TSCPC       uint64 `c:"tsc_pc"`
	TextLow     uint64 `c:"text_low"`
	TextHigh    uint64 `c:"text_high"`
	Patches     uint64
	PatchCount  uint32 `c:"patch_count"`
	PatchesDone uint32 `c:"patches_done"`
	LogFD       int32  `c:"log_fd"`
	DataFD      int32  `c:"data_fd"`
	Threads     uint32
	Stopped     uint32
	LogEnd      uint64 `c:"log_end"`
	DataEnd     uint64 `c:"data_end"`
	ParkPC      uint64 `c:"park_pc"`
	StopAt      uint64 `c:"stop_at"`
	Ticket      uint64
	Reserved1   [6]uint64
	Turns       uint64
	Image       uint64
	Run         uint64
	Left        uint64
	Holder      uint32
	Echo        uint32
	Consumed    uint64
	ForkAt      uint64 `c:"fork_at"`
	ForkThread  uint32 `c:"fork_thread"`
	StopThread  uint32 `c:"stop_thread"`
	Divergence  RawDivergence
	LogPath     [1024]byte `c:"log_path"`
	DataPath    [1024]byte `c:"data_path"`
	LogLimit    uint64     `c:"log_limit"`
	Lazy        uint32
	PointAble   uint32 `c:"point_able"`
	Raised      uint64
	KeepOutput  uint32 `c:"keep_output"`
	Reserved5   uint32
	Actions     uint64
	ForkAdvice  uint64 `c:"fork_advice"`
	ClockPC     uint64 `c:"clock_pc"`
	Free        uint32
	FreeFirst   uint32 `c:"free_first"`
	FreeMost    uint64 `c:"free_most"`
	MadeUp      uint64 `c:"made_up"`
	FreeOrder   uint32 `c:"free_order"`
	FreeAble    uint32 `c:"free_able"`
	Hunt        uint64
	Atomics     uint64
}

// RawReplayHeader is struct dg_replay_header.
type RawReplayHeader struct {
	Magic    uint64
	Version  uint32
	Threads  uint32
	Table    uint64
	Runs     uint64
	RunCount uint64 `c:"run_count"`
	Events   uint64
	Size     uint64
}

// RawReplayThread is struct dg_replay_thread.
type RawReplayThread struct {
	Start   uint64
	End     uint64
	Skipped uint64
	Points  uint64
}

// RawRun is struct dg_run.
type RawRun struct {
	Thread uint32
	Events uint32
}

// RawRThread is struct dg_rthread.
type RawRThread struct {
	Budget        uint64
	Index         uint32
	TID           uint32
	RealTID       uint32 `c:"real_tid"`
	State         uint32
	EngineSP      uint64 `c:"engine_sp"`
	Inside        uint64
	Ordinal       uint64
	BudgetStart   uint64 `c:"budget_start"`
	At            uint64
	End           uint64
	Extent        uint64
	ExtentSize    uint64 `c:"extent_size"`
	Sequence      uint32
	Raw           uint32
	Next          uint64
	NextEnd       uint64 `c:"next_end"`
	Go            uint32
	WaitsFor      uint32 `c:"waits_for"`
	WaitsObject   uint64 `c:"waits_object"`
	Start         uint64
	Argument      uint64
	StackLow      uint64 `c:"stack_low"`
	StackHigh     uint64 `c:"stack_high"`
	ThreadPointer uint64 `c:"thread_pointer"`
	Pending       uint32
	Delivering    uint32
	TimerReturned uint64 `c:"timer_returned"`
	Mask          uint64
	AltLow        uint64 `c:"alt_low"`
	AltSize       uint64 `c:"alt_size"`
	AltFlags      uint32 `c:"alt_flags"`
	Yields        uint32
	Carried       uint64
	Cloning       uint32
	CloningNr     uint32 `c:"cloning_nr"`
	Home          uint64
	Arrived       uint64
	Holds         uint64
	Fresh         uint32
	Behind        uint32
	CounterTraps  uint32 `c:"counter_traps"`
	CondSequence  uint32 `c:"cond_sequence"`
	Points        uint64
	PointsStart   uint64 `c:"points_start"`
	Infos         [8][128]uint8
	Stub          [3]uint64
	Line          uint32
	Reserved      uint32
}

// RawSignalState is struct dg_signal_state.
type RawSignalState struct {
	Registers [18]uint64
	Flags     uint64
	Err       uint64
	Trapno    uint64
	CR2       uint64 `c:"cr2"`
	Mask      uint64
}

// RawRange is struct dg_range.
type RawRange struct {
	Address uint64
	Length  uint64
}

// RawFrame is struct dg_frame.
type RawFrame struct {
	RAX      uint64
	RBX      uint64
	RCX      uint64
	RDX      uint64
	RSI      uint64
	RDI      uint64
	RBP      uint64
	R8       uint64
	R9       uint64
	R10      uint64
	R11      uint64
	R12      uint64
	R13      uint64
	R14      uint64
	R15      uint64
	RIP      uint64
	RSP      uint64
	RFlags   uint64
	Origin   uint64
	AgainRAX uint64 `c:"again_rax"`
	AgainRSP uint64 `c:"again_rsp"`
	Kind     uint64
}

// RThreadAddress is where the engine has what it keeps of a thread, by its number.
func RThreadAddress(index uint32) uint64 { return EngineThreads + uint64(index)*ThreadSlot }
