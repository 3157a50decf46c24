package watchtrace

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"diagnose/image"
)

// Globals returns the names of the variables that the symbol tables of the program's objects have.
func Globals(p *image.Process) []string {
	var names []string
	for _, m := range p.Modules {
		if image.RuntimeModule(m.Path) || m.File == "" {
			continue
		}
		names = append(names, variablesOf(m.File)...)
		if debug := m.DebugFile(); debug != "" && debug != m.File {
			names = append(names, variablesOf(debug)...)
		}
	}
	return names
}

func variablesOf(path string) []string {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	symbols, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	var names []string
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Section != elf.SHN_UNDEF && s.Name != "" && !strings.HasPrefix(s.Name, "_") {
			names = append(names, s.Name)
		}
	}
	return names
}

// Nearest returns at most three of the names that may have been meant, the
// likeliest first.
func Nearest(name string, names []string) []string {
	const most = 3
	slices.Sort(names)
	names = slices.Compact(names)
	far := func(other string) int {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(other))
		if len(name) > 2 && strings.Contains(strings.ToLower(other), strings.ToLower(name)) {
			d = min(d, 2)
		}
		return d
	}
	var like []string
	for _, other := range names {
		if far(other) <= max(2, len(name)/2) {
			like = append(like, other)
		}
	}
	slices.SortStableFunc(like, func(a, b string) int { return cmp.Compare(far(a), far(b)) })
	return like[:min(len(like), most)]
}
