package driver

import (
	"fmt"
	"math"
	"strings"

	"diagnose/evidence"
	"diagnose/replay/record"
)

const (
	// recentAllocations is how many allocations the failing thread may have made
	// since one failed, for that to be told: messages and unwinding take some.
	recentAllocations = 64
	// largestSites is how many allocation sites are listed.
	largestSites = 5
)

// outOfMemory adds, if an allocation of the failing thread failed shortly before
// the failure, what the memory is used for: the sites with most live bytes.
func (c *collection) outOfMemory(a *analysis) error {
	if a.result.Failure.Kind == evidence.NoFailure {
		return nil
	}
	failed, ok, err := a.heap.LastFailure()
	if !ok || err != nil || failed.Since > recentAllocations {
		return err
	}
	by, err := a.heap.Thread(failed.By.Thread)
	if err != nil || by.TID != a.thread.Ref.TID {
		return err
	}
	use, err := a.heapUse()
	f := &heapFinding{ready: true, rank: rankFailure}
	f.Kind, f.Proof, f.Call = evidence.FindingOutOfMemory, evidence.FromCore, a.heap.call(failed.By)
	size := fmt.Sprintf("an allocation of %s", count(failed.Size, "byte"))
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
		f.Facts = append(f.Facts, evidence.Fact{Name: "failed before", Text: count(failed.Failures-1, "allocation")})
	}
	c.list = append(c.list, f)
	return err
}

// killedForMemory adds what the heap held, of a process that the kernel may have killed
// for lack of memory. It reads a replay, which stands where the recording ends.
func (a *analysis) killedForMemory(o *record.Outcome) error {
	why := o.MemoryWords()
	if why == "" {
		return nil
	}
	if err := a.heapFailure(); err != nil || a.heap == nil {
		return err
	}
	use, err := a.heapUse()
	a.result.Findings = append(a.result.Findings, evidence.Finding{Kind: evidence.FindingOutOfMemory, Proof: evidence.Inferred, Facts: use,
		Summary: "out of memory: " + why + ", and it died of SIGKILL"})
	return err
}

// heapUse is what the heap's memory is used for: the sites with most live bytes.
func (a *analysis) heapUse() ([]evidence.Fact, error) {
	s := &summary{analysis: a, opts: HeapOptions{Sites: largestSites}}
	err := first(s.count(), s.sites())
	list := []evidence.Fact{{Name: "live", Text: fmt.Sprintf("%s in %s", count(s.heap.LiveBytes, "byte"), count(s.heap.LiveObjects, "object"))}}
	for i := range s.heap.Sites {
		site := &s.heap.Sites[i]
		if site.LiveBytes == 0 {
			break
		}
		list = append(list, evidence.Fact{Name: fmt.Sprintf("largest %d", i+1), Text: fmt.Sprintf("%s in %s, allocated %s",
			count(site.LiveBytes, "byte"), count(site.LiveObjects, "object"), callersWords(&site.Allocated))})
	}
	return list, err
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
