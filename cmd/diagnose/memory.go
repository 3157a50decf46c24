package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/internal/procmaps"
)

// dropPages gives back the pages of this program's file. It is called where the code that runs next
// is another than the code before: the initialisers of packages, which are all over the file, the
// analysis, the report. The kernel maps the pages around each page that is used, so those that are not used
// any more are a third of the memory of a short command. A page that is used again is mapped again,
// from the page cache. Nothing depends on it, so errors are of no interest.
func dropPages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := procmaps.Read(os.Getpid())
	if err != nil {
		return
	}
	for _, m := range maps {
		// Pages that are not writable are those of the file. Others may have been changed.
		if m.Path == exe && strings.HasPrefix(m.Perms, "r-") && m.Perms[3] == 'p' {
			unix.Syscall(unix.SYS_MADVISE, uintptr(m.Start), uintptr(m.End-m.Start), unix.MADV_DONTNEED)
		}
	}
}
