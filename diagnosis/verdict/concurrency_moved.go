package verdict

import (
	"slices"

	"diagnose/evidence"
)

// movedAlong are the variables, other than those of an interleaving's accesses, that both threads access, one of them to write, and whose accesses
// come the other way round as well whichever of the threads is kept back until the other is past its part. Then a cure does not
// say which of them matters. Empty: one of the two changes moves no other variable's, as far as they were traced.
func movedAlong(log *evidence.AccessLog, accesses []int) []string {
	one, two := sides(log, accesses)
	if two == nil || one.handler != 0 || two.handler != 0 {
		return nil
	}
	own := map[int32]bool{}
	for _, i := range accesses {
		own[log.Accesses[i].Variable] = true
	}
	first, second := movedBy(log, one, two, own), movedBy(log, two, one, own)
	if len(first) == 0 || len(second) == 0 {
		return nil
	}
	list := append(first, second...)
	slices.Sort(list)
	return slices.Compact(list)
}

// movedBy are the variables, but for some, whose accesses change their order if a thread is kept back from its part on until another one is
// past its own.
func movedBy(log *evidence.AccessLog, held, free *side, but map[int32]bool) (list []string) {
	type word struct {
		variable int32
		offset   uint32
	}
	accessed, written := map[word]bool{}, map[word]bool{}
	for i := range log.Accesses {
		a := &log.Accesses[i]
		w := word{a.Variable, a.Offset}
		switch {
		case but[a.Variable]:
		case a.Thread == held.thread && a.Ordinal >= held.from:
			accessed[w] = true
			written[w] = written[w] || a.Kind != evidence.CodeRead
		case a.Thread == free.thread && a.Ordinal <= free.until:
			if written[w] || accessed[w] && a.Kind != evidence.CodeRead {
				list = append(list, log.Variables[a.Variable].Name)
			}
		}
	}
	return list
}
