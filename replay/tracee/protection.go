package tracee

import "syscall"

// Protection takes pages of the process away from its threads, so that accesses fault.
type Protection interface {
	// Protect is called before a stopped thread resumes with a signal (0: none). It returns the
	// signal that the thread still has to receive.
	Protect(t *Thread, signal syscall.Signal) (syscall.Signal, error)
	// Lift gives the pages back until a thread resumes. The thread is stopped.
	Lift(t *Thread) error
	// Own changes mappings to those that the program has made.
	Own(Mappings)
	// AtCall handles a thread that is about to make a system call, or has made one. again: it makes
	// the call once more when it resumes.
	AtCall(t *Thread) (again bool, err error)
}

// LiftProtection gives the process the pages that a Protection has taken away until a thread
// resumes. All threads are stopped.
func (p *Process) LiftProtection() error {
	if p.Protection == nil {
		return nil
	}
	for _, t := range p.Threads {
		if t.Stopped {
			return p.Protection.Lift(t)
		}
	}
	return nil
}

// Mappings reads the mappings as the program has made them.
func (p *Process) Mappings() (Mappings, error) {
	maps, err := ReadMaps(p.PID)
	if err == nil && p.Protection != nil {
		p.Protection.Own(maps)
	}
	return maps, err
}
