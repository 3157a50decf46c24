package record

import (
	"time"

	"diagnose/evidence"
)

// The files of a recording, by name in its directory.
const (
	ManifestName = "manifest.json"
	LogName      = "log"
	DataName     = "data"
	SitesName    = "sites"
	CoreName     = "core"
	ChildrenName = "children" // directory; one recording each
	ObjectsName  = "objects"  // directory of a portable recording's objects
)

// ManifestVersion is the newest version that this package reads, and the one
// that it writes.
const ManifestVersion = 1

// maxManifest bounds what is read of a manifest: the environment and the
// arguments may have 6 MiB (execve(2)), each byte up to six in JSON.
const maxManifest = 64 << 20

// Manifest says what a recording is of. Everything else of it is in the other
// files of the directory.
type Manifest struct {
	// Version is ManifestVersion of whoever wrote it.
	Version int `json:"version"`
	// Producer is the version of diagnose that recorded.
	Producer string  `json:"producer,omitempty"`
	Program  Program `json:"program"`
	Agent    Agent   `json:"agent"`
	Machine  Machine `json:"machine"`
	Start    Start   `json:"start"`
	// PID is the recorded process; Parent is nil if it is not another
	// recording's child.
	PID      int     `json:"pid"`
	Parent   *Parent `json:"parent,omitempty"`
	Children []Child `json:"children,omitempty"`
	// Unrecorded are child processes that failed without a recording of what they did.
	Unrecorded []Unrecorded `json:"unrecorded,omitempty"`
	Outcome    Outcome      `json:"outcome"`
	Limits     []Limit      `json:"limits,omitempty"`
	// Refused are the system calls that were not passed on to the kernel, each once.
	Refused  []Refused `json:"refused,omitempty"`
	Times    Times     `json:"times"`
	Sizes    Sizes     `json:"sizes"`
	Portable []Object  `json:"portable,omitempty"`
	// Hunt is nil unless the recording's threads ran in an order of the recorder's.
	Hunt *HuntedRun `json:"hunt,omitempty"`
}

// Program is what was executed, and how. A replay executes it again just so.
type Program struct {
	// Path is the executable with symbolic links resolved.
	Path Text `json:"path"`
	// Executed is what execve(2) was given (AT_EXECFN): a name of Path, or a
	// script whose interpreter Path is. Empty: Path. Script says which.
	Executed Text `json:"executed,omitempty"`
	Script   bool `json:"script,omitempty"`
	// Args are the process's, with args[0]. Those of a script begin with its
	// interpreter's: see Script.
	Args    []Text `json:"args"`
	Environ []Text `json:"environ"`
	// Directory is the working directory at the start, Umask the file mode mask.
	Directory Text `json:"directory"`
	// BuildID is of Path, in hexadecimal.
	BuildID string `json:"build_id,omitempty"`
	File    File   `json:"file"`
	// Personality is personality(2)'s at the start.
	Personality uint32 `json:"personality"`
	// StackLimit is the soft RLIMIT_STACK in bytes, which decides where the
	// kernel puts mappings; ^0 is unlimited.
	StackLimit uint64 `json:"stack_limit,string"`
	Umask      uint32 `json:"umask"` // umask(2)'s at the start
}

// File identifies a file without reading it.
type File struct {
	// Device, Inode and Size are stat(2)'s.
	Device uint64 `json:"device,string"`
	Inode  uint64 `json:"inode,string"`
	Size   int64  `json:"size"`
	// MTimeNS is the time of the last change, in nanoseconds since 1970.
	MTimeNS int64 `json:"mtime_ns"`
}

// Agent is the library that recorded. A replay needs the same.
type Agent struct {
	Path   Text   `json:"path"`
	SHA256 string `json:"sha256"` // of the file, in hexadecimal
}

// Machine is what a replay's machine must have as well.
type Machine struct {
	Kernel string `json:"kernel"` // uname -r
	CPU    string `json:"cpu"`    // model name of /proc/cpuinfo
	// Features are the flags of /proc/cpuinfo: libc chooses its functions by them.
	Features []string `json:"features,omitempty"`
	// CPUs is the number of processors.
	CPUs int `json:"cpus"`
}

// Start is the process when the engine started (DG_TRAP_HELLO).
type Start struct {
	// Random is what AT_RANDOM points to, 16 bytes in hexadecimal.
	Random string `json:"random"`
	Auxv   []Aux  `json:"auxv"`
	// Mappings are /proc/PID/maps in ascending order.
	Mappings []Mapping `json:"mappings"`
	// TID is the first thread's.
	TID int `json:"tid"`
}

// Aux is an entry of the auxiliary vector (getauxval(3)).
type Aux struct {
	// Type is AT_... of elf.h.
	Type  uint64        `json:"type"`
	Value evidence.Addr `json:"value"`
}

// Mapping is a line of /proc/PID/maps, with what identifies its file.
type Mapping struct {
	Start       evidence.Addr `json:"start"`
	End         evidence.Addr `json:"end"`
	Offset      evidence.Addr `json:"offset"`
	Permissions string        `json:"permissions"` // "r-xp"
	Path        Text          `json:"path,omitempty"`
	BuildID     string        `json:"build_id,omitempty"` // of an object, in hexadecimal
	File        *File         `json:"file,omitempty"`
}

