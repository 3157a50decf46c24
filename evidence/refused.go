package evidence

import "fmt"

// RefusedCall is a system call that the recorder did not pass on to the kernel. A program
// that depends on it fails while it is recorded, and not otherwise.
type RefusedCall struct {
	// Call is its name. Error is what it was answered with ("ENOSYS"); empty: as if it
	// had been done, as filters for system calls are, which are not enforced.
	Call  string    `json:"call"`
	Error ErrorName `json:"error,omitempty"`
	// Why says why the recorder refuses it.
	Why string `json:"why"`
	// Moment is that of the first such call.
	Moment Moment `json:"moment"`
}

func (r *RefusedCall) check() error {
	if r.Call == "" || r.Why == "" {
		return fmt.Errorf("a refused call has no name or no reason: %+v", *r)
	}
	return nil
}
