package image

import (
	"fmt"
	"sync"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/internal/wording"
)

// Lookup says how a pc is to be understood.
type Lookup uint8

const (
	// AtInstruction: pc is the instruction itself (the innermost frame, and
	// one that a signal interrupted).
	AtInstruction Lookup = iota
	// ReturnAddress: pc is after a call; the call is looked up.
	ReturnAddress
)

// Address is the address to look up for pc: a return address may be the first
// address past its function.
func (l Lookup) Address(pc evidence.Addr) evidence.Addr {
	if l == ReturnAddress && pc > 0 {
		return pc - 1
	}
	return pc
}

// SymbolizedCall is one level of the inline chain at a pc.
type SymbolizedCall struct {
	Site    evidence.Site
	Inlined bool
}

// namer names code and data of modules. It keeps the results for code: waiting
// threads are mostly in the same few functions.
type namer struct {
	mangled bool // names are left as they are in the files

	mu    sync.Mutex
	calls map[nameKey][]SymbolizedCall // guarded by mu
}

type nameKey struct {
	pc  evidence.Addr
	how Lookup
}

// mostNames bounds the cache.
const mostNames = 1 << 16

// callsAt names a pc of a module, nil if none holds it: see Process.Symbolize.
func (n *namer) callsAt(m *Module, pc evidence.Addr, how Lookup) []SymbolizedCall {
	key := nameKey{pc, how}
	n.mu.Lock()
	calls, ok := n.calls[key]
	n.mu.Unlock()
	if ok {
		return calls
	}
	calls = n.symbolize(m, pc, how)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls == nil {
		n.calls = map[nameKey][]SymbolizedCall{}
	}
	if len(n.calls) < mostNames {
		n.calls[key] = calls
	}
	return calls
}

func (n *namer) symbolize(m *Module, pc evidence.Addr, how Lookup) []SymbolizedCall {
	if m == nil {
		return []SymbolizedCall{{Site: evidence.Site{PC: pc}}}
	}
	base := evidence.Site{PC: pc, Module: m.Path, BuildID: m.BuildID, ModuleOffset: evidence.Addr(m.LinkAddr(pc))}
	link := m.LinkAddr(how.Address(pc))
	info, err := m.Debug()
	m.tellDebug(info, err)
	if info != nil {
		calls, err := m.callsAt(info, link)
		if err != nil {
			m.tellDebugOnce(fmt.Sprintf("the debug information of %s is damaged, so some names are missing: %v", m.name(), err))
		}
		if len(calls) > 0 {
			return n.dwarfSites(base, calls)
		}
	}
	if calls := m.goCallsAt(base, how.Address(pc)); len(calls) > 0 {
		return calls
	}
	site := n.symbolSite(base, m, link)
	if info != nil {
		if position, ok := m.positionAt(info, link); ok {
			site.File, site.Line, site.Column = wording.Name(position.File), position.Line, position.Column
		}
	}
	site.Archive = site.Line == 0 && m.archive(info)
	return []SymbolizedCall{{Site: site}}
}

func (m *Module) callsAt(info *debuginfo.Info, link uint64) (calls []debuginfo.Call, err error) {
	err = recovered(func() (err error) { calls, err = info.CallsAt(link); return err })
	return calls, err
}

func (m *Module) positionAt(info *debuginfo.Info, link uint64) (position debuginfo.Position, ok bool) {
	err := recovered(func() (err error) { position, ok, err = info.PositionAt(link); return err })
	return position, ok && err == nil
}

func (n *namer) dwarfSites(base evidence.Site, calls []debuginfo.Call) []SymbolizedCall {
	list := make([]SymbolizedCall, 0, len(calls))
	for _, c := range calls {
		site, at := base, c.Position
		if c.Own.Line > 0 {
			at = c.Own
		}
		site.File, site.Line, site.Column = wording.Name(at.File), at.Line, at.Column
		if f := c.Function; f != nil {
			site.Function, site.LinkageName = n.functionName(f.Name, f.Linkage), wording.Name(f.Linkage)
			site.Implicit = f.Implicit && at.Line == f.Line
			if entry := f.Entry; !c.Inlined && uint64(base.ModuleOffset) >= entry {
				site.FunctionOffset = uint64(base.ModuleOffset) - entry
			}
		}
		list = append(list, SymbolizedCall{Site: site, Inlined: c.Inlined})
	}
	return list
}

func (n *namer) functionName(name, linkage string) string {
	switch {
	case linkage == "" || n.mangled && linkage == name:
		return wording.Name(name)
	case n.mangled:
		return wording.Name(linkage)
	}
	return demangled(linkage)
}

// symbolName is an ELF symbol's name, demangled unless the options say
// otherwise.
func (n *namer) symbolName(name string) string {
	if n.mangled {
		return wording.Name(name)
	}
	return demangled(name)
}

func (n *namer) symbolSite(site evidence.Site, m *Module, link uint64) evidence.Site {
	if m.Object == nil {
		return site
	}
	s, ok := m.Object.SymbolAt(link)
	if !ok {
		return site
	}
	site.Function = n.symbolName(s.Name)
	if site.Function != s.Name {
		site.LinkageName = wording.Name(s.Name)
	}
	if at := uint64(site.ModuleOffset); at >= s.Value {
		site.FunctionOffset = at - s.Value
	}
	return site
}

// tellDebug records once, as a limit, why a module's code cannot be named well.
func (m *Module) tellDebug(info *debuginfo.Info, err error) {
	if info != nil || m.Object == nil || m.Path == "[vdso]" {
		return
	}
	if err != nil {
		m.tellDebugOnce(fmt.Sprintf("the debug information of %s cannot be read, so names come from its symbols: %v", m.name(), err))
		return
	}
	from := "names come from its symbol table"
	table, goErr := m.GoTable()
	switch source := m.Object.SymbolSource(); {
	case table != nil:
		from = "names and lines of its Go code come from the table that the Go runtime uses (.gopclntab)"
	case goErr != nil:
		from = fmt.Sprintf("the table that the Go runtime uses cannot be read either: %v", goErr)
	case source == "dynsym":
		from = "names come from its dynamic symbols"
	case source == "minidebuginfo":
		from = "names come from its MiniDebugInfo"
	case source == "none":
		from = "it has no symbols either"
	}
	m.tellDebugOnce(fmt.Sprintf("no debug information for %s; %s", m.name(), from))
}

func (m *Module) tellDebugOnce(text string) {
	m.toldDebug.Do(func() {
		m.process.limit(evidence.Limit{Code: evidence.LimitNoDebugInfo, Subject: m.Path, Reason: text}.Worded())
	})
}

// Prefetch looks addresses up in the debug information of their modules, in
// parallel, so that symbolizing them later does not wait.
func (p *Process) Prefetch(pcs []evidence.Addr) {
	links := map[*Module][]uint64{}
	for _, pc := range pcs {
		if m := p.ModuleAt(pc); m != nil {
			links[m] = append(links[m], m.LinkAddr(pc))
		}
	}
	var wait sync.WaitGroup
	for m, list := range links {
		wait.Go(func() {
			if info, err := m.Debug(); err == nil && info != nil {
				// Symbolizing the name meets the same error, and reports it.
				_ = recovered(func() error {
					return guarded(func() error { info.Prepare(list); return nil })
				})
			}
		})
	}
	wait.Wait()
}
