package record

import "syscall"

// Fatal reports whether nobody in a thread's process handles or ignores a signal.
func Fatal(tid int, s syscall.Signal) bool { return isFatal(tid, s) }
