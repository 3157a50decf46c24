package reports

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// heapLayout builds the document of a heap's summary: its size, the findings, and the objects by the sites
// of allocation, or, without the agent, by type and size.
func heapLayout(h *evidence.Heap, opts Options) []block {
	title := say(strong, heapTitle(h))
	if h.Damaged > 0 {
		title = title.and(alarm, ", "+wording.Count(h.Damaged, damagedNoun(h))+" damaged")
	}
	d := []block{prose{title}}
	d = append(d, severeLimits(h.Limits)...)
	d = append(d, heapFacts(h, opts))
	if h.Malloc != nil {
		d = append(d, mallocSections(h)...)
	}
	d = append(d, heapSites(h)...)
	d = append(d, findings("Damage and misuse", h.Findings)...)
	return append(d, otherLimits(h.Limits)...)
}

// heapTitle is the summary in one line.
func heapTitle(h *evidence.Heap) string {
	text := fmt.Sprintf("%s live in %s", wording.Size(h.LiveBytes), wording.Count(h.LiveObjects, "object"))
	if h.AgentHeap != nil {
		return text + fmt.Sprintf(", %s in quarantine", wording.Size(h.QuarantinedBytes))
	}
	return text
}

func damagedNoun(h *evidence.Heap) string {
	if h.Malloc != nil {
		return "header"
	}
	return "object"
}

func heapFacts(h *evidence.Heap, opts Options) facts {
	list := facts{{"live", say(plain, fmt.Sprintf("%s in %s", wording.Count(h.LiveBytes, "byte"), wording.Count(h.LiveObjects, "object")))}}
	damaged := fact{"damaged", verdict(h.Damaged, damagedNoun(h)).and(caveat, asFarAsRead(h.Limits))}
	if h.AgentHeap != nil {
		list = append(list, facts{
			{"quarantined", say(plain, fmt.Sprintf("%s in %s that were freed and are kept", wording.Count(h.QuarantinedBytes, "byte"), wording.Count(h.Quarantined, "object")))},
			{"calls", say(plain, fmt.Sprintf("%s, %s, by %s", wording.Count(h.Allocations, "allocation"), wording.Count(h.Frees, "free"), wording.Count(h.Threads, "thread")))},
			{"mapped", say(plain, fmt.Sprintf("%s for objects, %s for their metadata", wording.Size(h.MappedBytes), wording.Size(h.MetadataBytes)))},
			damaged,
			{"errors", verdict(h.Errors, "error").and(plain, " found while it ran")},
		}...)
	} else {
		list = append(append(list, mallocTotals(h)...), damaged)
	}
	list = append(list, fact{"program", programLine(&h.Program)})
	if opts.Version != "" {
		list = append(list, fact{"reported by", say(faint, "diagnose "+opts.Version)})
	}
	return list
}

// asFarAsRead qualifies a verdict on a heap of which parts are missing.
func asFarAsRead(limits []evidence.Limit) string {
	if slices.ContainsFunc(limits, func(l evidence.Limit) bool { return l.Severe }) {
		return ", as far as the heap could be read"
	}
	return ""
}

func verdict(n uint64, noun string) line {
	if n == 0 {
		return say(plain, "no "+noun)
	}
	return say(alarm, wording.Count(n, noun))
}

func heapSites(h *evidence.Heap) []block {
	if len(h.Sites) == 0 {
		return nil
	}
	g := grid{header: []string{"#", "live", "objects", "largest", "quarantined", "objects", "allocated in", "at"}}
	for i, s := range h.Sites {
		function, at := siteCells(&s.Allocated)
		g.rows = append(g.rows, []string{
			fmt.Sprint(i + 1), wording.Size(s.LiveBytes), fmt.Sprint(s.LiveObjects), wording.Size(s.Largest),
			wording.Size(s.QuarantinedBytes), fmt.Sprint(s.Quarantined), Clean(function), Clean(at),
		})
	}
	d := []block{heading{text: "By allocation site"}, g}
	if h.Elided > 0 {
		d = append(d, verbatim{say(faint, fmt.Sprintf("and %s with less%s; --sites N shows more", wording.Count(h.Elided, "site"), inAll(h)))})
	}
	return d
}

// inAll says how much live memory the listed sites do not cover; "" if the two do not fit together,
// such as when parts of the heap could not be read.
func inAll(h *evidence.Heap) string {
	rest := h.LiveBytes
	for i := range h.Sites {
		if h.Sites[i].LiveBytes > rest {
			return ""
		}
		rest -= h.Sites[i].LiveBytes
	}
	return fmt.Sprintf(", %s live in all", wording.Size(rest))
}

// siteCells names a site and its callers: functions that wrap malloc have callers that differ.
func siteCells(c *evidence.HeapCall) (functions, at string) {
	const most, longest = 4, 100
	frames := c.Stack.Frames
	if c.Site != nil {
		for len(frames) > 1 && frames[0].Site != *c.Site {
			frames = frames[1:]
		}
	}
	if len(frames) == 0 {
		return "unknown", ""
	}
	var names []string
	for _, f := range frames {
		if name := functionOf(f.Site); len(names) < most && (len(names) == 0 || name != names[len(names)-1]) {
			names = append(names, name)
		}
	}
	s := frames[0].Site
	if s.File != "" {
		at = position(s)
	} else {
		at = fmt.Sprintf("%s+%v", s.Module, s.ModuleOffset)
	}
	return brief(strings.Join(names, " <- "), longest), at
}
