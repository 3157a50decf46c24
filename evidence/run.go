package evidence

// Run is the processes of a recorded run that failed, in the order of their ends. There is
// one where others failed than the process that a Case is about, or that is not the one that
// was started.
type Run struct {
	Processes []RunProcess `json:"processes"`
	// Omitted counts processes before those that ended with a status other than 0, or by a
	// signal that leaves no core, and are left out.
	Omitted int `json:"omitted,omitempty"`
}

// RunProcess is how a process of a recorded run ended.
type RunProcess struct {
	// PID is the process, Parent the one that made it; 0 if that is not of the run.
	PID    int `json:"pid"`
	Parent int `json:"parent,omitempty"`
	// Program is its executable; empty if it is not known.
	Program string `json:"program,omitempty"`
	// First is the process that was started, Here the one that the Case is about.
	First bool `json:"first,omitempty"`
	Here  bool `json:"here,omitempty"`
	// Signal is the name of the signal that ended it, Status its exit status otherwise.
	Signal string `json:"signal,omitempty"`
	Status int    `json:"status,omitempty"`
	// Heap is what the recorder's heap found damaged, as one line.
	Heap string `json:"heap,omitempty"`
	// Unknown: how it ended is not known.
	Unknown bool `json:"unknown,omitempty"`
	// Recording is the directory of its recording. Unrecorded: what it executed last was not
	// recorded, and Recording, unless empty, is of what it did before.
	Recording  string `json:"recording,omitempty"`
	Unrecorded bool   `json:"unrecorded,omitempty"`
}
