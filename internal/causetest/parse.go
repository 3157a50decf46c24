package causetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
)

var (
	directivePattern = regexp.MustCompile(`^// (CAUSE|FAILS|RUNS|INPUT|FILE|FLAGS|LEVELS|SHORT|COMPILERS|SEARCH)(?: (fail|pass))?:? ?(.*)$`)
	markPattern      = regexp.MustCompile(`\S.*// (BUG|HOP|OBJECT)((?: \d+)*)$`)
	valuePattern     = regexp.MustCompile(`^([a-z]+)=("[^"]*"|\S+)\s*`)
)

// Read reads what a source's comments say.
func Read(source string) (*Case, error) {
	source, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	c := &Case{Source: source, Name: strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)), Level: Levels[0], levels: Levels, Compiler: "gcc", compilers: []string{"gcc"},
		runs: map[runKind][]string{}, inputs: map[runKind][]string{}, files: map[runKind][]string{}}
	m := &marks{accesses: map[int]int{}, hops: map[int]int{}}
	for i, line := range strings.Split(string(text), "\n") {
		if d := directivePattern.FindStringSubmatch(line); d != nil {
			err = c.directive(d[1], runKind(d[2]), d[3])
		} else if d := markPattern.FindStringSubmatch(line); d != nil {
			err = m.addMark(d[1], strings.Fields(d[2]), i+1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", source, i+1, err)
		}
	}
	if err := m.finish(c); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return c, nil
}

func (c *Case) directive(key string, kind runKind, value string) error {
	of := map[string]map[runKind][]string{"RUNS": c.runs, "INPUT": c.inputs, "FILE": c.files}[key]
	switch {
	case of != nil && kind == "":
		of[failing], of[passing] = append(of[failing], value), append(of[passing], value)
	case of != nil:
		of[kind] = append(of[kind], value)
	case kind != "":
		return fmt.Errorf("%s is not of one kind of run", key)
	case key == "FLAGS":
		c.flags = strings.Fields(value)
	case key == "LEVELS":
		c.levels = strings.Fields(value)
		c.Level = c.levels[0]
	case key == "SHORT":
		c.short = strings.Fields(value)
	case key == "COMPILERS":
		c.compilers = strings.Fields(value)
		c.Compiler = c.compilers[0]
	case key == "SEARCH":
		c.Search = value
	case key == "CAUSE":
		return pairs(value, map[string]func(string) error{
			"kind":     func(v string) error { c.kinds = strings.Split(v, "|"); return nil },
			"variable": func(v string) error { c.variables = strings.Split(v, "|"); return nil },
			"pattern":  func(v string) error { c.patterns = strings.Split(v, "|"); return nil },
			"missing":  func(v string) error { c.Missing = v; return nil },
		})
	case key == "FAILS":
		return pairs(value, map[string]func(string) error{
			"signal": func(v string) error { c.ends.how = v; return nil },
			"exit":   func(v string) error { c.ends.how = "exit " + v; return nil },
			"says":   func(v string) error { c.ends.says = v; return nil },
		})
	}
	return nil
}

// pairs reads key=value key="a value".
func pairs(text string, set map[string]func(string) error) error {
	for text != "" {
		m := valuePattern.FindStringSubmatch(text)
		if m == nil || set[m[1]] == nil {
			return fmt.Errorf("%q is not a key that is known with its value", text)
		}
		if err := set[m[1]](strings.Trim(m[2], `"`)); err != nil {
			return err
		}
		text = text[len(m[0]):]
	}
	return nil
}

// marks are the lines that are marked: the accesses and hops by their numbers.
type marks struct {
	bug, object    int
	accesses, hops map[int]int
}

