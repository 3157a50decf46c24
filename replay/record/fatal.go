package record

import "syscall"

// Fatal reports whether a thread's process neither handles nor ignores a signal.
func Fatal(tid int, s syscall.Signal) bool { return isFatal(tid, s) }
