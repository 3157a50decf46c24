package record

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// Refused is a system call that the recorder did not pass on to the kernel. A program that
// depends on it fails only while it is recorded.
type Refused struct {
	// Call is its name. Error is the symbol of the error that was returned, "ENOSYS", or empty
	// if success was returned (seccomp filters).
	Call  string `json:"call"`
	Error string `json:"error,omitempty"`
	// Thread and Ordinal identify the event of the first such call; Ordinal is 0 if that is not
	// known.
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal,string"`
}

// Moment is the moment of the first such call; its ordinal is 0 if that is not known.
func (r *Refused) Moment() evidence.Moment {
	return evidence.Moment{Thread: r.Thread, Ordinal: r.Ordinal}
}

// Filter reports whether the call set a filter for system calls, which is not enforced.
func (r *Refused) Filter() bool { return r.Error == "" }

// Why says why the recorder refuses it.
func (r *Refused) Why() string {
	if why := eventlog.WhyRefused(r.Call); why != "" {
		return why
	}
	return "a replay could not do the same"
}

func (r *Refused) check(field string) error {
	if r.Call == "" || len(r.Call) > 64 || len(r.Error) > 32 {
		return &ManifestError{field, fmt.Sprintf("is %q, answered with %q", r.Call, r.Error)}
	}
	return nil
}
