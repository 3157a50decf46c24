package ptmalloc

import (
	"slices"

	"diagnose/evidence"
)

// sortedAddresses is a sorted copy without duplicates.
func sortedAddresses(list []evidence.Addr) []evidence.Addr {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
