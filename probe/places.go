package probe

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/watchtrace"
)

// mostPlaces bounds the instructions of one question.
const mostPlaces = 4096

// finder finds the places of a question in the process at the recording's end.
type finder struct {
	process *image.Process
	places  []Place
}

func (q *Question) find(p *image.Process) ([]Place, error) {
	f := &finder{process: p}
	for _, asked := range q.Lines {
		if err := f.line(asked); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		kind  Kind
		names []string
	}{{KindCall, q.Calls}, {KindReturn, q.Returns}} {
		for _, name := range x.names {
			if err := f.function(name, x.kind); err != nil {
				return nil, err
			}
		}
	}
	if q.Every {
		if err := f.every(); err != nil {
			return nil, err
		}
	}
	if err := q.findCode(f); err != nil {
		return nil, err
	}
	if len(f.places) > mostPlaces {
		return nil, &Error{Asked: f.places[0].Asked, Problem: fmt.Sprintf("there are %d places, more than %d", len(f.places), mostPlaces)}
	}
	return f.places, nil
}

// debugged calls use with each object that has debug information.
func (f *finder) debugged(use func(*image.Module, *debuginfo.Info) error) error {
	for _, m := range f.process.Modules {
		info, err := m.Debug()
		if err != nil || info == nil || image.RuntimeModule(m.Path) {
			continue
		}
		if err := use(m, info); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) line(asked string) error {
	file, number, found := cutLast(asked, ":")
	line, err := strconv.Atoi(number)
	if !found || err != nil || line < 1 || file == "" {
		return &Error{Asked: asked, Problem: "is no FILE:LINE, such as server.c:120"}
	}
	before, known := len(f.places), false
	err = f.debugged(func(m *image.Module, info *debuginfo.Info) error {
		list, has, err := info.AddressesOf(file, line, mostPlaces)
		if err != nil {
			return fmt.Errorf("probe: %s: %w", m.Path, err)
		}
		known = known || has
		more, err := f.withoutStatement(info, file, line, list)
		if err != nil {
			return fmt.Errorf("probe: %s: %w", m.Path, err)
		}
		for i, link := range append(list, more...) {
			f.add(Place{Kind: KindLine, Asked: asked, PC: m.Addr(link)}, func(s *evidence.Site) bool { return s.Line == line })
			// Several lines may begin at one instruction; its own is then the last of them.
			added := &f.places[len(f.places)-1]
			added.Site.Line, added.Inferred = line, i >= len(list)
		}
		return nil
	})
	switch {
	case err != nil || len(f.places) > before:
		return err
	case known:
		return f.noLine(asked, file, line)
	}
	return f.noFile(asked, file)
}

// statement finds where the statement of a line begins, once in each function and in each call that was inlined: the first in the
// order of addresses where its code is in several parts, which is the place in code without optimisation and is inferred otherwise.
func (f *finder) statement(asked string, code int) error {
	before := len(f.places)
	if err := f.line(asked); err != nil {
		return err
	}
	list := f.places[before:]
	slices.SortStableFunc(list, func(a, b Place) int { return cmp.Compare(a.PC, b.PC) })
	first := map[*debuginfo.Function]int{}
	kept := list[:0]
	for _, x := range list {
		instance, err := f.instance(&x)
		if err != nil {
			return err
		}
		if i, has := first[instance]; has && instance != nil {
			kept[i].Others = append(kept[i].Others, x.PC)
			kept[i].Inferred = true
			continue
		}
		first[instance] = len(kept)
		x.Kind, x.Code = KindCode, code
		kept = append(kept, x)
	}
	f.places = f.places[:before+len(kept)]
	return nil
}

// instance identifies the function or the inlined call that a place is in.
func (f *finder) instance(x *Place) (*debuginfo.Function, error) {
	m := f.process.ModuleAt(x.PC)
	info, err := m.Debug()
	if err != nil {
		return nil, err
	}
	calls, err := info.CallsAt(m.LinkAddr(x.PC))
	if err != nil || x.level >= len(calls) {
		return nil, err
	}
	return calls[x.level].Function, nil
}

// withoutStatement returns instructions of a line in those functions where no statement of it begins.
func (f *finder) withoutStatement(info *debuginfo.Info, file string, line int, begins []uint64) (list []uint64, err error) {
	all, err := info.InstructionsOf(file, line, mostPlaces)
	if err != nil {
		return nil, err
	}
	has := map[uint64]bool{}
	for _, link := range begins {
		entry, err := entryOf(info, link)
		if err != nil {
			return nil, err
		}
		has[entry] = true
	}
	for _, link := range all {
		entry, err := entryOf(info, link)
		if err != nil {
			return nil, err
		}
		if !has[entry] {
			list = append(list, link)
		}
	}
	return list, nil
}

// entryOf returns the entry of the function that has an address; 0 if none has.
func entryOf(info *debuginfo.Info, link uint64) (uint64, error) {
	x, err := info.FunctionAt(link)
	if x == nil || err != nil {
		return 0, err
	}
	return x.Entry, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// noLine says which lines of the file have code.
func (f *finder) noLine(asked, file string, line int) error {
	var lines []int
	err := f.debugged(func(_ *image.Module, info *debuginfo.Info) error {
		more, err := info.CodeLines(file)
		lines = append(lines, more...)
		return err
	})
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	i, _ := slices.BinarySearch(lines, line)
	var nearest []string
	const around = 2
	for _, l := range lines[max(i-around, 0):min(i+around, len(lines))] {
		nearest = append(nearest, fmt.Sprintf("%s:%d", path.Base(file), l))
	}
	return &Error{Asked: asked, Problem: "no code begins at that line", Nearest: nearest}
}

func (f *finder) noFile(asked, file string) error {
	var names []string
	count := 0
	err := f.debugged(func(_ *image.Module, info *debuginfo.Info) error {
		count++
		files, err := info.SourceFiles()
		for _, name := range files {
			names = append(names, path.Base(name))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if count == 0 {
		return &Error{Asked: asked, Problem: "the program has no debug information: compile it with -g, or install its debug symbols"}
	}
	return &Error{Asked: asked, Problem: "the program has no code of that file", Nearest: watchtrace.Nearest(path.Base(file), names)}
}

// add adds a place, at the level of its inline chain that fits, or else the innermost.
func (f *finder) add(x Place, fits func(*evidence.Site) bool) {
	calls := f.process.Symbolize(x.PC, image.AtInstruction)
	x.level = max(slices.IndexFunc(calls, func(c image.SymbolizedCall) bool { return fits(&c.Site) }), 0)
	x.Site, x.Inlined = calls[x.level].Site, calls[x.level].Inlined
	f.places = append(f.places, x)
}

// function finds the entries of a function: its own code, and for calls where it was inlined.
func (f *finder) function(name string, kind Kind) error {
	var names []string
	inlined, returned := 0, 0
	err := f.debugged(func(m *image.Module, info *debuginfo.Info) error {
		err := info.Functions(func(x *debuginfo.Function) bool {
			if !isNamed(x, name) {
				names = append(names, lastName(x.Name))
			} else if x.Entry != 0 {
				f.add(Place{Kind: kind, Asked: name, PC: m.Addr(x.Entry)}, func(s *evidence.Site) bool { return uint64(s.ModuleOffset)-s.FunctionOffset == x.Entry })
				f.outermost()
				returned++
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("probe: %s: %w", m.Path, err)
		}
		var functions []string
		entries, err := info.InlinedCalls(func(x *debuginfo.Function) bool {
			if isNamed(x, name) {
				functions = append(functions, x.Name)
				return true
			}
			return false
		}, mostPlaces)
		if err != nil {
			return fmt.Errorf("probe: %s: %w", m.Path, err)
		}
		inlined += len(entries)
		if kind == KindReturn {
			return nil // inlined code has no return
		}
		for _, call := range entries {
			f.addInlined(Place{Kind: kind, Asked: name, PC: m.Addr(call.Entry), Inlined: true, inside: m.Addr(call.Inside)}, info, call.Inside, functions)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind == KindReturn && returned == 0 && inlined > 0:
		return &Error{Asked: name, Problem: "the compiler inlined the function everywhere, so it has no return"}
	case returned == 0 && inlined == 0:
		return &Error{Asked: name, Problem: "the program has no such function with debug information", Nearest: watchtrace.Nearest(name, names)}
	}
	return nil
}

// every finds the entries of all functions that have code of their own.
func (f *finder) every() error {
	return f.debugged(func(m *image.Module, info *debuginfo.Info) error {
		err := info.Functions(func(x *debuginfo.Function) bool {
			if x.Entry != 0 && len(f.places) <= mostPlaces {
				f.places = append(f.places, Place{Kind: KindCall, Asked: x.Name, PC: m.Addr(x.Entry)})
				f.outermost()
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("probe: %s: %w", m.Path, err)
		}
		return nil
	})
}

// outermost makes the last place that of the physical function.
func (f *finder) outermost() {
	x := &f.places[len(f.places)-1]
	calls := f.process.Symbolize(x.PC, image.AtInstruction)
	x.level, x.Inlined = len(calls)-1, false
	x.Site = calls[x.level].Site
}

// addInlined adds a call that was inlined. Its site is that of an address inside of the call.
func (f *finder) addInlined(x Place, info *debuginfo.Info, inside uint64, functions []string) {
	calls, err := info.CallsAt(inside)
	if err != nil {
		calls = nil
	}
	x.level = slices.IndexFunc(calls, func(c debuginfo.Call) bool { return c.Inlined && slices.Contains(functions, c.Function.Name) })
	named := f.process.Symbolize(x.inside, image.AtInstruction)
	if x.level < 0 || x.level >= len(named) {
		x.level = 0 // its debug information is damaged; expressions there say so
	}
	x.Site = named[x.level].Site
	f.places = append(f.places, x)
}

// isNamed reports whether a function may be meant by a name: its own with or without scopes and the
// arguments of a template.
func isNamed(f *debuginfo.Function, name string) bool {
	own := f.Name
	if own == name || f.Linkage == name && name != "" {
		return true
	}
	plain := withoutArguments(own)
	return plain == name || strings.HasSuffix(plain, "::"+name) || strings.HasSuffix(own, "::"+name)
}

// withoutArguments removes the arguments of templates.
func withoutArguments(name string) string {
	if !strings.Contains(name, "<") || strings.Contains(name, "operator") {
		return name
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
	return b.String()
}

func lastName(name string) string {
	plain := withoutArguments(name)
	if _, last, found := cutLast(plain, "::"); found {
		return last
	}
	return plain
}
