package verdict

import (
	"bytes"
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
	given, err := inputOf(w.rec)
	return err == nil && slices.ContainsFunc(w.Passing, func(r *record.Recording) bool {
		other, err := inputOf(r)
		return err == nil && bytes.Equal(given, other)
	})
}

// readCalls are the system calls that read input.
var readCalls = []string{"read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg"}

// inputOf is a hash of a run's arguments, and of what each of its threads read from files and connections. It does not have what is in
// mapped files.
func inputOf(rec *record.Recording) ([]byte, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", rec.Manifest.Program.Args[min(1, len(rec.Manifest.Program.Args)):])
	for _, thread := range rec.Log.Threads() {
		for e, err := range rec.Log.Events(thread) {
			if err != nil {
				return nil, err
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
	return sum.Sum(nil), nil
}
