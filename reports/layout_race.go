package reports

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// races are the reports of Go's race detector.
func races(list []evidence.DataRace) []block {
	if len(list) == 0 {
		return nil
	}
	d := []block{heading{"Data races", "that Go's race detector reported; whether they have to do with the failure is not known"}}
	for i := range list {
		r := &list[i]
		title := say(strong, fmt.Sprintf("data race at %v", r.Accesses[0].Addr))
		if r.Times > 1 {
			title = title.and(plain, ", "+wording.Count(r.Times, "time"))
		}
		lines := verbatim{title.and(faint, ", reported in "+r.Report+proofMark(r.Proof))}
		for k := range r.Accesses {
			a := &r.Accesses[k]
			text := map[bool]string{true: "write", false: "read"}[a.Write] + " by " + goroutineName(a.Goroutine)
			if k > 0 {
				text = "earlier " + text
			}
			lines = append(append(lines, say(plain, "  "+text)), raceStack(a.Stack)...)
		}
		for k := range r.Created {
			g := &r.Created[k]
			text := "  " + goroutineName(g.Goroutine)
			if g.Finished {
				text += ", which had ended,"
			}
			lines = append(append(lines, say(plain, text+" was created at")), raceStack(g.Stack)...)
		}
		d = append(d, lines)
	}
	return d
}

// goroutineName names a goroutine by the detector's number.
func goroutineName(n int) string {
	if n == 0 {
		return "the main goroutine"
	}
	return fmt.Sprintf("goroutine %d of the detector", n)
}

func raceStack(list []evidence.Site) (lines []line) {
	if len(list) == 0 {
		return []line{say(faint, "    its stack is not known to the detector")}
	}
	for i := range list {
		lines = append(lines, say(plain, "    "+list[i].Function).and(faint, fmt.Sprintf(" at %s:%d", list[i].File, list[i].Line)))
	}
	return lines
}
