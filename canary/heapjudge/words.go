package heapjudge

import (
	"fmt"
	"path"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/wording"
)

// sized is "a 40-byte object", with "freed" if it is.
func sized(o *agent.Object) string {
	if o.State == agent.Quarantined || o.State == agent.Reusable {
		return fmt.Sprintf("a freed %d-byte object", o.Size)
	}
	return articled(o.Size)
}

// articled is "a 40-byte object", "an 8-byte object".
func articled(size uint64) string {
	article := "a"
	digits := fmt.Sprint(size)
	if digits[0] == '8' || (strings.HasPrefix(digits, "11") || strings.HasPrefix(digits, "18")) && len(digits)%3 == 2 {
		article = "an"
	}
	return fmt.Sprintf("%s %d-byte object", article, size)
}

// whoWhere is `by thread 2 "worker" in drop at pool.c:12`, as far as it is
// known.
func whoWhere(c *evidence.HeapCall) string {
	var parts []string
	if c.Thread != nil {
		parts = append(parts, "by "+c.Thread.Label())
	}
	site := c.Site
	if site == nil && len(c.Stack.Frames) > 0 {
		site = &c.Stack.Frames[0].Site
	}
	if site != nil {
		parts = append(parts, siteWords(site))
	}
	return strings.Join(parts, " ")
}

func siteWords(s *evidence.Site) string {
	var text string
	switch {
	case s.Function != "":
		text = "in " + evidence.ShortName(s.Function)
	case s.Module != "":
		text = fmt.Sprintf("in %s+%v", path.Base(s.Module), s.ModuleOffset)
	default:
		return fmt.Sprintf("at %v", s.PC)
	}
	if s.File != "" {
		text += fmt.Sprintf(" at %s:%d", path.Base(s.File), s.Line)
	}
	return text
}

// lifeWords is "allocated in f at x.c:3, freed by thread 2 in g at x.c:9".
func lifeWords(o *evidence.HeapObject) string {
	var parts []string
	add := func(what string, c *evidence.HeapCall) {
		if c == nil {
			return
		}
		if text := whoWhere(c); text != "" {
			parts = append(parts, what+" "+text)
		}
	}
	add("freed", o.Freed)
	add("allocated", o.Allocated)
	return strings.Join(parts, ", ")
}

// offsetWords describes an address relative to an object, to follow "is": "8
// bytes after a 40-byte object at 0x1000".
func offsetWords(addr evidence.Addr, o *agent.Object) string {
	what := sized(o)
	switch {
	case addr < o.Addr:
		return fmt.Sprintf("%s before %s at %v", wording.Count(uint64(o.Addr-addr), "byte"), what, o.Addr)
	case addr == o.Addr:
		return fmt.Sprintf("the start of %s at %v", what, o.Addr)
	case addr < o.End():
		return fmt.Sprintf("%s into %s at %v", wording.Count(uint64(addr-o.Addr), "byte"), what, o.Addr)
	case addr == o.End():
		return fmt.Sprintf("directly past the end of %s at %v", what, o.Addr)
	}
	return fmt.Sprintf("%s after %s at %v", wording.Count(uint64(addr-o.End()), "byte"), what, o.Addr)
}

// damageWords says in a sentence how much was overwritten, and where.
func damageWords(kind evidence.FindingKind, o *agent.Object, d *evidence.Damage) string {
	n := wording.Count(uint64(d.Overwritten), "byte")
	if d.Reaches {
		n = "at least " + n
	}
	where := fmt.Sprintf("at offset %d of %s", d.Offset, sized(o))
	switch kind {
	case evidence.FindingHeapOverflow:
		where = "past the end of " + articled(o.Size)
		if gap := uint64(d.Start - o.End()); gap > 0 {
			where = fmt.Sprintf("beginning %s past the end of %s", wording.Count(gap, "byte"), articled(o.Size))
		}
	case evidence.FindingHeapUnderflow:
		where = "before the start of " + sized(o)
		if gap := uint64(max(o.Addr, d.End) - d.End); gap > 0 {
			where = fmt.Sprintf("ending %s before the start of %s", wording.Count(gap, "byte"), sized(o))
		}
	}
	verb := "were"
	if d.Overwritten == 1 {
		verb = "was"
	}
	return fmt.Sprintf("%s %s at %v %s overwritten", n, where, o.Addr, verb)
}

// whenWords says what the agent did when it found an error.
func whenWords(when int) string {
	switch when {
	case agent.AtFree:
		return "when it was freed"
	case agent.AtRealloc:
		return "when it was reallocated"
	case agent.AtEviction:
		return "when its memory was about to be used again"
	case agent.AtCheck:
		return "by a check of the whole heap"
	case agent.AtExit:
		return "by the check at exit"
	case agent.AtSize:
		return "when its size was asked for"
	}
	return "while the program ran"
}
