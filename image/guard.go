package image

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"diagnose/evidence"
)

// guarded runs f, which touches memory-mapped files. If a mapped file is
// truncated the kernel raises SIGBUS (mmap(2)). That becomes an error; every
// other panic stays a panic.
func guarded(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface {
			runtime.Error
			Addr() uintptr
		})
		if !ok {
			panic(r)
		}
		err = fmt.Errorf("a mapped file shrank while it was read (fault at %v)", evidence.Addr(fault.Addr()))
	}()
	return f()
}

// copyMapped copies from a memory-mapped file.
func copyMapped(dst, src []byte) (n int, err error) {
	err = guarded(func() error {
		n = copy(dst, src)
		return nil
	})
	return n, err
}
