package record

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
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

// ManifestVersion is the newest version that this package reads. Version 2 has digests of
// shared code (File.SHA256), version 3 has StartFile, version 4 LinkerCache; a manifest without any
// is written as version 1, which an older diagnose reads. Version 5 has Turns,
// version 6 Atomics.
const ManifestVersion = 6

// maxManifest is the maximum size of a manifest: the environment and the arguments may have 6
// MiB (execve(2)), each byte up to six in JSON.
const maxManifest = 64 << 20

// Manifest describes a recording. All other data of the recording is in the other files of the
// directory.
type Manifest struct {
	// Version is the lowest version that has all fields of this manifest.
	Version int `json:"version"`
	// Producer is the version of diagnose that recorded.
	Producer string  `json:"producer,omitempty"`
	Program  Program `json:"program"`
	Agent    Agent   `json:"agent"`
	Machine  Machine `json:"machine"`
	Start    Start   `json:"start"`
	// PID is the recorded process. Parent is nil unless the recording is a child of another.
	PID      int     `json:"pid"`
	Parent   *Parent `json:"parent,omitempty"`
	Children []Child `json:"children,omitempty"`
	// Unrecorded are child processes that failed and of whose failing program there is no
	// recording.
	Unrecorded []Unrecorded     `json:"unrecorded,omitempty"`
	Outcome    Outcome          `json:"outcome"`
	Limits     []eventlog.Limit `json:"limits,omitempty"`
	// Refused are the system calls that were not passed on to the kernel, each once.
	Refused  []Refused `json:"refused,omitempty"`
	Times    Times     `json:"times"`
	Sizes    Sizes     `json:"sizes"`
	Portable []Object  `json:"portable,omitempty"`
	// StartFile is the file StartName as the recorder wrote it; nil if it wrote none, as earlier
	// versions did not note it.
	StartFile *StoredFile `json:"start_file,omitempty"`
	// LinkerCache is the file LinkerCacheName as the recorder wrote it, with size 0 and no file if the
	// system had none; nil if the recorder did not look, as earlier versions.
	LinkerCache *StoredFile `json:"linker_cache,omitempty"`
	// Hunt is nil unless the recorder chose the order in which the threads ran.
	Hunt *HuntedRun `json:"hunt,omitempty"`
	// Turns is nil unless the program's threads took turns. Otherwise, without Hunt, they ran as the kernel
	// had them, and the recording has the order of events alone.
	Turns *Turns `json:"turns,omitempty"`
	// Atomics is nil unless the recording has the order of atomic instructions.
	Atomics *Atomics `json:"atomics,omitempty"`
}

// Program is the executed program and its parameters. A replay executes it with the same
// parameters.
type Program struct {
	// Path is the executable with symbolic links resolved.
	Path Text `json:"path"`
	// Executed is the name given to execve(2) (AT_EXECFN): a name of Path, or a script whose
	// interpreter Path is. Empty: Path. Script says which.
	Executed Text `json:"executed,omitempty"`
	Script   bool `json:"script,omitempty"`
	// Args are the arguments of the process, with args[0]. Those of a script begin with those
	// of its interpreter: see Script.
	Args    []Text `json:"args"`
	Environ []Text `json:"environ"`
	// Directory is the working directory at the start, Umask the file mode mask.
	Directory Text `json:"directory"`
	// BuildID is the build-id of Path, in hexadecimal.
	BuildID string `json:"build_id,omitempty"`
	File    File   `json:"file"`
	// Personality is the personality(2) at the start.
	Personality uint32 `json:"personality"`
	// StackLimit is the soft RLIMIT_STACK in bytes, which decides where the
	// kernel puts mappings; ^0 is unlimited.
	StackLimit uint64 `json:"stack_limit,string"`
	Umask      uint32 `json:"umask"` // the umask(2) at the start
}

// File identifies a file without reading it.
type File struct {
	// Device, Inode and Size are those of stat(2).
	Device uint64 `json:"device,string"`
	Inode  uint64 `json:"inode,string"`
	Size   int64  `json:"size"`
	// MTimeNS is the time of the last change, in nanoseconds since 1970.
	MTimeNS int64 `json:"mtime_ns"`
	// SHA256 is the digest of the contents, in hexadecimal, of code that others than its owner
	// could change when it was recorded (SharedFile).
	SHA256 string `json:"sha256,omitempty"`
}

// Agent is the library that recorded. A replay needs the same library.
type Agent struct {
	Path   Text   `json:"path"`
	SHA256 string `json:"sha256"` // of the file, in hexadecimal
}

// Machine describes the machine. A replay's machine must have the same properties.
type Machine struct {
	Kernel string `json:"kernel"` // uname -r
	CPU    string `json:"cpu"`    // model name of /proc/cpuinfo
	// Features are the flags of /proc/cpuinfo. libc chooses its functions by them.
	Features []string `json:"features,omitempty"`
	// CPUs is the number of processors.
	CPUs int `json:"cpus"`
}

// Start is the state of the process when the engine started (DG_TRAP_HELLO).
type Start struct {
	// Random is the 16 bytes that AT_RANDOM points to, in hexadecimal.
	Random string `json:"random"`
	Auxv   []Aux  `json:"auxv"`
	// Mappings are /proc/PID/maps in ascending order.
	Mappings []Mapping `json:"mappings"`
	// TID is the id of the first thread.
	TID int `json:"tid"`
}

