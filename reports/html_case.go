package reports

import (
	"fmt"
	"slices"

	"diagnose/evidence"
)

// htmlCase is the page of a case, in the order of the other formats (layout). Its parts say the
// same, some of them as pictures.
func htmlCase(c *evidence.Case, opts Options) *htmlPage {
	h := headlineOf(c)
	page := &htmlPage{Title: h.text(), Version: opts.Version, Lead: htmlLineOf(h.lead()),
		Warnings: htmlNodes(slices.Concat(h.symptom(), interrupted(c.Diagnosis), severeLimits(c.Limits)))}
	add := func(s ...*htmlSection) { page.Sections = append(page.Sections, s...) }
	add(&htmlSection{ID: "summary", Title: "Summary", Nodes: htmlNodes([]block{summary(c, opts)})})
	add(sectionsOf("processes", false, run(c.Run))...)
	add(sectionsOf("ending", false, lastWords(c.Ending))...)
	code := &htmlCode{sources: c.Sources}
	code.markFailed(c.Failure.Site, c.Failure.Source)
	add(htmlCauses(c, code)...)
	add(code.section()...)
	if d := c.Diagnosis; d != nil && len(d.Causes) > 0 {
		add(sectionsOf("excluded", false, ruledOut(d))...)
	}
	add(sectionsOf("instruction", false, instruction(c.Failure.Instruction))...)
	add(sectionsOf("origin", false, origin(c.Failure.Origin))...)
	add(sectionsOf("check", false, check(c.Failure.Check))...)
	add(sectionsOf("recursion", false, recursion(c.Failure.Recursion))...)
	add(htmlFindings("Findings", c.Findings)...)
	add(htmlStacks(c)...)
	add(sectionsOf("races", false, races(c.Races))...)
	add(sectionsOf("suspects", true, scan(c.Scan, c.Failure.Kind))...)
	add(sectionsOf("traced", true, coverage(c.Diagnosis))...)
	add(sectionsOf("registers", true, registers(c.Registers))...)
	add(sectionsOf("limits", false, otherLimits(c.Limits))...)
	add(sectionsOf("next", false, next(c))...)
	return page
}

// htmlCauses returns a section for each cause, with its timelines.
func htmlCauses(c *evidence.Case, code *htmlCode) []*htmlSection {
	d := c.Diagnosis
	if d == nil {
		return nil
	}
	if len(d.Causes) == 0 {
		markSchedule(d.Schedule, code)
		return sectionsOf("cause", false, causes(c))
	}
	var list []*htmlSection
	for i := range d.Causes {
		id, prefix := fmt.Sprintf("cause-%d", i+1), ""
		if i > 0 {
			prefix = fmt.Sprintf("%d.", i+1)
		}
		x := &d.Causes[i]
		plainCause := *x
		plainCause.Story, plainCause.Interleaving = nil, nil // shown as pictures here
		blocks := cause(&plainCause, i)
		if headlineOf(c).cause == x { // the page begins with its summary
			blocks = slices.Delete(blocks, 1, 2)
		}
		sections := sectionsOf(id, false, blocks)
		s := sections[0]
		if x.Interleaving != nil {
			s.Nodes = append(s.Nodes, htmlInterleaving(id, prefix, x.Interleaving, &c.Failure, code)...)
		} else if story := ofStory(x, &c.Failure); len(story) > 0 {
			s.Nodes = append(s.Nodes, htmlNode{Timelines: timelinesOf(id, code, prefix, story, nil)})
		}
		if m := causeMemory(x); m != nil {
			s.Nodes = append(s.Nodes, htmlNode{Memory: m})
		}
		list = append(list, sections...)
	}
	list = append(list, sectionsOf("lead", false, leads(d.Leads))...)
	markSchedule(d.Schedule, code)
	return append(list, sectionsOf("schedule", false, schedule(d.Schedule))...)
}

// markSchedule marks the lines where the threads of a schedule wait.
func markSchedule(s *evidence.Schedule, code *htmlCode) {
	if s == nil {
		return
	}
	for i := range s.Preemptions {
		code.mark(s.Preemptions[i].Site, fmt.Sprintf("wait %d", i+1))
	}
}

// htmlFindings returns the findings of a case or of a heap, with pictures of the memory.
func htmlFindings(title string, list []evidence.Finding) []*htmlSection {
	if len(list) == 0 {
		return nil
	}
	s := &htmlSection{ID: "findings", Title: title}
	for i := range list {
		f := list[i]
		m := findingMemory(&f)
		words := f
		words.Call, words.Object, words.Beyond, words.Damage, words.Heap = nil, nil, nil, nil, nil
		blocks := findings(title, []evidence.Finding{words})[1:]
		s.Nodes = append(s.Nodes, htmlNode{Text: htmlLineOf(blocks[0].(verbatim)[0])})
		s.Nodes = append(s.Nodes, htmlNodes(blocks[1:])...)
		if facts := objectFacts(&f); len(facts) > 0 {
			s.Nodes = append(s.Nodes, htmlNode{Facts: htmlFacts(facts)})
		}
		if m != nil {
			s.Nodes = append(s.Nodes, htmlNode{Memory: m})
		}
		s.Nodes = append(s.Nodes, htmlCalls(&f)...)
	}
	return []*htmlSection{s}
}
