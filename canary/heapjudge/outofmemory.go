package heapjudge

import (
	"fmt"
	"math"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

const (
	// recentAllocations is how many allocations the failing thread may have
	// made after a failed one for that to be reported: messages and unwinding
	// allocate too.
	recentAllocations = 64
	// largestSites is how many allocation sites are listed.
	largestSites = 5
)

// addOutOfMemory adds the sites with the most live bytes, if an allocation of
// the failing thread failed shortly before the failure.
func (c *collection) addOutOfMemory(failure *evidence.Failure, tid int) error {
	if failure.Kind == evidence.NoFailure {
		return nil
	}
	failed, ok, err := c.heap.LastFailure()
	if !ok || err != nil || failed.Since > recentAllocations {
		return err
	}
	by, err := c.heap.Thread(failed.By.Thread)
	if err != nil || by.TID != tid {
		return err
	}
	use, limits, err := c.heap.MemoryUse()
	c.limits = append(c.limits, limits...)
	f := &heapFinding{ready: true, rank: rankFailure}
	f.Kind, f.Proof, f.Call = evidence.FindingOutOfMemory, evidence.FromCore, c.heap.call(failed.By, image.MakesMemory)
	size := fmt.Sprintf("an allocation of %s", wording.Count(failed.Size, "byte"))
	if failed.Size == math.MaxUint64 {
		size = "an allocation of more bytes than a number holds"
	}
	f.Summary = "out of memory: " + size + " failed"
	if f.Call != nil {
		if f.Site = f.Call.Site; f.Site != nil {
			f.Summary += " " + siteWords(f.Site)
		}
	}
	f.Facts = use
	if failed.Failures > 1 {
		f.Facts = append(f.Facts, evidence.Fact{Name: "failed before", Text: wording.Count(failed.Failures-1, "allocation")})
	}
	c.list = append(c.list, f)
	return err
}

// MemoryUse returns the sites with the most live bytes.
func (h *Heap) MemoryUse() ([]evidence.Fact, []evidence.Limit, error) {
	s := NewSummary(h)
	s.MostSites = largestSites
	s.CountObjects()
	err := s.ListSites()
	list := []evidence.Fact{{Name: "live", Text: fmt.Sprintf("%s in %s", wording.Count(s.Out.LiveBytes, "byte"), wording.Count(s.Out.LiveObjects, "object"))}}
	for i := range s.Out.Sites {
		site := &s.Out.Sites[i]
		if site.LiveBytes == 0 {
			break
		}
		list = append(list, evidence.Fact{Name: fmt.Sprintf("largest %d", i+1), Text: fmt.Sprintf("%s in %s, allocated %s",
			wording.Count(site.LiveBytes, "byte"), wording.Count(site.LiveObjects, "object"), callersWords(&site.Allocated))})
	}
	return list, s.Limits, err
}

// callersWords names the innermost frames of a call: "in grow at x.c:3, called in
// main at x.c:20".
func callersWords(c *evidence.HeapCall) string {
	const most = 3
	var parts []string
	for i := range c.Stack.Frames {
		if len(parts) == most {
			break
		}
		parts = append(parts, siteWords(&c.Stack.Frames[i].Site))
	}
	if len(parts) == 0 {
		return "at a place that is not known"
	}
	return strings.Join(parts, ", called ")
}
