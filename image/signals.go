package image

import "golang.org/x/sys/unix"

// endsProcess reports whether a signal's default action ends the process
// (signal(7)). The signals by which debuggers stop a process do not count.
func endsProcess(number int) bool {
	switch unix.Signal(number) {
	case 0, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT, unix.SIGCHLD,
		unix.SIGWINCH, unix.SIGURG:
		return false
	}
	return true
}