// Parent says which event of the parent's recording made this process. The
// parent's recording is the directory that holds this one's children
// directory; a path is not stored, for none could be trusted.
type Parent struct {
	// PID is its process, Thread the one that made this one.
	PID     int    `json:"pid"`
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal"` // of the fork or exec among the thread's events; 0: unknown
	// Exec is set if the process executed another program: nothing of the
	// parent's memory is left, so this recording replays by itself.
	Exec bool `json:"exec,omitempty"`
}

// Child is a recording in this one's directory of children.
type Child struct {
	Path string `json:"path"` // relative, with slashes: children/4711-1
	// PID is the child's process, Thread the parent's thread that made it.
	PID     int    `json:"pid"`
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal"`        // as Parent.Ordinal
	Exec    bool   `json:"exec,omitempty"` // as Parent.Exec
}

// Unrecorded is a process that ended with another status than 0, or by a signal, and of
// which there is no recording of its end: it executed a program that was not recorded. One
// with the recording's own PID is the recorded process, after its recording ended.
type Unrecorded struct {
	// PID is as the kernel had it; Program is the executable, if it is known.
	PID     int     `json:"pid"`
	Program Text    `json:"program,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Ended is when it was seen to end.
	Ended *time.Time `json:"ended,omitempty"`
}

// OutcomeKind is how a recording ended.
type OutcomeKind string

// The ends of a recording.
const (
	// OutcomeRunning: the recorder did not live to write an end.
	OutcomeRunning OutcomeKind = "running"
	// OutcomeSignal: a signal ended the process.
	OutcomeSignal OutcomeKind = "signal"
	// OutcomeExit: the process ended with a status other than 0.
	OutcomeExit OutcomeKind = "exit"
	// OutcomePassed: the process ended with status 0.
	OutcomePassed OutcomeKind = "passed"
	// OutcomeExec: the process executed another program.
	OutcomeExec OutcomeKind = "exec"
	// OutcomeCut: recording ended before the process did; Text says why.
	OutcomeCut OutcomeKind = "cut"
)

// Outcome is how the recorded process ended.
type Outcome struct {
	Kind OutcomeKind `json:"kind"`
	// Signal is the number of the one that ended the process, Status exit(2)'s.
	Signal int `json:"signal,omitempty"`
	Status int `json:"status,omitempty"`
	// Thread is the index of the thread that failed, TID its kernel id.
	Thread uint32 `json:"thread,omitempty"`
	TID    int    `json:"tid,omitempty"`
	// Sender is the process that sent the signal (si_pid); 0: the kernel did, as for a
	// fault, or it is not known.
	Sender int `json:"sender,omitempty"`
	// PC is where the thread stood; FaultAddr is the siginfo's address of a
	// signal that has one.
	PC        *evidence.Addr `json:"pc,omitempty"`
	FaultAddr *evidence.Addr `json:"fault_address,omitempty"`
	// Evidence is what the agent's heap found, as one line; empty: nothing.
	Evidence string `json:"evidence,omitempty"`
	// Mismatched counts the frees by another interface than that of the allocation
	// (new[] and delete, malloc and delete), which the process survived.
	Mismatched uint64 `json:"mismatched_frees,omitempty"`
	// Stuck says why no thread could go on, of a recording that hunts: it ended so.
	Stuck Stuck `json:"stuck,omitempty"`
	// Relocked counts, by thread, the mutexes that it had taken without an event since its
	// last one, of a process that a signal ended which leaves no core.
	Relocked map[uint32]uint64 `json:"relocked,omitempty"`
	// Cut is how the process ended, of a recording that ended before it; nil: not known.
	Cut *Outcome `json:"cut,omitempty"`
	// MemoryKills is how many processes the kernel killed for lack of memory between the
	// run's start and the end of this one by SIGKILL; the kernel does not say which.
	MemoryKills uint64 `json:"memory_kills,omitempty"`
	// Text says more where there is more to say.
	Text string `json:"text,omitempty"`
	// Declared is why the run failed though its processes ended well; nil: it is not said.
	Declared *Declared `json:"declared,omitempty"`
}

// Limit is something that the recording cannot bring back.
type Limit struct {
	Kind string `json:"kind"` // a LimitKind's name, or the tracer's own
	Text string `json:"text"` // in words
	// Thread and Ordinal are the event's; 0: the tracer's own.
	Thread  uint32 `json:"thread,omitempty"`
	Ordinal uint64 `json:"ordinal,omitempty"`
}

// Times are of the recorded run.
type Times struct {
	// Started and Ended are the tracer's clock's; Ended is missing of a run that was
	// not seen to end.
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	// UserNS and SystemNS are the process's processor times in nanoseconds.
	UserNS   int64 `json:"user_ns,omitempty"`
	SystemNS int64 `json:"system_ns,omitempty"`
}

// Sizes are of the recording's files in bytes, when it was complete.
type Sizes struct {
	// Log, Data and Core are the files of these names.
	Log  int64 `json:"log,omitempty"`
	Data int64 `json:"data,omitempty"`
	Core int64 `json:"core,omitempty"`
}

// Object is a file that a portable recording brings along.
type Object struct {
	Path   Text   `json:"path"`   // in the process
	Stored string `json:"stored"` // relative, with slashes: objects/...
	SHA256 string `json:"sha256"` // of the file, in hexadecimal
}
