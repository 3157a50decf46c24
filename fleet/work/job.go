package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"diagnose/corpus"
	"diagnose/fleet/engine"
)

// JobVersion is the version of Job's JSON.
const JobVersion = 1

const (
	// mostJob and mostNeeds are the maximum sizes of the documents in JSON, in bytes.
	mostJob, mostNeeds = 256 << 10, 192 << 10
	// mostPassing is how many passing recordings a job has at most.
	mostPassing = 16
	// longestTime and mostMemory bound a job's budget.
	longestTime = 7 * 24 * time.Hour
	mostMemory  = 1 << 50
)

// Job is one failure to analyse.
type Job struct {
	// Version is JobVersion.
	Version int `json:"version"`
	// ID is a digest of the entry's name and of the version of diagnose: see jobID.
	ID string `json:"id"`
	// Entry is the failure's name in the corpus, Program the executable's, for people.
	Entry   string `json:"entry"`
	Program string `json:"program,omitempty"`
	// Kind is corpus.KindRecording or corpus.KindCore.
	Kind string `json:"kind"`
	// Failure has the files of the entry, Passing recordings to compare with.
	Failure Files   `json:"failure"`
	Passing []Files `json:"passing,omitempty"`
	// Needs is what a host must have.
	Needs Needs `json:"needs"`
	// Time and Memory are the budget of each process, Memory in bytes.
	Time   time.Duration `json:"time_ns"`
	Memory int64         `json:"memory_bytes"`
	// Priority is the place in the order of the night, 1 for the first. The queue keeps the order in
	// which jobs come; this one is for people.
	Priority int `json:"priority"`
	// Made is when the job was put into the queue.
	Made time.Time `json:"made"`
}

// Files are a directory in the engine.
type Files struct {
	// Tree is its reference (engine.PutTree). Inside is the directory in it that counts, with
	// slashes; "." for all of it.
	Tree   string `json:"tree"`
	Inside string `json:"inside"`
}

// jobID returns the same name for the same failure and version: a second job of it is refused as
// long as the first is in the queue, whoever puts it there.
func jobID(entry, version string) string {
	sum := sha256.Sum256([]byte(entry + "\x00" + version))
	return hex.EncodeToString(sum[:16])
}

var (
	idForm    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	entryForm = regexp.MustCompile(`^[0-9a-f]{8,128}$`)
)

// decodeJob reads a job, which may be hostile.
func decodeJob(text []byte) (*Job, error) {
	if len(text) > mostJob {
		return nil, inputf("the job has %d bytes, and %d are allowed", len(text), mostJob)
	}
	var head struct{ Version int }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, inputf("the job: %w", err)
	}
	if head.Version != JobVersion {
		return nil, inputf("the job is of version %d, and this diagnose reads %d", head.Version, JobVersion)
	}
	j := &Job{}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, inputf("the job: %w", err)
	}
	return j, j.check()
}

func (j *Job) check() error {
	switch {
	case !idForm.MatchString(j.ID), !entryForm.MatchString(j.Entry), j.ID != jobID(j.Entry, j.Needs.Diagnose):
		return inputf("the job's names are not those of an entry")
	case j.Kind != corpus.KindRecording && j.Kind != corpus.KindCore:
		return inputf("the job is of the unknown kind %.40q", j.Kind)
	case j.Time <= 0 || j.Time > longestTime || j.Memory <= 0 || j.Memory > mostMemory:
		return inputf("the job's budget of %v and %d bytes is out of bounds", j.Time, j.Memory)
	case len(j.Passing) > mostPassing:
		return inputf("the job has %d passing recordings, and %d are allowed", len(j.Passing), mostPassing)
	}
	for _, f := range append([]Files{j.Failure}, j.Passing...) {
		if err := engine.CheckReference(f.Tree); err != nil {
			return inputf("the job: %w", err)
		}
		if !filepath.IsLocal(filepath.FromSlash(f.Inside)) {
			return inputf("the job's directory %.80q leads out of its files", f.Inside)
		}
	}
	return j.Needs.check()
}

// InputError says that a document from the engine cannot be used.
type InputError struct{ Err error }

func (e *InputError) Error() string { return "work: " + e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }
