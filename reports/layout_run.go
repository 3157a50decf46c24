package reports

import (
	"fmt"
	"path"

	"diagnose/evidence"
)

// run names the processes of the run that failed in addition to the one that is reported.
func run(r *evidence.Run) []block {
	if r == nil {
		return nil
	}
	var lines verbatim
	if r.Omitted > 0 {
		lines = append(lines, say(faint, fmt.Sprintf("%d earlier, which did not crash, are left out", r.Omitted)))
	}
	for i := range r.Processes {
		lines = append(lines, runLine(&r.Processes[i]))
	}
	return []block{heading{text: "Processes of the run that failed, in the order of their ends"}, lines}
}

func runLine(p *evidence.RunProcess) line {
	l := say(plain, fmt.Sprintf("process %d ", p.PID))
	if p.Program != "" {
		l = l.and(name, path.Base(p.Program)+" ")
	}
	if p.First {
		l = l.and(plain, "(the program that was started) ")
	} else if p.Parent != 0 {
		l = l.and(faint, fmt.Sprintf("(child of %d) ", p.Parent))
	}
	l = l.and(strong, runEnd(p))
	switch {
	case p.Here:
		l = l.and(alarm, "  <- this report")
	case p.Unrecorded:
		l = l.and(caveat, "; it was not recorded to its end")
	case p.Recording != "":
		l = l.and(faint, "  "+p.Recording)
	}
	return l
}

// runEnd says how a process ended.
func runEnd(p *evidence.RunProcess) string {
	text := fmt.Sprintf("exited with status %d", p.Status)
	switch {
	case p.Unknown:
		text = "ended in a way that is not known"
	case p.Signal != "":
		text = "died of " + p.Signal
	}
	if p.Heap != "" {
		text += "; " + p.Heap
	}
	return text
}
