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
	if len(hooks) == 0 {
		return nil, nil
	}
	wanted := map[uint32][]uint64{} // ordinals still to be found, in ascending order
	for _, h := range hooks {
		wanted[h.At.Thread] = append(wanted[h.At.Thread], h.At.Ordinal)
	}
	for _, list := range wanted {
		slices.Sort(list)
	}
	found := map[key]uint64{}
	done := map[uint32]uint64{}
	position := uint64(0)
	for _, run := range schedule {
		first := done[run.Thread]
		last := first + uint64(run.Events)
		done[run.Thread] = last
		list := wanted[run.Thread]
		for len(list) > 0 && list[0] <= last {
			if ordinal := list[0]; ordinal > first {
				found[key{run.Thread, ordinal}] = position + ordinal - first
			}
			list = list[1:]
		}
		wanted[run.Thread] = list
		position += uint64(run.Events)
	}
	for _, h := range hooks {
		if found[key{h.At.Thread, h.At.Ordinal}] == 0 {
			return nil, tracee.Inputf("replay: the recording has no moment %v: thread %d has %d events", h.At, h.At.Thread, done[h.At.Thread])
		}
	}
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b Hook) int {
		return cmp.Compare(found[key{a.At.Thread, a.At.Ordinal}], found[key{b.At.Thread, b.At.Ordinal}])
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
