package unwind

import (
	"debug/elf"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/object"
)

// moduleCache holds the call frame information of each module.
type moduleCache struct {
	mutex sync.Mutex
	known map[*image.Module]*moduleCFI
	// copied counts the bytes of search tables that were copied out of memory.
	copied atomic.Int64
	spent  effort
}

func (c *moduleCache) of(memory image.Memory, m *image.Module) *moduleCFI {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.known == nil {
		c.known = map[*image.Module]*moduleCFI{}
	}
	cfi, ok := c.known[m]
	if !ok {
		cfi = &moduleCFI{module: m, memory: memory, copied: &c.copied, spent: &c.spent, functions: map[functionKey]*function{}, cies: [2]map[uint64]*cie{{}, {}}}
		c.known[m] = cfi
	}
	return cfi
}

// Limits returns a limit for each module that was part of a walk and whose call
// frame information is missing or damaged.
func (u *Unwinder) Limits() []evidence.Limit {
	u.modules.mutex.Lock()
	defer u.modules.mutex.Unlock()
	var list []evidence.Limit
	for _, m := range u.modules.known {
		m.mutex.Lock()
		if m.problem != nil {
			list = append(list, evidence.Limit{Code: evidence.LimitUnwinding, Subject: m.module.Path,
				Reason: fmt.Sprintf("stack frames in it may be guessed: %v", m.problem)}.Worded())
		}
		m.mutex.Unlock()
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Subject < list[j].Subject })
	return list
}

// moduleCFI is the call frame information of one module. Its methods must be
// called with mutex held. All addresses are link-time addresses.
type moduleCFI struct {
	mutex  sync.Mutex
	module *image.Module
	memory image.Memory
	copied *atomic.Int64
	spent  *effort

	opened  bool
	eh      area // nil when there is none
	ehStart uint64
	ehSize  uint64
	table   *searchTable // nil or empty when there is no usable one
	problem error        // why the tables are unusable
	scanned bool
	spans   []span

	debugOpened bool
	debug       *fileArea
	debugSpans  []span

	cies      [2]map[uint64]*cie // by format and address
	functions map[functionKey]*function
	cached    int // approximate size of functions in bytes
}

const (
	// maxCached bounds the functions of a module that are kept, in bytes.
	maxCached        = 16 << 20
	functionOverhead = 512
)

type functionKey struct {
	format format
	addr   uint64
}

// function is an FDE prepared for delve's interpreter.
type function struct {
	fde   *fde
	entry *frame.FrameDescriptionEntry
	err   error
}

// row returns the row of the table that is valid at pc, an address of the
// process. ok is false, without an error, when no table covers it.
func (m *moduleCFI) row(pc evidence.Addr) (r row, ok bool, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	link := m.module.LinkAddr(pc)
	var fn *function
	err = recovered("call frame information", func() error {
		fn, err = m.functionAt(link)
		return err
	})
	if fn == nil || err != nil {
		return row{}, false, err
	}
	if fn.err != nil {
		return row{}, false, fn.err
	}
	if err := m.spent.spend(len(fn.fde.cie.initial) + len(fn.fde.instructions)); err != nil {
		return row{}, false, err
	}
	err = recovered("call frame instructions", func() error {
		ctx, err := fn.entry.EstablishFrame(link)
		if err != nil {
			return err
		}
		r, err = compileRow(ctx, fn.fde)
		return err
	})
	if err != nil {
		return row{}, false, fmt.Errorf("%s at %#x: %w", m.module.Path, link, err)
	}
	r.bias = m.module.Bias
	return r, true, nil
}

// functionAt returns the FDE that covers pc: by the binary search table, else by a
// scan of .eh_frame, else from .debug_frame. nil when none does.
func (m *moduleCFI) functionAt(pc uint64) (*function, error) {
	m.open()
	fn, found, err := m.findInTable(pc)
	if err == nil && fn == nil && !found && m.eh != nil {
		fn, err = m.findByScan(pc)
	}
	if fn != nil {
		return fn, nil
	}
	if debug, debugErr := m.findInDebugFrame(pc); debug != nil {
		return debug, debugErr
	}
	if err == nil {
		err = m.problem
	}
	return nil, err
}

