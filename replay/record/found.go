package record

import (
	"encoding/json"
	"fmt"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// ScheduleName is the file of a recording with the preemptions that a replay needs in addition
// to the recorded order. It exists if a search found some.
const ScheduleName = "schedule"

// FoundVersion is the version of the file.
const FoundVersion = 1

// Found is the result of a search: how a replay of the recording reaches the recorded end.
type Found struct {
	Version     int                   `json:"version"`
	Timing      Timing                `json:"timing"`
	Preemptions []eventlog.Preemption `json:"preemptions"`
	// Partial: the recorded end was not reached. No replay uses the preemptions, but a search
	// can continue from them.
	Partial bool `json:"partial,omitempty"`
	// OtherState counts the ranges of memory, registers and mappings that differ from the core, where
	// the end is at the recorded place all the same.
	OtherState int `json:"other_state,omitempty"`
	// By is what found them, Attempts how many replays that took, Level the last kind of
	// preemption that was needed.
	By       string `json:"by"`
	Attempts int    `json:"attempts"`
	Level    string `json:"level"`
	// Tried are the plans of a Partial result that need not be tried again, the last MostTried.
	Tried TriedPlans `json:"tried,omitempty"`
}

const (
	mostFound     = 4 << 20 // maximum size of the file, in bytes
	mostFoundText = 64
)

// Check returns an error if the file is invalid.
func (f *Found) Check() error {
	if f.Timing != TimingEager && f.Timing != TimingLazy {
		return foundError(fmt.Sprintf("has the timing %q", f.Timing))
	}
	if f.Attempts < 0 || f.OtherState < 0 || len(f.By) > mostFoundText || len(f.Level) > mostFoundText {
		return foundError("does not say who found it")
	}
	if err := eventlog.CheckPreemptions(f.Preemptions); err != nil {
		return foundError(err.Error())
	}
	return nil
}

func foundError(what string) error {
	return &eventlog.CorruptError{File: ScheduleName, Offset: 0, What: what}
}

func (f *Found) timing() Timing {
	if f == nil {
		return ""
	}
	return f.Timing
}

// DecodeFound decodes the file and checks it.
func DecodeFound(data []byte) (*Found, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, foundError(err.Error())
	}
	switch {
	case head.Version > FoundVersion:
		return nil, &eventlog.VersionError{File: ScheduleName, Got: head.Version, Want: FoundVersion}
	case head.Version < 1:
		return nil, foundError(fmt.Sprintf("has version %d", head.Version))
	}
	f := new(Found)
	if err := decodeStrict(data, f); err != nil {
		return nil, foundError(err.Error())
	}
	return f, f.Check()
}

// StateLimits says that replays of the recording end in another state than it did; nil: that is not known of them.
func (r *Recording) StateLimits() ([]evidence.Limit, error) {
	found, err := r.Found()
	if err != nil || found == nil || found.OtherState == 0 {
		return nil, err
	}
	return []evidence.Limit{evidence.Limit{Code: evidence.LimitOtherState, Severe: true, Subject: r.Dir, Count: uint64(found.OtherState)}.Worded()}, nil
}