// Aux is an entry of the auxiliary vector (getauxval(3)).
type Aux struct {
	// Type is one of AT_... of elf.h.
	Type  uint64        `json:"type"`
	Value evidence.Addr `json:"value"`
}

// Mapping is a line of /proc/PID/maps, with the identity of its file.
type Mapping struct {
	Start       evidence.Addr `json:"start"`
	End         evidence.Addr `json:"end"`
	Offset      evidence.Addr `json:"offset"`
	Permissions string        `json:"permissions"` // "r-xp"
	Path        Text          `json:"path,omitempty"`
	BuildID     string        `json:"build_id,omitempty"` // of an object, in hexadecimal
	File        *File         `json:"file,omitempty"`
}

// Parent says which event of the parent's recording created this process. The parent's
// recording is the directory that holds this one's children directory. The path is not stored,
// since it could not be trusted.
type Parent struct {
	// PID is the parent process, Thread its thread that created this process.
	PID     int    `json:"pid"`
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal"` // of the fork or exec among the thread's events; 0: unknown
	// Exec is set if the process executed another program. Then nothing of the parent's memory
	// is left, so this recording replays by itself.
	Exec bool `json:"exec,omitempty"`
}

// Child is a recording in this one's directory of children.
type Child struct {
	Path string `json:"path"` // relative, with slashes: children/4711-1
	// PID is the child process, Thread the parent's thread that created it.
	PID     int    `json:"pid"`
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal"`        // as Parent.Ordinal
	Exec    bool   `json:"exec,omitempty"` // as Parent.Exec
}

// Unrecorded is a process that ended with a status other than 0, or by a signal, and whose end
// is in no recording: it executed a program that was not recorded. One with the recording's own
// PID is the recorded process, after its recording ended.
type Unrecorded struct {
	// PID is the id in the kernel. Program is the executable, if it is known.
	PID     int     `json:"pid"`
	Program Text    `json:"program,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Ended is the time at which its end was seen.
	Ended *time.Time `json:"ended,omitempty"`
}

// OutcomeKind is how a recording ended.
type OutcomeKind string

// The ways in which a recording ends.
const (
	// OutcomeRunning: the recorder ended before it wrote the end.
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
	// Signal is the number of the signal that ended the process, Status the status of exit(2).
	Signal int `json:"signal,omitempty"`
	Status int `json:"status,omitempty"`
	// Thread is the index of the thread that failed, TID its id in the kernel.
	Thread uint32 `json:"thread,omitempty"`
	TID    int    `json:"tid,omitempty"`
	// Sender is the process that sent the signal (si_pid); 0: the kernel sent it, as for a
	// fault, or it is not known.
	Sender int `json:"sender,omitempty"`
	// PC is the program counter of the thread. FaultAddr is the address in the siginfo_t of a
	// signal that has one.
	PC        *evidence.Addr `json:"pc,omitempty"`
	FaultAddr *evidence.Addr `json:"fault_address,omitempty"`
	// Evidence is the finding of the agent's heap, as one line; empty: none.
	Evidence string `json:"evidence,omitempty"`
	// Mismatched counts the frees by an interface other than that of the allocation (new[] and
	// delete, malloc and delete), which the process survived.
	Mismatched uint64 `json:"mismatched_frees,omitempty"`
	// Stuck says why no thread could continue, if a recording that hunts ended for that reason.
	Stuck Stuck `json:"stuck,omitempty"`
	// Relocked counts, by thread, the mutexes that it had taken without an event since its last
	// one, if the process was ended by a signal that leaves no core.
	Relocked map[uint32]uint64 `json:"relocked,omitempty"`
	// Asleep are the threads that slept in the kernel on a futex when that signal came, with its address.
	Asleep map[uint32]evidence.Addr `json:"asleep,omitempty"`
	// Cut is how the process ended, if the recording ended before it; nil: not known.
	Cut *Outcome `json:"cut,omitempty"`
	// MemoryKills is how many processes the kernel killed for lack of memory between the start
	// of the run and the end of this process by SIGKILL. The kernel does not say which ones.
	MemoryKills uint64 `json:"memory_kills,omitempty"`
	// Text has more details, if there are any.
	Text string `json:"text,omitempty"`
	// Declared is why the run failed though its processes ended normally; nil: not declared.
	Declared *Declared `json:"declared,omitempty"`
}

// Times are those of the recorded run.
type Times struct {
	// Started and Ended are by the tracer's clock. Ended is missing if the end was not seen.
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	// UserNS and SystemNS are the processor times of the process in nanoseconds.
	UserNS   int64 `json:"user_ns,omitempty"`
	SystemNS int64 `json:"system_ns,omitempty"`
}

// Sizes are the sizes of the recording's files in bytes when it was complete.
type Sizes struct {
	// Log, Data and Core are the files of these names.
	Log  int64 `json:"log,omitempty"`
	Data int64 `json:"data,omitempty"`
	Core int64 `json:"core,omitempty"`
}

// StoredFile is a file of a recording that does not change any more.
type StoredFile struct {
	Size   int64  `json:"size"`   // in bytes
	SHA256 string `json:"sha256"` // in hexadecimal
}

// Stored describes a file with these contents.
func Stored(data []byte) *StoredFile {
	sum := sha256.Sum256(data)
	return &StoredFile{int64(len(data)), hex.EncodeToString(sum[:])}
}

// Object is a file that a portable recording contains.
type Object struct {
	Path   Text   `json:"path"`   // in the process
	Stored string `json:"stored"` // relative, with slashes: objects/...
	SHA256 string `json:"sha256"` // of the file, in hexadecimal
}
