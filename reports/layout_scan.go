package reports

import (
	"fmt"
	"path"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// scan lists the strongest suspects. After a stack overflow few matter, as the recursion filled the
// stack. JSON has them all.
func scan(s *evidence.Scan, kind evidence.FailureKind) []block {
	if s == nil {
		return nil
	}
	most := 25
	if kind == evidence.StackOverflow {
		most = 10
	}
	scope := fmt.Sprintf("scanned %s: %s, %s, of which %d could not be resolved",
		scopeText(s.Functions), wording.Count(s.Instructions, "instruction"),
		wording.Count(s.MemoryOperands, "memory operand"), s.Unresolved)
	d := []block{heading{"Suspects", "the shared memory that the failing code touches"},
		verbatim{say(faint, scope)}}
	switch {
	case len(s.Suspects) > 0:
	case s.Unresolved > 0:
		return append(d, verbatim{say(plain, "none: no operand that could be resolved is a global variable or a heap word reached through one")})
	default:
		return append(d, verbatim{say(plain, "none: the code touches no global variable and no heap word reached through one")})
	}
	shown := s.Suspects[:min(len(s.Suspects), most)]
	d = append(d, suspectTable(shown))
	if more := len(s.Suspects) - len(shown); more > 0 {
		d = append(d, verbatim{say(faint, fmt.Sprintf("and %d more in the JSON form", more))})
	}
	return d
}

// scopeText names the scanned functions without their parameters, which those
// of templates repeat at length.
func scopeText(functions []string) string {
	const longest = 120
	names := make([]string, len(functions))
	for i, f := range functions {
		names[i] = brief(evidence.ShortName(f), longest)
	}
	return strings.Join(names, ", ")
}

func suspectTable(list []evidence.Suspect) grid {
	g := grid{header: []string{"#", "variable", "type", "address", "value at the end", "access", "at"}}
	for i, s := range list {
		label := s.Name
		switch s.Kind {
		case evidence.SuspectGlobal:
		case evidence.SuspectCell:
			label += " (the bad value's cell)"
		default:
			label += " (" + strings.ReplaceAll(string(s.Kind), "-", " ") + ")"
		}
		if s.Proof != evidence.FromCore { // which all but few are
			label += proofMark(s.Proof)
		}
		g.rows = append(g.rows, []string{
			fmt.Sprint(i + 1), Clean(label), Clean(brief(s.Type, 40)), s.Address.String(),
			Clean(brief(valueText(s.Value), 60)), string(s.Access), Clean(useList(s.Lines)),
		})
	}
	return g
}

func brief(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-3]) + "..."
}

// useList is "server.c:42 r, 57 w": a file is named when it changes.
func useList(uses []evidence.SuspectUse) string {
	const most = 6
	var parts []string
	type use struct {
		place  string
		access evidence.AccessKind
	}
	file, seen := "", map[use]bool{}
	for _, u := range uses {
		named := ""
		text := functionOf(u.Site) + fmt.Sprintf("+%#x", u.Site.FunctionOffset)
		if u.Site.Function == "" && u.Site.Module != "" {
			text = fmt.Sprintf("%s+%#x", path.Base(u.Site.Module), uint64(u.Site.ModuleOffset))
		}
		if u.Site.File != "" {
			text = fmt.Sprint(u.Site.Line)
			if u.Site.File != file {
				file = u.Site.File
				named = path.Base(file) + ":"
			}
		}
		if key := (use{text, u.Access}); !seen[key] {
			seen[key] = true
			parts = append(parts, named+text+" "+accessLetter(u.Access))
		}
	}
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", len(parts)-most))
	}
	return strings.Join(parts, ", ")
}

func accessLetter(k evidence.AccessKind) string {
	switch k {
	case evidence.Read:
		return "r"
	case evidence.Write:
		return "w"
	case evidence.ReadWrite:
		return "rw"
	}
	return string(k)
}
