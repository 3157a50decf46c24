package nightly

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/corpus/analysis"
	"diagnose/internal/wording"
)

// mostNamed is how many failures, or reasons, a line names.
const mostNamed = 5

// facts are the lines of the workers.
func (f *Fleet) facts(memory int64) []fact {
	list := []fact{{name: "workers", text: f.counts()}}
	for _, line := range f.budgets(memory) {
		list = append(list, fact{name: "memory", text: line})
	}
	for _, line := range f.confinement() {
		list = append(list, fact{name: "confinement", text: line})
	}
	if f.Repeated > 0 {
		list = append(list, fact{name: "repeated", text: wording.Count(f.Repeated, "failure") + " took more than one try, as a worker ended or failed"})
	}
	if n := len(f.SetAside); n > 0 {
		var names []string
		for i := range f.SetAside {
			s := &f.SetAside[i]
			names = append(names, fmt.Sprintf("%s %s (%s)", s.Entry, s.Program, wording.Count(len(s.Tries), "try")))
		}
		list = append(list, fact{name: "set aside", text: fmt.Sprintf("%s that no try finished: %s", wording.Count(n, "failure"), some(names)), alarm: true})
	}
	for i := range f.Unable {
		list = append(list, fact{name: "no worker", text: f.Unable[i].line(), alarm: true})
	}
	return list
}

func (f *Fleet) counts() string {
	hosts := map[string]bool{}
	for i := range f.Workers {
		hosts[f.Workers[i].Host] = true
	}
	text := fmt.Sprintf("%s on %s", wording.Count(len(f.Workers), "worker"), wording.Count(len(hosts), "host"))
	if f.Engine != "" {
		text += ", by " + f.Engine
	}
	return text
}

// budgets say how the workers enforced the budget of memory, each way once.
func (f *Fleet) budgets(memory int64) []string {
	var list []string
	for i := range f.Workers {
		w := &f.Workers[i]
		list = append(list, budget(memory, w.MemoryBy, w.MemoryWhy))
	}
	return few(list)
}

// confinement says where analyses were not confined though they should have been.
func (f *Fleet) confinement() []string {
	var list []string
	for i := range f.Workers {
		if w := &f.Workers[i]; w.FreeWhy != "" {
			list = append(list, "recordings were not replayed, for the host does not keep replays from the network and the rights of the worker's user: "+w.FreeWhy)
		}
	}
	return few(list)
}

// few returns different lines once each, sorted, and not too many.
func few(list []string) []string {
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), mostNamed)]
}

// some joins names, and counts those that are too many.
func some(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// budget says how a budget of memory was enforced.
func budget(memory int64, by analysis.Enforcement, why string) string {
	text := fmt.Sprintf("at most %d MiB for each failure, ", memory>>20)
	if by == analysis.MemoryGrouped {
		return text + "kept by the kernel (a control group each)"
	}
	return text + "looked at ten times a second, for " + why
}

func (u *Unable) line() string {
	return fmt.Sprintf("%s that no worker could take: %s: %s", wording.Count(len(u.Entries), "failure"), u.Lack.words(), some(u.Entries))
}

func (l *Lack) words() string {
	if l == nil {
		return "there was none"
	}
	switch l.Kind {
	case LackVersion:
		return "none is diagnose " + l.Name
	case LackArchitecture:
		return "none has a processor of " + l.Name
	case LackFeature:
		return "none has a processor with " + l.Name
	case LackKernel:
		return "no kernel allows " + l.Name
	}
	return fmt.Sprintf("none has %s of build-id %s", l.Name, l.BuildID)
}

// eachText edits the texts that come from hosts and failing programs.
func (f *Fleet) eachText(edit func(...*string)) {
	edit(&f.Engine)
	for i := range f.Workers {
		w := &f.Workers[i]
		edit(&w.Name, &w.Host, &w.MemoryWhy, &w.FreeWhy)
	}
	for i := range f.SetAside {
		s := &f.SetAside[i]
		edit(&s.Program)
		for k := range s.Tries {
			edit(&s.Tries[k].Worker, &s.Tries[k].Host, &s.Tries[k].Error)
		}
	}
	for i := range f.Unable {
		if l := f.Unable[i].Lack; l != nil {
			edit(&l.Name)
		}
	}
}
