package nightly

import (
	"context"
	"fmt"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
)

// Remote has failures analysed elsewhere.
type Remote interface {
	// Analyse returns the result for a failure. It may be called many times at once. Its error is
	// that of the context, an *UnableError, or says that the others cannot be reached.
	Analyse(ctx context.Context, t Task) (*corpus.Result, error)
	// Stored says that the corpus has the result of an entry, or will never have it.
	Stored(ctx context.Context, entry string) error
	// Fleet describes the work so far.
	Fleet() *Fleet
}

// Task is a failure to analyse elsewhere.
type Task struct {
	Entry *corpus.Entry
	// Failure has the entry's files, Passing recordings to compare with.
	Failure Place
	Passing []Place
	// Time and Memory are the budget of each process, Memory in bytes.
	Time   time.Duration
	Memory int64
	// Retry wants a new result, though an earlier night may have got one.
	Retry bool
	// Priority is its place in the order of the night, 1 for the first.
	Priority int
}

// Place is the directory of an entry with the part of it that counts.
type Place struct {
	// Dir has all files of the entry. Inside is the directory of the recording in it, with
	// slashes; "." for itself.
	Dir, Inside string
}

// Fleet is the work of a night's workers.
type Fleet struct {
	// Engine is the server's URL, without secrets; empty: it ran in this process.
	Engine string `json:"engine,omitempty"`
	// Workers are those that sent a result, by name.
	Workers []FleetWorker `json:"workers"`
	// Repeated counts the failures that took more than one try.
	Repeated int `json:"repeated,omitempty"`
	// SetAside are failures that were given up after too many tries.
	SetAside []SetAside `json:"set_aside,omitempty"`
	// Unable are failures that no worker could analyse, by what the workers lacked.
	Unable []Unable `json:"unable,omitempty"`
}

// FleetWorker is a worker.
type FleetWorker struct {
	// Name is the worker's own name, Host that of its host.
	Name string `json:"name"`
	Host string `json:"host"`
	// Failures counts the results of this worker that the night counts.
	Failures int `json:"failures"`
	// MemoryBy and MemoryWhy are as those of Run.
	MemoryBy  analysis.Enforcement `json:"memory_by"`
	MemoryWhy string               `json:"memory_why,omitempty"`
	// Confined says that its analyses ran without network, as a user without rights. FreeWhy
	// says why they did not, though they should have.
	Confined bool   `json:"confined"`
	FreeWhy  string `json:"unconfined_why,omitempty"`
}

// SetAside is a failure that too many tries did not finish.
type SetAside struct {
	// Entry is its name in the corpus, Program the name of the executable.
	Entry   string `json:"entry"`
	Program string `json:"program"`
	// Tries are the tries, the first one first.
	Tries []Try `json:"tries"`
}

// Try is one try of a worker.
type Try struct {
	// Worker and Host name the worker, Began is when it began.
	Worker string    `json:"worker"`
	Host   string    `json:"host"`
	Began  time.Time `json:"began"`
	// Error is the log of its failure; empty: the worker ended, or was not heard of any more.
	Error string `json:"error,omitempty"`
}

// Unable counts failures that no worker could analyse for one reason.
type Unable struct {
	// Lack is what the workers lacked; nil: there was no worker.
	Lack *Lack `json:"lack,omitempty"`
	// Entries names the failures.
	Entries []string `json:"entries"`
}

// LackKind is a kind of thing that a host can lack.
type LackKind string

// The things that a host can lack.
const (
	LackVersion      LackKind = "version"      // of diagnose
	LackArchitecture LackKind = "architecture" // of the processor
	LackFeature      LackKind = "feature"      // of the processor
	LackKernel       LackKind = "kernel"       // an ability of the kernel
	LackObject       LackKind = "object"       // a file with a build-id
)

// Lack is something that a host lacks for a failure.
type Lack struct {
	Kind LackKind `json:"kind"`
	// Name is the version, the architecture, the feature, the ability or the file's path; BuildID
	// the file's build-id.
	Name    string `json:"name"`
	BuildID string `json:"build_id,omitempty"`
}

// UnableError says that no worker can analyse a failure.
type UnableError struct {
	// Lack is what a worker lacks; nil: there is no worker.
	Lack *Lack
}

func (e *UnableError) Error() string {
	if e.Lack == nil {
		return "nightly: there is no worker"
	}
	return fmt.Sprintf("nightly: every worker lacks the %s %q", e.Lack.Kind, e.Lack.Name)
}

// noteUnable leaves a failure to another night.
func (n *night) noteUnable(entry string, lack *Lack) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unable[entry] = true
	for i := range n.lacking {
		u := &n.lacking[i]
		if u.Lack == nil && lack == nil || u.Lack != nil && lack != nil && *u.Lack == *lack {
			u.Entries = append(u.Entries, entry)
			return
		}
	}
	n.lacking = append(n.lacking, Unable{Lack: lack, Entries: []string{entry}})
}
