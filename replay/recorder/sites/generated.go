package sites

import (
	"fmt"
	"slices"

	"diagnose/internal/procmaps"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
)

// CanProbe reports whether a replay may replace the code at a pc by a jump. In the text of an object file it mostly can. In
// code that the program writes, which replay/breakpoint treats likewise, it can if the instruction alone is long enough.
func CanProbe(memory *ptrace.Memory, tid int, pc uint64) (bool, error) {
	maps, err := procmaps.Read(tid)
	if err != nil {
		return false, fmt.Errorf("the mappings of thread %d: %w", tid, err)
	}
	i := slices.IndexFunc(maps, func(m procmaps.Mapping) bool { return uint64(m.Start) <= pc && pc < uint64(m.End) })
	if i >= 0 && maps[i].Path != "" && maps[i].Perms[1] != 'w' {
		return true, nil
	}
	code := make([]byte, patch.MostInstruction)
	n, err := memory.ReadAt(code, int64(pc)) // fewer at the end of a mapping
	if n == 0 {
		return false, err
	}
	return patch.SingleWindow(code[:n], pc) != nil, nil
}
