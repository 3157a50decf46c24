package replay

import "fmt"

// syscallName names a system call.
func syscallName(number uint64) string { return fmt.Sprintf("system call %d", number) }
