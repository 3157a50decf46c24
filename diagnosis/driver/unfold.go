package driver

import (
	"diagnose/evidence"
	"diagnose/image"
)

// maxUnfolded bounds the threads that are taken out of their groups.
const maxUnfolded = 64

// unfold lists the threads of a deadlock one by one: their stacks have the same pcs, but the lock
// that each asks for is in its own arguments.
func (sp *stoppedProcess) unfold(findings []evidence.Finding) {
	locked := map[int]bool{} // by TID
	for _, f := range findings {
		for _, edge := range f.Wait {
			if len(locked) < maxUnfolded {
				locked[edge.Waiter.TID] = true
			}
		}
	}
	if len(locked) == 0 {
		return
	}
	var list []*group
	for _, g := range sp.stacks {
		list = append(list, sp.parted(g, locked)...)
	}
	sp.stacks = list
}

// parted splits a group into each of its threads that is in apart, and the
// others.
func (sp *stoppedProcess) parted(g *group, apart map[int]bool) []*group {
	if len(g.threads) == 1 {
		return []*group{g}
	}
	var list []*group
	others := &group{}
	for n, t := range g.threads {
		i := g.indexes[n]
		if apart[t.Ref.TID] {
			list = append(list, &group{threads: []*image.Thread{t}, indexes: []int{i}, stack: sp.walked[i]})
			continue
		}
		if others.threads == nil {
			others.stack = sp.walked[i]
		}
		others.threads, others.indexes = append(others.threads, t), append(others.indexes, i)
	}
	if others.threads != nil {
		list = append(list, others)
	}
	return list
}
