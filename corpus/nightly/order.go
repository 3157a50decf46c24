package nightly

import (
	"cmp"
	"slices"
	"time"

	"diagnose/corpus"
)

// kin are failures that look alike: of one cluster or, before they are diagnosed, of one
// program that ended in the same way at the same place.
type kin struct {
	entries []corpus.Entry // newest first
	known   bool           // one of them was diagnosed, by any version
	recent  bool           // one of them is in the summary's period
	count   int            // including those known before
}

func kinOf(e *corpus.Entry) string {
	if e.Diagnosis != nil && e.Diagnosis.Cluster() != "" {
		return "cluster " + e.Diagnosis.Cluster()
	}
	return "likeness " + e.Likeness()
}

// order sorts new and frequent failures first. The newest one of each kind comes before the
// second of any, since one may show everything there is to know.
func order(todo, all []corpus.Entry, since time.Time) []corpus.Entry {
	kinds := map[string]*kin{}
	var list []*kin
	for _, e := range todo {
		k := kinds[kinOf(&e)]
		if k == nil {
			k = &kin{}
			kinds[kinOf(&e)] = k
			list = append(list, k)
		}
		k.entries = append(k.entries, e)
		k.recent = k.recent || !e.FailedAt.Before(since)
	}
	diagnosed := map[string]bool{} // likenesses
	for i := range all {
		if all[i].Diagnosis != nil && all[i].Likeness() != "" {
			diagnosed[all[i].Likeness()] = true
		}
		if k := kinds[kinOf(&all[i])]; k != nil {
			k.count++
		}
	}
	for _, k := range list {
		for i := range k.entries {
			k.known = k.known || k.entries[i].Diagnosis != nil || diagnosed[k.entries[i].Likeness()]
		}
		slices.SortStableFunc(k.entries, func(a, b corpus.Entry) int { return b.FailedAt.Compare(a.FailedAt) })
	}
	slices.SortStableFunc(list, func(a, b *kin) int {
		return cmp.Or(truth(a.known)-truth(b.known), truth(b.recent)-truth(a.recent), b.count-a.count, b.entries[0].FailedAt.Compare(a.entries[0].FailedAt))
	})
	var out []corpus.Entry
	for turn := 0; len(out) < len(todo); turn++ {
		for _, k := range list {
			if turn < len(k.entries) {
				out = append(out, k.entries[turn])
			}
		}
	}
	return out
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
