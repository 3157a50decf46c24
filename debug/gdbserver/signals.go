package gdbserver

import "strings"

// gdb's numbers of no signal, SIGTRAP and SIGINT.
const (
	gdbNone      = 0
	gdbTrap      = 5
	gdbInterrupt = 2
)

// unknownSignal is gdb's number of a signal that gdb does not know.
const unknownSignal = 143

// gdbSignal is gdb's number of a signal (gdb's include/gdb/signals.def), or unknownSignal.
func gdbSignal(signal int) int {
	own := map[int]int{7: 10, 10: 30, 12: 31, 31: 12, 17: 20, 18: 19, 19: 17, 20: 18, 23: 16, 29: 23, 30: 32, 32: 77, 64: 78}
	switch n, differs := own[signal]; {
	case differs:
		return n
	case signal <= 15 || signal >= 21 && signal <= 28:
		return signal
	case signal >= 33 && signal <= 63:
		return signal + 12
	}
	return unknownSignal
}

// passSignals answers QPassSignals: the signals that do not stop the program. A debugger that never sends it sees none.
func (s *Server) passSignals(list string) (string, error) {
	passed := map[uint64]bool{}
	for _, digits := range strings.Split(list, ";") {
		if digits == "" {
			continue
		}
		n, err := parseHex(digits)
		if err != nil {
			return "", err
		}
		passed[n] = true
	}
	s.signals = 0
	for signal := 1; signal <= 64; signal++ {
		if !passed[uint64(gdbSignal(signal))] {
			s.signals = s.signals.With(signal)
		}
	}
	return "OK", nil
}
