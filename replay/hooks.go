package replay

import (
	"cmp"
	"slices"

	"diagnose/replay/record/eventlog"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
)

// orderHooks sorts hooks by the order of their events in a schedule.
func orderHooks(schedule eventlog.Schedule, hooks []Hook) ([]Hook, error) {
	type key struct {
		thread  uint32
		ordinal uint64
	}
	wanted := map[key]uint64{}
	for _, h := range hooks {
		wanted[key{h.At.Thread, h.At.Ordinal}] = 0
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	done := map[uint32]uint64{}
	position := uint64(0)
	for _, run := range schedule {
		first := done[run.Thread]
		done[run.Thread] = first + uint64(run.Events)
		for k := range wanted {
			if k.thread == run.Thread && k.ordinal > first && k.ordinal <= first+uint64(run.Events) {
				wanted[k] = position + k.ordinal - first
			}
		}
		position += uint64(run.Events)
	}
	for _, h := range hooks {
		if wanted[key{h.At.Thread, h.At.Ordinal}] == 0 {
			return nil, tracee.Inputf("replay: the recording has no moment %v: thread %d has %d events", h.At, h.At.Thread, done[h.At.Thread])
		}
	}
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b Hook) int {
		return cmp.Compare(wanted[key{a.At.Thread, a.At.Ordinal}], wanted[key{b.At.Thread, b.At.Ordinal}])
	})
	return sorted, nil
}

// stepHooks returns the hooks that begin the windows of a stepper.
func stepHooks(st *step.Stepper) []Hook {
	var hooks []Hook
	for at, w := range st.Begins() {
		hooks = append(hooks, Hook{At: at, step: w})
	}
	return hooks
}