func (m *marks) addMark(what string, numbers []string, line int) error {
	single := map[string]*int{"BUG": &m.bug, "OBJECT": &m.object}[what]
	if len(numbers) == 0 {
		if single == nil || *single != 0 {
			return fmt.Errorf("%s without a number, or a second one", what)
		}
		*single = line
	}
	for _, text := range numbers {
		n, err := strconv.Atoi(text)
		table := map[string]map[int]int{"BUG": m.accesses, "HOP": m.hops}[what]
		if err != nil || table == nil || table[n] != 0 {
			return fmt.Errorf("%s %s: bad number", what, text)
		}
		table[n] = line
	}
	return nil
}

func (m *marks) finish(c *Case) error {
	for _, x := range []struct {
		from map[int]int
		to   *[]int
	}{{m.accesses, &c.Accesses}, {m.hops, &c.Hops}} {
		for n := 1; n <= len(x.from); n++ {
			if x.from[n] == 0 {
				return fmt.Errorf("no line is marked with number %d", n)
			}
			*x.to = append(*x.to, x.from[n])
		}
	}
	c.Line, c.ObjectLine = m.bug, m.object
	if c.Line == 0 && len(c.Accesses) > 0 {
		c.Line = c.Accesses[0]
	}
	return nil
}

var (
	allKinds = []evidence.CauseKind{evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow, evidence.CauseUseAfterFree, evidence.CauseStackSmashing,
		evidence.CauseOverwritten, evidence.CauseBadValue, evidence.CauseUninitialised, evidence.CauseBadInput, evidence.CauseAtomicity,
		evidence.CauseOrder, evidence.CauseSignalHandler, evidence.CauseDeadlock, evidence.CauseDoubleFree, evidence.CauseMissingWakeup}
	allPatterns = []evidence.PatternKind{evidence.PatternRW, evidence.PatternWR, evidence.PatternWW, evidence.PatternRWR, evidence.PatternRWW,
		evidence.PatternWWR, evidence.PatternWRW, evidence.PatternPair, evidence.PatternLockOrder}
)

// check refuses fields that are missing or misspelt.
func (c *Case) check() error {
	for _, k := range c.kinds {
		if !slices.Contains(allKinds, evidence.CauseKind(k)) {
			return fmt.Errorf("unknown kind of cause %q", k)
		}
	}
	for _, p := range c.patterns {
		if p != "" && !slices.Contains(allPatterns, evidence.PatternKind(p)) {
			return fmt.Errorf("unknown pattern %q", p)
		}
	}
	for _, level := range c.levels {
		if !slices.Contains(Levels, level) {
			return fmt.Errorf("unknown level %q", level)
		}
	}
	for _, level := range c.short {
		if !slices.Contains(c.levels, level) {
			return fmt.Errorf("level %q is not one of %v", level, c.levels)
		}
	}
	for _, compiler := range c.compilers {
		if compilers[compiler] == nil {
			return fmt.Errorf("unknown compiler %q", compiler)
		}
	}
	switch {
	case len(c.kinds) == 0:
		return errors.New("no CAUSE with a kind")
	case c.ends.how == "" || c.ends.says == "":
		return errors.New("FAILS does not say how it ends and what the report then says")
	case len(c.runs[failing]) == 0 || len(c.runs[passing]) == 0:
		return errors.New("RUNS has no failing or no passing run")
	case c.Line == 0:
		return errors.New("no line is marked BUG")
	case strings.Contains(strings.Join(c.variables, " "), "@OBJECT") && c.ObjectLine == 0:
		return errors.New("no line is marked OBJECT")
	}
	c.Kind = evidence.CauseKind(c.kinds[0])
	if len(c.variables) > 0 {
		c.Variable = c.variables[0]
	}
	if len(c.patterns) > 0 {
		c.Pattern = evidence.PatternKind(c.patterns[0])
		if letters := len(strings.TrimLeft(string(c.Pattern), "RW")); letters == 0 && len(c.Accesses) != len(c.Pattern) {
			return fmt.Errorf("pattern %s with %d accesses marked", c.Pattern, len(c.Accesses))
		}
	}
	return nil
}
