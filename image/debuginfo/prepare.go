package debuginfo

import (
	"cmp"
	"slices"
	"sync"
)

// mostPrepared bounds the addresses that Prepare looks up.
const mostPrepared = 256

// Prepare looks up addresses that will be needed, so that one processor
// decompresses a compressed object while another reads the decompressed part.
// It works in the order of the units, because a section is decompressed from
// its start. Errors are left to the later lookups, which meet them again.
func (i *Info) Prepare(pcs []uint64) {
	type request struct{ pc, unit uint64 }
	var list []request
	for _, pc := range pcs {
		if offsets := unitOffsets(i.aranges(), pc); len(offsets) > 0 {
			list = append(list, request{pc, offsets[0]})
		}
	}
	slices.SortFunc(list, func(a, b request) int { return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.pc, b.pc)) })
	list = slices.Compact(list)
	list = list[:min(len(list), mostPrepared)]
	if len(list) == 0 {
		return
	}
	var ahead sync.WaitGroup
	ahead.Go(func() { _, _ = i.main.upTo(secInfo, list[len(list)-1].unit+1) })
	defer ahead.Wait()
	for _, r := range list {
		calls, err := i.CallsAt(r.pc)
		for n := range calls {
			if err == nil {
				_, err = i.VariablesAt(calls[n], r.pc)
			}
		}
	}
}
