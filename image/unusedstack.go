package image

import "diagnose/evidence"

// UnusedStacks are the parts of the threads' stacks that no frame uses: from the guard below a stack to the red zone of its
// thread's stack pointer, [start, end), one for each mapping, in the order of address. A mapping is left out if no guard is
// below it, because other memory can be there then, and if a stack in it has its stack pointer elsewhere.
func (p *Process) UnusedStacks() [][2]evidence.Addr {
	r := p.memoryRegions()
	lowest := map[int]evidence.Addr{}
	for _, s := range r.stacks {
		sp := s.sp
		if !s.whole || !s.main && r.mappings.guardBelow(s.mapping) < 0 || !r.mappings[s.mapping].Contains(sp) {
			sp = 0
		}
		if old, known := lowest[s.mapping]; !known || sp < old {
			lowest[s.mapping] = sp
		}
	}
	var list [][2]evidence.Addr
	for i := range r.mappings {
		start := r.mappings[i].Start
		if sp := lowest[i]; sp > start+redZone {
			list = append(list, [2]evidence.Addr{start, sp - redZone})
		}
	}
	return list
}
