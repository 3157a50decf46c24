package recorder

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/futex"
)

// asleepPause is between two looks at the threads of a process that is about to end.
const asleepPause = 20 * time.Millisecond

// sleeper is a thread as proc(5) shows it.
type sleeper struct {
	word     evidence.Addr // of the futex that it sleeps on; 0: it sleeps elsewhere
	switches string        // how often it has given the processor away, in the kernel's lines
}

// sleepers are the futexes that the threads of a process sleep on, by thread, while x is stopped. Nil: some thread ran between two
// looks, so that it may have woken others, or the kernel does not tell. A thread that was woken is not asleep any more, so none of these
// had been signalled.
func sleepers(x *tracee) map[int]evidence.Addr {
	first, ok := lookAtThreads(x)
	if !ok {
		return nil
	}
	time.Sleep(asleepPause)
	second, ok := lookAtThreads(x)
	if !ok || !maps.Equal(first, second) {
		return nil
	}
	words := map[int]evidence.Addr{}
	for tid, s := range second {
		if s.word != 0 {
			words[tid] = s.word
		}
	}
	return words
}

// lookAtThreads looks at all threads of a process but x; ok is false if one of them does not sleep.
func lookAtThreads(x *tracee) (list map[int]sleeper, ok bool) {
	list = map[int]sleeper{}
	for tid := range x.process.threads {
		if tid == x.tid || gone(tid) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
		if err != nil {
			return nil, false
		}
		var s sleeper
		sleeps := false
		for line := range strings.Lines(string(status)) {
			sleeps = sleeps || strings.HasPrefix(line, "State:\tS")
			if strings.Contains(line, "voluntary_ctxt_switches") {
				s.switches += line
			}
		}
		if !sleeps {
			return nil, false
		}
		s.word = sleepsOn(tid)
		list[tid] = s
	}
	return list, true
}

// sleepsOn is the address of the futex that a thread sleeps on (proc(5), /proc/pid/syscall); 0: it does not, or that is not known.
func sleepsOn(tid int) evidence.Addr {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", tid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 || fields[0] != strconv.Itoa(unix.SYS_FUTEX) {
		return 0
	}
	word, err := strconv.ParseUint(fields[1], 0, 64)
	op, err2 := strconv.ParseUint(fields[2], 0, 64)
	if command := futex.Command(op); err != nil || err2 != nil || command != futex.Wait && command != futex.WaitBitset {
		return 0
	}
	return evidence.Addr(word)
}
