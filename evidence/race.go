package evidence

import "fmt"

// DataRace is a race that Go's race detector reported (go build -race). The detector saw it; that it has to do with the failure is
// not known.
type DataRace struct {
	// Report is the file with the text, Times how often it has this race.
	Report string `json:"report"`
	Times  int    `json:"times"`
	// Accesses are the later one, then the earlier ones.
	Accesses []RaceAccess `json:"accesses"`
	// Created are the goroutines of the accesses, other than the main one.
	Created []RaceGoroutine `json:"created,omitempty"`
	Proof   Proof           `json:"proof"`
}

// RaceAccess is an access of a DataRace.
type RaceAccess struct {
	// Write: it stored something; otherwise it read.
	Write bool `json:"write"`
	Addr  Addr `json:"addr"`
	// Goroutine is the detector's number, 0 that of the main one. It is not the runtime's.
	Goroutine int `json:"goroutine"`
	// Stack is innermost first; empty where the detector had lost it.
	Stack []Site `json:"stack,omitempty"`
}

// RaceGoroutine is where a goroutine was created.
type RaceGoroutine struct {
	// Goroutine is the detector's number.
	Goroutine int `json:"goroutine"`
	// Finished: it had ended when the race was reported.
	Finished bool   `json:"finished,omitempty"`
	Stack    []Site `json:"stack,omitempty"`
}

func (r *DataRace) check() error {
	if len(r.Accesses) < 2 || r.Times < 1 || !r.Proof.Valid() {
		return fmt.Errorf("a data race of %d accesses, %d times, proof %q", len(r.Accesses), r.Times, r.Proof)
	}
	return nil
}
