package verdict

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// passedSameInput reports whether a passing run was given what the failing one was. If none was, that a passing run decided otherwise says
// nothing about the program: another decision may be right for another input.
func (w *work) passedSameInput() bool {
	if len(w.Passing) == 0 {
		return false
	}
	given := w.inputs.of(w.rec)
	return given.err == nil && slices.ContainsFunc(w.Passing, func(r *record.Recording) bool {
		other := w.inputs.of(r)
		return other.err == nil && other.hash == given.hash
	})
}

// inputs are what runs were given, computed once for each recording, since its whole log is read for it.
type inputs map[*record.Recording]runInput

// runInput is what one run was given; err says why that is not known.
type runInput struct {
	hash [sha256.Size]byte
	err  error
}

func (x inputs) of(rec *record.Recording) runInput {
	given, known := x[rec]
	if !known {
		given.hash, given.err = inputOf(rec)
		x[rec] = given
	}
	return given
}

// readCalls are the system calls that read input.
var readCalls = []string{"read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg"}

// inputOf is a hash of a run's arguments, and of what each of its threads read from files and connections. It does not have what is in
// mapped files.
func inputOf(rec *record.Recording) (hash [sha256.Size]byte, err error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", rec.Manifest.Program.Args[min(1, len(rec.Manifest.Program.Args)):])
	for _, thread := range rec.Log.Threads() {
		for e, err := range rec.Log.Events(thread) {
			if err != nil {
				return hash, err
			}
			if e.Kind != eventlog.KindSyscall || !slices.Contains(readCalls, eventlog.SyscallName(e.Object)) {
				continue
			}
			for _, p := range e.Payloads {
				if p.Kind == eventlog.PayloadOut {
					fmt.Fprintf(sum, "%d %d\n", thread, len(p.Data))
					sum.Write(p.Data)
				}
			}
		}
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}
