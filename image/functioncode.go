package image

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// FunctionCode is the code of a function, and what its compiler says of its tail calls.
type FunctionCode struct {
	// Entry is where it is entered; Ranges are [low, high). Both are the process's
	// addresses, those in TailCalls are the object's.
	Entry     evidence.Addr
	Ranges    [][2]evidence.Addr
	TailCalls debuginfo.TailCalls
}

// FunctionCode describes the function that covers pc by the module's debug information;
// nil without an error when that describes none.
func (m *Module) FunctionCode(pc evidence.Addr) (*FunctionCode, error) {
	f, err := m.functionAt(pc)
	if err != nil || f == nil {
		return nil, err
	}
	code := &FunctionCode{Entry: m.Addr(f.Entry)}
	for _, r := range f.Ranges {
		code.Ranges = append(code.Ranges, [2]evidence.Addr{m.Addr(r[0]), m.Addr(r[1])})
	}
	info, err := m.Debug()
	if err == nil {
		err = recovered(func() (err error) { code.TailCalls, err = info.TailCalls(m.LinkAddr(pc)); return err })
	}
	if err != nil {
		return nil, fmt.Errorf("tail calls of the function at %v: %w", pc, err)
	}
	return code, nil
}

// FunctionEntry is where the function is entered that covers pc, by the module's debug
// information or else by its symbols; false if neither knows the function.
func (m *Module) FunctionEntry(pc evidence.Addr) (evidence.Addr, bool) {
	if f, err := m.functionAt(pc); err == nil && f != nil {
		return m.Addr(f.Entry), true
	}
	if m.Object == nil {
		return 0, false
	}
	link := m.LinkAddr(pc)
	s, ok := m.Object.SymbolAt(link)
	// the nearest symbol before pc may be another function's
	if !ok || s.Synthetic || link-s.Value >= s.Size {
		return 0, false
	}
	return m.Addr(s.Value), true
}

// DescribesCall reports whether the module's debug information describes the call that
// returns to back.
func (m *Module) DescribesCall(back evidence.Addr) (ok bool, err error) {
	info, err := m.Debug()
	if err != nil || info == nil {
		return false, err
	}
	err = recovered(func() (err error) { ok, err = info.HasCallSite(m.LinkAddr(back)); return err })
	return ok, err
}

func (m *Module) functionAt(pc evidence.Addr) (f *debuginfo.Function, err error) {
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil, err
	}
	err = recovered(func() (err error) { f, err = info.FunctionAt(m.LinkAddr(pc)); return err })
	return f, err
}
