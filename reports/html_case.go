package reports

import (
	"fmt"
	"slices"

	"diagnose/evidence"
)

// htmlCase is the page of a case, in the order of the other formats (layout):
// its parts say the same, and some of them as pictures.
func htmlCase(c *evidence.Case, opts Options) *htmlPage {
	h := headlineOf(c)
	page := &htmlPage{Title: h.text(), Version: opts.Version, Lead: htmlLineOf(h.lead()),
		Warnings: htmlNodes(slices.Concat(h.symptom(), interrupted(c.Diagnosis), severeLimits(c.Limits)))}
	add := func(s ...*htmlSection) { page.Sections = append(page.Sections, s...) }
	add(&htmlSection{ID: "summary", Title: "Summary", Nodes: htmlNodes([]block{summary(c, opts)})})
	add(htmlCauses(c)...)
	if s := htmlSourceOf(c.Failure.Source, nil); s != nil {
		add(&htmlSection{ID: "source", Title: "Source", Nodes: []htmlNode{{Source: s}}})
	}
	add(sectionsOf("instruction", false, instruction(c.Failure.Instruction))...)
	add(sectionsOf("origin", false, origin(c.Failure.Origin))...)
	add(sectionsOf("recursion", false, recursion(c.Failure.Recursion))...)
	add(htmlFindings("Findings", c.Findings)...)
	add(htmlStacks(c)...)
	add(sectionsOf("suspects", true, scan(c.Scan, c.Failure.Kind))...)
	add(sectionsOf("traced", true, coverage(c.Diagnosis))...)
	add(sectionsOf("registers", true, registers(c.Registers))...)
	add(sectionsOf("limits", false, otherLimits(c.Limits))...)
	return page
}

// htmlCauses are a section for each cause, with its timelines or its story.
func htmlCauses(c *evidence.Case) []*htmlSection {
	d := c.Diagnosis
	if d == nil {
		return nil
	}
	if len(d.Causes) == 0 {
		return append(sectionsOf("cause", false, causes(c)), scheduleCode(d.Schedule, c.Sources)...)
	}
	var list []*htmlSection
	for i := range d.Causes {
		id := fmt.Sprintf("cause-%d", i+1)
		x := &d.Causes[i]
		plainCause := *x
		plainCause.Story, plainCause.Interleaving = nil, nil // shown as pictures here
		sections := sectionsOf(id, false, cause(&plainCause, i))
		s := sections[0]
		if x.Interleaving != nil {
			s.Nodes = append(s.Nodes, htmlInterleaving(id, x.Interleaving, c.Sources)...)
		} else {
			s.Nodes = append(s.Nodes, htmlNode{Steps: htmlSteps(id, x.Story, c.Sources)})
		}
		if m := causeMemory(x); m != nil {
			s.Nodes = append(s.Nodes, htmlNode{Memory: m})
		}
		list = append(list, sections...)
	}
	list = append(list, htmlSchedule(d.Schedule, c.Sources)...)
	return append(list, sectionsOf("excluded", false, ruledOut(d))...)
}

// htmlSchedule is what replays need to fail, with the code where threads wait.
func htmlSchedule(s *evidence.Schedule, sources []evidence.Source) []*htmlSection {
	return append(sectionsOf("schedule", false, schedule(s)), scheduleCode(s, sources)...)
}

func scheduleCode(s *evidence.Schedule, sources []evidence.Source) []*htmlSection {
	if s == nil {
		return nil
	}
	sites := make([]*evidence.Site, len(s.Preemptions))
	for i := range s.Preemptions {
		sites[i] = s.Preemptions[i].Site
	}
	code := numberedSources(sites, sources)
	if len(code) == 0 {
		return nil
	}
	return []*htmlSection{{ID: "waits", Title: "Where the threads are made to wait", Nodes: code}}
}

// htmlStep is one step of a story.
type htmlStep struct {
	ID    string
	Text  htmlLine
	Parts []htmlNode
}

func htmlSteps(id string, steps []evidence.CauseStep, sources []evidence.Source) []htmlStep {
	var list []htmlStep
	for i, s := range steps {
		x := htmlStep{ID: fmt.Sprintf("%s-step-%d", id, i+1), Text: htmlLineOf(say(plain, s.Text).and(faint, proofMark(s.Proof)))}
		place := s.Site
		if a := s.Access; a != nil {
			x.Parts = append(x.Parts, htmlNode{Text: htmlLineOf(say(plain, accessWords(a)).and(faint, "  at moment "+a.Moment.String()))})
			if a.Site != nil {
				place = a.Site
			}
		} else if place != nil {
			x.Parts = append(x.Parts, htmlNode{Text: htmlLineOf(siteLine(*place))})
		}
		text := s.Source
		if text == nil && place != nil {
			text = sourceAround(*place, sources)
		}
		if shown := htmlSourceOf(text, nil); shown != nil {
			x.Parts = append(x.Parts, htmlNode{Source: shown})
		}
		if a := s.Access; a != nil && len(a.Stack.Frames) > 0 {
			x.Parts = append(x.Parts, htmlNode{Stack: htmlStackOf(say(strong, "Stack"), untilStart(a.Stack), false)})
		}
		list = append(list, x)
	}
	return list
}

// htmlFindings are those of a case or of a heap, with pictures of the memory.
func htmlFindings(title string, list []evidence.Finding) []*htmlSection {
	if len(list) == 0 {
		return nil
	}
	s := &htmlSection{ID: "findings", Title: title}
	for i := range list {
		f := list[i]
		m := findingMemory(&f)
		words := f
		words.Call, words.Object, words.Beyond, words.Damage = nil, nil, nil, nil
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
