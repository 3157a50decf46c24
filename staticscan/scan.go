package staticscan

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// scanned is a function in the scope. place orders the scope: 0 is the
// failing function, callers and callees follow.
type scanned struct {
	*analysis
	// at is the index of the instruction that failed or called, -1 when there
	// is none, and registers what was known there.
	at        int
	registers *image.Registers
}

// scan is the work of one Run.
type scan struct {
	*processView
	in       Input
	opts     Options
	scope    []scanned
	limits   []evidence.Limit
	full     bool // no more functions are added
	result   evidence.Scan
	suspects map[suspectKey]*suspect
}

// Run scans the code around the failure for the memory it works on. The
// limits say what could not be covered; the error is for a scope that is
// empty: no frame of the program's own, no function of that name, no
// reference to the message.
func Run(in Input, opts Options) (evidence.Scan, []evidence.Limit, error) {
	if in.Process == nil {
		return evidence.Scan{}, nil, errors.New("static scan without a process")
	}
	s := &scan{processView: newWorld(&in), in: in, opts: opts, suspects: map[suspectKey]*suspect{}}
	if err := s.findScope(); err != nil {
		return evidence.Scan{}, s.limits, fmt.Errorf("static scan: %w", err)
	}
	for place := range s.scope {
		s.collect(place)
	}
	s.addCell()
	s.result.Suspects = s.ranked()
	return s.result, s.limits, nil
}

func (s *scan) limit(subject, format string, args ...any) {
	s.limits = append(s.limits, evidence.Limit{Code: evidence.LimitScan, Subject: subject, Reason: fmt.Sprintf(format, args...)}.Worded())
}

// findScope fills scope, the failing functions first.
func (s *scan) findScope() error {
	switch {
	case s.opts.Message != "":
		if err := s.scopeOfMessage(); err != nil {
			return err
		}
	case len(s.opts.Functions)+len(s.opts.At) > 0:
		s.scopeOfNames()
		for _, pc := range s.opts.At {
			s.addAt(pc)
		}
	default:
		s.scopeOfFrames()
	}
	if len(s.scope) == 0 {
		if len(s.limits) > 0 {
			return errors.New(s.limits[0].Text)
		}
		return errors.New("no frame of the program's own code")
	}
	s.addCallees()
	return nil
}

func (s *scan) scopeOfFrames() {
	s.scopeOfBlame()
	for _, i := range s.in.ownFrames(1 + max(s.opts.Depth, 0)) {
		f := &s.in.Frames[i]
		a, err := s.analyse(f.LookupPC())
		if err != nil {
			s.limit("", "the code at %v cannot be scanned: %v", f.PC(), err)
			continue
		}
		s.add(scanned{analysis: a, at: s.positionIn(a, i), registers: &f.Registers})
	}
}

// scopeOfBlame adds the function that the bad value belongs to, if it has no
// frame: it jumped to the one that failed.
func (s *scan) scopeOfBlame() {
	b := s.opts.Blame
	if b == nil || b.Role == "" || b.Site.PC == 0 || s.process.ModuleAt(b.Site.PC) == nil {
		return
	}
	a, err := s.analyse(b.Site.PC)
	if err != nil || image.Machinery(&evidence.Site{Module: a.function.module.Path, Function: a.function.name}) {
		return
	}
	for _, i := range s.in.ownFrames(1) {
		if a.function.contains(s.in.Frames[i].LookupPC()) {
			return
		}
	}
	if at, ok := a.flow.index(uint64(b.Site.PC)); ok {
		s.add(scanned{analysis: a, at: at})
	}
}

// positionIn is the index of the instruction that a frame stands at.
func (s *scan) positionIn(a *analysis, frame int) int {
	return instructionOf(a, &s.in.Frames[frame])
}

func (s *scan) scopeOfNames() {
	for _, name := range s.opts.Functions {
		pc, ok := s.functionNamed(name)
		if !ok {
			s.limit(name, "no function with this name was found")
			continue
		}
		s.addAt(pc)
	}
}

// functionNamed looks among the functions of the stack first, whose names
// are demangled, then among the symbols.
func (s *scan) functionNamed(name string) (evidence.Addr, bool) {
	for i := range s.in.Frames {
		for _, c := range s.in.calls(&s.in.Frames[i]) {
			if c.Site.Function == name || c.Site.LinkageName == name {
				return s.in.Frames[i].LookupPC(), true
			}
		}
	}
	sym, ok := s.process.SymbolNamed(name)
	return sym.Addr, ok
}

// addAt adds the function at pc; a frame that stands in it tells the
// registers.
func (s *scan) addAt(pc evidence.Addr) {
	a, err := s.analyse(pc)
	if err != nil {
		s.limit("", "the code at %v cannot be scanned: %v", pc, err)
		return
	}
	for i := range s.in.Frames {
		if f := &s.in.Frames[i]; f.Kind != evidence.SignalFrame && a.function.contains(f.LookupPC()) {
			s.add(scanned{analysis: a, at: instructionOf(a, f), registers: &f.Registers})
			return
		}
	}
	s.add(scanned{analysis: a, at: -1})
}

// add puts a function into the scope unless it is there, or the scope is full.
func (s *scan) add(f scanned) {
	for _, old := range s.scope {
		if old.analysis == f.analysis {
			return
		}
	}
	if len(s.scope) >= maxFunctions || s.result.Instructions >= maxInstructions {
		if !s.full {
			s.full = true
			s.limit("static scan", "the scope was cut at %d functions and %d instructions", len(s.scope), s.result.Instructions)
		}
		return
	}
	s.result.Instructions += len(f.flow.insts)
	s.scope = append(s.scope, f)
	s.result.Functions = append(s.result.Functions, f.function.name)
	for _, p := range f.problems {
		s.limit(f.function.name, "%s", p)
	}
}

func (s *scan) addCallees() {
	level := s.scope
	if len(s.opts.Functions)+len(s.opts.At) == 0 && s.opts.Message == "" {
		level = s.scope[:1]
	}
	for range max(s.opts.Depth, 0) {
		before := len(s.scope)
		for _, f := range append([]scanned(nil), level...) {
			for _, pc := range s.callees(f.analysis) {
				s.addAt(pc)
			}
		}
		level = s.scope[before:]
	}
}