// findInTable looks up pc in the binary search table. conclusive says that the
// table is sound and has no function there, so that a scan would find none.
func (m *moduleCFI) findInTable(pc uint64) (fn *function, conclusive bool, err error) {
	if m.table == nil || m.table.len() == 0 {
		return nil, false, nil
	}
	begin, addr, ok := m.table.entryFor(pc)
	if !ok {
		return nil, m.table.sorted(), nil
	}
	fn, err = m.function(ehFrame, addr)
	if err != nil || fn.fde.begin != begin {
		// The table and the section contradict each other.
		return nil, false, nil
	}
	if !fn.fde.covers(pc) {
		return nil, m.table.sorted(), nil
	}
	return fn, true, nil
}

func (m *moduleCFI) findByScan(pc uint64) (*function, error) {
	if !m.scanned {
		m.scanned = true
		var err error
		m.spans, err = scanSection(m.eh, ehFrame, m.ehStart, m.ehSize)
		if m.problem == nil {
			m.problem = err
		}
	}
	s, ok := findSpan(m.spans, pc)
	if !ok {
		return nil, nil
	}
	return m.function(ehFrame, s.addr)
}

func (m *moduleCFI) findInDebugFrame(pc uint64) (*function, error) {
	if !m.debugOpened {
		m.debugOpened = true
		m.openDebugFrame()
	}
	s, ok := findSpan(m.debugSpans, pc)
	if !ok {
		return nil, nil
	}
	return m.function(debugFrame, s.addr)
}

// function returns the FDE at addr; the error is one of its header; an error in
// its instructions is stored in the function.
func (m *moduleCFI) function(f format, addr uint64) (*function, error) {
	key := functionKey{f, addr}
	if fn, ok := m.functions[key]; ok {
		return fn, nil
	}
	a, base := m.eh, m.ehStart
	if f == debugFrame {
		a, base = m.debug, m.debug.addr
	}
	e, err := readEntry(a, addr)
	if err != nil {
		return nil, err
	}
	if e.isCIE(f) {
		return nil, fmt.Errorf("%s at %#x: a CIE where an FDE is expected", a.name(), addr)
	}
	c, err := cieOf(a, &e, f, base, m.cies[f])
	if err != nil {
		return nil, err
	}
	fd, err := parseFDE(a, &e, c)
	if err != nil {
		return nil, err
	}
	fn := &function{fde: fd}
	instructionsAddr := e.bodyAddr + uint64(len(e.body)-len(fd.instructions))
	code, err := rewrite(fd, instructionsAddr)
	if err == nil {
		fn.entry, err = interpreter(fd, code)
	}
	if err != nil {
		fn.err = fmt.Errorf("%s at %#x: %w", a.name(), addr, err)
	}
	if m.cached += functionOverhead + len(code); m.cached > maxCached {
		clear(m.functions)
		m.cached = functionOverhead + len(code)
	}
	m.functions[key] = fn
	return fn, nil
}

// open finds the tables, in the object's file or, failing that, in memory.
func (m *moduleCFI) open() {
	if m.opened {
		return
	}
	m.opened = true
	if m.module.Object != nil {
		m.openFile(m.module.Object)
	}
	if m.eh == nil {
		m.openMemory()
	}
}

func (m *moduleCFI) openFile(o *object.File) {
	s := o.Section(".eh_frame")
	if s == nil || s.Type == uint32(elf.SHT_NOBITS) {
		return
	}
	data, err := s.Data()
	if err != nil {
		m.problem = err
		return
	}
	m.eh = &fileArea{title: o.Path() + ": .eh_frame", addr: s.Addr, data: data}
	m.ehStart, m.ehSize = s.Addr, uint64(len(data))
	hdr := o.Section(".eh_frame_hdr")
	if hdr == nil {
		return
	}
	if data, err = hdr.Data(); err == nil {
		m.table, err = parseHeader(data, hdr.Addr)
	}
	if err != nil {
		m.problem = fmt.Errorf("%s: %w", o.Path(), err)
	}
}

// openDebugFrame opens .debug_frame of the object or its debug file.
func (m *moduleCFI) openDebugFrame() {
	if m.module.Object == nil {
		return
	}
	s := m.module.Object.Section(".debug_frame")
	if s == nil {
		if debug := m.module.DebugObject(); debug != nil {
			s = debug.Section(".debug_frame")
		}
	}
	if s == nil || s.Type == uint32(elf.SHT_NOBITS) {
		return
	}
	data, err := s.Data()
	if err != nil {
		m.problem = err
		return
	}
	m.debug = &fileArea{title: m.module.Path + ": .debug_frame", data: data}
	m.debugSpans, err = scanSection(m.debug, debugFrame, 0, uint64(len(data)))
	if m.problem == nil {
		m.problem = err
	}
}
