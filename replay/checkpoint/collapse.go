package checkpoint

import (
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/procmaps"
	"diagnose/replay/tracee"
)

// collapseEach is after how many copies the kernel is asked again: a write to a page that a copy shares splits the huge page.
const collapseEach = 128

// collapse has the kernel join the pages of large areas to huge ones: a fork, and the end of the copy, take 0.2 us for each page. The contents
// are the same. Where the kernel has no huge pages, copies are slower.
func collapse(p *tracee.Process, tid int) error {
	areas, err := procmaps.ReadAreas(p.PID)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	const huge = 2 << 20
	for i := range areas {
		a := &areas[i]
		start, end := (uint64(a.Start)+huge-1)&^(huge-1), uint64(a.End)&^(huge-1)
		own := a.Path == "" || a.Path == "[heap]"
		dense := a.Resident >= uint64(a.End-a.Start)/10*9 // the others would take much more memory
		if start >= end || !own || !dense || a.Perms != "rw-p" || start < agent.EngineEnd && end > agent.EngineBase {
			continue
		}
		advice := []uint64{unix.MADV_COLLAPSE}
		if a.Has("nh") { // as the recording library's heap, which may be sparse
			advice = []uint64{unix.MADV_HUGEPAGE, unix.MADV_COLLAPSE, unix.MADV_NOHUGEPAGE}
		}
		for _, x := range advice {
			CallIn(tid, unix.SYS_MADVISE, start, end-start, x) //nolint:errcheck // then it stays as it is
		}
	}
	return nil
}
