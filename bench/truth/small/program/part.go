package program

import (
	"embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed parts
var files embed.FS

// role is what a part does in a program.
type role string

// The roles. A part of role bug comes first, an end last.
const (
	roleBug     role = "bug"
	roleCarrier role = "carrier"
	roleEnd     role = "end"
	roleWork    role = "work"
)

// part is a file of parts, parsed.
type part struct {
	name     string
	header   map[string]string
	lets     [][2]string // in the order of the file
	sections map[string][]string
}

// The sections of a part, and of a program, in their order.
var sections = []string{"types", "globals", "functions", "main", "clean"}

func (p *part) role() role { return role(p.header["role"]) }

// fits reports whether a part may be used in a program of a language, for a type of value.
func (p *part) fits(r role, language Language, value string) bool {
	if p.role() != r || p.header["language"] != "" && p.header["language"] != string(language) {
		return false
	}
	takes := p.header["takes"]
	return takes == value || takes == "any" && value != "nothing"
}

// readParts parses all files, in the order of their names.
func readParts() ([]*part, error) {
	entries, err := files.ReadDir("parts")
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	var list []*part
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("parts", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("program: %w", err)
		}
		p, err := parsePart(strings.TrimSuffix(e.Name(), ".part"), string(text))
		if err != nil {
			return nil, fmt.Errorf("program: parts/%s: %w", e.Name(), err)
		}
		list = append(list, p)
	}
	return list, nil
}

// headers are the keys that a header may have.
var headers = []string{"role", "group", "kind", "takes", "gives", "out", "language", "sanitizer", "fail", "pass", "variable", "flags", "levels", "includes"}

func parsePart(name, text string) (*part, error) {
	p := &part{name: name, header: map[string]string{}, sections: map[string][]string{}}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "-- "); ok {
			if section = strings.TrimSuffix(rest, " --"); !slices.Contains(sections, section) {
				return nil, fmt.Errorf("no section is called %q", section)
			}
			continue
		}
		if section != "" {
			p.sections[section] = append(p.sections[section], line)
			continue
		}
		if rest, ok := strings.CutPrefix(line, "let "); ok {
			key, value, found := strings.Cut(rest, " = ")
			if !found {
				return nil, fmt.Errorf("%q has no value", line)
			}
			p.lets = append(p.lets, [2]string{key, value})
			continue
		}
		key, value, found := strings.Cut(line, ": ")
		if !found || !slices.Contains(headers, key) {
			return nil, fmt.Errorf("%q is no line of a header", line)
		}
		p.header[key] = value
	}
	return p, nil
}

// instance is a part with all choices taken.
type instance struct {
	*part
	header   map[string]string
	sections map[string][]string
}

// environment is what the choices of an instance depend on.
type environment struct {
	random *rand.Rand
	words  *words
	cxxNew bool
	values map[string]string // of $NAME that the program decides: IN, T
}

// instantiate takes the choices of a part.
func (p *part) instantiate(e *environment) (*instance, error) {
	values := maps.Clone(e.values)
	for _, l := range p.lets {
		v, err := choose(e.random, l[1])
		if err != nil {
			return nil, fmt.Errorf("program: %s: let %s: %w", p.name, l[0], err)
		}
		values[l[0]] = substitute(v, values, "")
	}
	i := &instance{part: p, header: map[string]string{}, sections: map[string][]string{}}
	word := e.words.next()
	for _, s := range sections {
		lines, err := chooseCases(e.random, p.sections[s], values)
		if err != nil {
			return nil, fmt.Errorf("program: %s: %w", p.name, err)
		}
		for n := range lines {
			lines[n] = heapCalls(substitute(lines[n], values, word), e.cxxNew)
		}
		i.sections[s] = lines
	}
	for key, value := range p.header {
		i.header[key] = substitute(value, values, word)
	}
	return i, nil
}

// choose takes one of "a | b", or a number of "3..9".
func choose(random *rand.Rand, text string) (string, error) {
	if low, high, ok := strings.Cut(text, ".."); ok {
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || to < from {
			return "", fmt.Errorf("%q is no range", text)
		}
		return strconv.Itoa(from + random.IntN(to-from+1)), nil
	}
	list := strings.Split(text, " | ")
	return list[random.IntN(len(list))], nil
}

// chooseCases leaves one case of each #choose, and notes its name. A name that was chosen
// before keeps its case.
func chooseCases(random *rand.Rand, lines []string, values map[string]string) ([]string, error) {
	var out []string
	for n := 0; n < len(lines); n++ {
		name, ok := strings.CutPrefix(lines[n], "#choose ")
		if !ok {
			out = append(out, lines[n])
			continue
		}
		end := n + slices.Index(lines[n:], "#end")
		if end < n {
			return nil, fmt.Errorf("#choose %s has no #end", name)
		}
		cases, bodies := splitCases(lines[n+1 : end])
		if len(cases) == 0 {
			return nil, fmt.Errorf("#choose %s has no #case", name)
		}
		if values[name] == "" {
			values[name] = cases[random.IntN(len(cases))]
		}
		if at := slices.Index(cases, values[name]); at >= 0 {
			out = append(out, bodies[at]...)
		}
		n = end
	}
	return out, nil
}

func splitCases(lines []string) (names []string, bodies [][]string) {
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "#case "); ok {
			names, bodies = append(names, name), append(bodies, nil)
		} else if len(bodies) > 0 {
			bodies[len(bodies)-1] = append(bodies[len(bodies)-1], line)
		}
	}
	return names, bodies
}
