package driver

import (
	"cmp"
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"diagnose/evidence"
	"diagnose/image"
)

// mostFunctions bounds the functions that one name matches.
const mostFunctions = 16

// sourceNames finds functions and lines of a program by the names that a user gives them.
type sourceNames struct {
	process *image.Process
	// stacks have additional functions that have no symbol of their own.
	stacks []*group
}

// functions are the functions that the request names, with the names of the symbols: a user may
// leave out parameters, template arguments and the scopes in front. A name that matches nothing is
// reported at the top, with similar names.
func (a *analysis) functions() []string {
	n := sourceNames{a.process, a.stacks}
	var list []string
	for _, name := range a.req.Functions {
		if n.isFunction(name) {
			list = append(list, name)
			continue
		}
		found, like := n.functionsLike(name)
		if len(found) == 0 {
			found = n.inlining(name)
		}
		switch {
		case len(found) > mostFunctions:
			a.limit(unclearFunction(name, fmt.Sprintf("%d functions have this name, the first %d are scanned; give more of its name, as in %s",
				len(found), mostFunctions, found[0].full)))
			found = found[:mostFunctions]
		case len(found) == 0 && len(like) > 0:
			a.limit(unclearFunction(name, "no function has this name; like it are "+strings.Join(like, ", ")))
		case len(found) == 0:
			a.limit(unclearFunction(name, "no function has this name"))
		}
		for _, f := range found {
			list = append(list, f.linkage)
		}
	}
	return list
}

func unclearFunction(name, text string) evidence.Limit {
	return evidence.Limit{Code: evidence.LimitFunction, Names: []string{name}, Severe: true, Reason: "--function " + name + ": " + text}.Worded()
}

// inlining are the functions into which a function without code of its own was inlined.
func (n sourceNames) inlining(name string) (list []function) {
	for _, pc := range n.inlinedAt(name) {
		s, ok := n.process.SymbolAt(pc)
		if f := (function{s.Name, s.Name}); ok && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// isFunction reports whether the static scan knows the name as given.
func (n sourceNames) isFunction(name string) bool {
	for _, g := range n.stacks {
		for i := range g.stack.Frames {
			for _, c := range g.stack.Frames[i].Calls {
				if c.Site.Function == name || c.Site.LinkageName == name {
					return true
				}
			}
		}
	}
	_, found := n.process.SymbolNamed(name)
	return found
}

// function is a symbol: full is demangled.
type function struct{ linkage, full string }

// functionsLike returns the functions that a name matches, and, if there are none, the plain names
// of some similar ones.
func (n sourceNames) functionsLike(name string) (found []function, like []string) {
	all := n.programFunctions()
	for _, f := range all {
		if stands(name, f.full) && !slices.ContainsFunc(found, func(x function) bool { return x.linkage == f.linkage }) {
			found = append(found, f)
		}
	}
	if found != nil {
		return found, nil
	}
	asked := strings.ToLower(lastName(plainFunction(name)))
	near := map[string]int{}
	for _, f := range all {
		plain := plainFunction(f.full)
		last := strings.ToLower(lastName(plain))
		d := levenshtein.ComputeDistance(asked, last)
		if len(asked) > 2 && strings.Contains(last, asked) {
			d = min(d, 2)
		}
		if d <= max(2, len(asked)/3) && !strings.HasPrefix(plain, "_") {
			near[plain] = d
		}
	}
	for plain := range near {
		like = append(like, plain)
	}
	slices.SortFunc(like, func(x, y string) int { return cmp.Or(cmp.Compare(near[x], near[y]), cmp.Compare(x, y)) })
	const most = 3
	return nil, like[:min(len(like), most)]
}

// programFunctions are the functions of the program's objects and the inlined functions in its
// stacks, which have no symbol of their own.
func (n sourceNames) programFunctions() []function {
	var list []function
	for _, g := range n.stacks {
		for i := range g.stack.Frames {
			for _, c := range g.stack.Frames[i].Calls {
				if c.Site.Function != "" && !image.RuntimeModule(c.Site.Module) {
					list = append(list, function{c.Site.Function, c.Site.Function})
				}
			}
		}
	}
	for _, m := range n.process.Modules {
		if image.RuntimeModule(m.Path) || m.File == "" {
			continue
		}
		for _, path := range []string{m.File, m.DebugFile()} {
			for _, s := range functionSymbols(path) {
				if full, ok := n.process.SymbolAt(m.Addr(s.Value)); ok {
					list = append(list, function{s.Name, full.Name})
				}
			}
		}
	}
	return list
}

// functionSymbols are the function symbols of a file; none if it cannot be read, which the module's
// own limits report.
func functionSymbols(path string) []elf.Symbol {
	if path == "" {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	static, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	isFunction := func(s elf.Symbol) bool {
		return elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && s.Name != ""
	}
	var list []elf.Symbol
	for _, s := range append(static, dynamic...) {
		if isFunction(s) {
			list = append(list, s)
		}
	}
	return list
}

// stands reports whether a user may mean the function full by name: the whole name, or its end from
// a scope on, without the text in parentheses or brackets.
func stands(name, full string) bool {
	for _, of := range []string{evidence.ShortName(full), plainFunction(full)} {
		if of == name || strings.HasSuffix(of, "::"+name) || strings.HasSuffix(of, " "+name) {
			return true
		}
	}
	return false
}

// rustHash matches the end of Rust's older symbols (rustc's legacy mangling), and clone that of
// copies that gcc makes of a function.
var (
	rustHash = regexp.MustCompile(`::h[0-9a-f]{16}$`)
	clone    = regexp.MustCompile(`\.(constprop|part|isra|cold|lto_priv|llvm)\.?[.0-9]*$`)
)

// plainFunction keeps the scopes and the name of a demangled name.
func plainFunction(full string) string {
	name := clone.ReplaceAllString(rustHash.ReplaceAllString(evidence.ShortName(full), ""), "")
	if i := strings.Index(name, "operator"); i >= 0 {
		return name[strings.LastIndexByte(name[:i], ' ')+1:]
	}
	var b strings.Builder
	depth := 0
	for _, r := range name {
		switch {
		case r == '<':
			depth++
		case r == '>':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	plain := strings.TrimPrefix(strings.ReplaceAll(b.String(), "::::", "::"), "::")
	return plain[strings.LastIndexByte(plain, ' ')+1:] // without the type that a template returns
}

func lastName(plain string) string { return plain[strings.LastIndexByte(plain, ':')+1:] }
