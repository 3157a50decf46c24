// Package signalsets reads the signal sets of a thread from /proc/TID/status
// (proc_pid_status(5)).
package signalsets

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Set is a set of signals: bit N-1 is signal N.
type Set uint64

// Of returns the set of the given signals, which are from 1 to 64.
func Of(signals ...syscall.Signal) (s Set) {
	for _, signal := range signals {
		s |= 1 << (signal - 1)
	}
	return s
}

// Has reports whether a signal from 1 to 64 is in the set.
func (s Set) Has(signal syscall.Signal) bool { return s&Of(signal) != 0 }

// Sets are the signal sets of a thread. Those of its process are the same for all its threads.
type Sets struct {
	Pending       Set // for the thread: SigPnd
	SharedPending Set // for its process: ShdPnd
	Blocked       Set // by the thread: SigBlk
	Ignored       Set // by its process: SigIgn
	Caught        Set // by handlers of its process: SigCgt
}

// Read returns the signal sets of a thread. A thread that has ended and was waited for has none:
// an error of the kind os.ErrNotExist.
func Read(tid int) (Sets, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return Sets{}, err
	}
	s, err := Parse(status)
	if err != nil {
		return Sets{}, fmt.Errorf("/proc/%d/status: %w", tid, err)
	}
	return s, nil
}

// Parse reads the text of a status file. A set without a line is an error.
func Parse(status []byte) (s Sets, err error) {
	for _, set := range []struct {
		name string
		to   *Set
	}{{"SigPnd", &s.Pending}, {"ShdPnd", &s.SharedPending}, {"SigBlk", &s.Blocked}, {"SigIgn", &s.Ignored}, {"SigCgt", &s.Caught}} {
		if *set.to, err = find(status, set.name); err != nil {
			return Sets{}, fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return s, nil
}

// find reads the set of one line. The kernel escapes line ends in the thread's name, which comes
// before the sets.
func find(status []byte, name string) (Set, error) {
	_, rest, found := bytes.Cut(status, []byte("\n"+name+":\t"))
	if !found {
		return 0, errors.New("no such line")
	}
	value, _, _ := bytes.Cut(rest, []byte("\n"))
	bits, err := strconv.ParseUint(string(value), 16, 64)
	return Set(bits), err
}
