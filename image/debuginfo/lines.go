package debuginfo

import (
	"fmt"
	"sort"
)

// lineRow says that code from pc on belongs to a line, until the next row of
// any file. Line 0 ends the file's claim.
type lineRow struct {
	pc           uint64
	line, column uint32
	stmt         bool
}

// subfile holds the rows of one source file in a unit.
type subfile struct {
	path string
	rows []lineRow
	// hidden are rows that gdb does not keep, though they are the last ones of their addresses.
	hidden []lineRow
}

// maxSubfiles bounds the files that rows are kept for.
const maxSubfiles = 1 << 16

// lineMachine runs a line program (DWARF 5 section 6.2.2) and keeps the rows
// that gdb 13 would keep (its dwarf2/read.c, lnp_state_machine, and buildsym.c,
// record_line), so that both show the same line for an address.
type lineMachine struct {
	h        *lineHeader
	subfiles []subfile
	byPath   map[string]int
	lowest   uint64 // the unit's low_pc

	address, column uint64
	line            uint32
	file            uint64
	stmt            bool
	discriminator   uint64

	current, last int // subfiles; -1 for none
	hiddenIn      int // the subfile of the last hidden row; -1 for none
	lastAddress   uint64
	stmtAtAddress bool
	lastLine      uint32
	discriminated bool
	dropped       bool // the linker discarded this sequence's function
}

func (h *lineHeader) readSubfiles() ([]subfile, error) {
	m := &lineMachine{h: h, byPath: map[string]int{}, current: -1, hiddenIn: -1}
	m.lowest, _ = h.unit.base() // without one no sequence at 0 is dropped
	r := &reader{data: h.program, pos: h.start}
	m.reset()
	for r.left() > 0 {
		if err := m.step(r); err != nil {
			return nil, err
		}
		if r.bad || len(m.subfiles) > maxSubfiles {
			return nil, h.bad(int(h.offset), "line program is cut off or names too many files")
		}
	}
	for i := range m.subfiles {
		sortRows(m.subfiles[i].rows)
		sortRows(m.subfiles[i].hidden)
	}
	return m.subfiles, nil
}

// sortRows puts the ends of sequences before the rows of the same address.
func sortRows(rows []lineRow) {
	less := func(i, j int) bool {
		if rows[i].pc == rows[j].pc {
			return rows[i].line == 0 && rows[j].line != 0
		}
		return rows[i].pc < rows[j].pc
	}
	if !sort.SliceIsSorted(rows, less) {
		sort.SliceStable(rows, less)
	}
}

func (m *lineMachine) reset() {
	m.address, m.column, m.line, m.file = 0, 0, 1, 1
	m.stmt, m.discriminator = m.h.defaultStmt, 0
	m.last, m.lastAddress, m.stmtAtAddress, m.lastLine = -1, 0, false, 0
	m.discriminated, m.dropped = false, false
	m.startFile()
}

// startFile makes the file register's subfile the current one; if it names no
// file, nothing changes.
func (m *lineMachine) startFile() bool {
	if !m.validFile() {
		return false
	}
	path := m.h.files[m.file].path
	i, ok := m.byPath[path]
	if !ok {
		i = len(m.subfiles)
		m.subfiles = append(m.subfiles, subfile{path: path})
		m.byPath[path] = i
	}
	m.current = i
	return true
}

func (m *lineMachine) validFile() bool {
	return m.file < uint64(len(m.h.files)) && (m.file > 0 || m.h.version >= 5)
}

// Standard and extended opcodes (DWARF 5 sections 6.2.5.2 and 6.2.5.3).
const (
	lnsExtended      = 0
	lnsCopy          = 1
	lnsAdvancePC     = 2
	lnsAdvanceLine   = 3
	lnsSetFile       = 4
	lnsSetColumn     = 5
	lnsNegateStmt    = 6
	lnsConstAddPC    = 8
	lnsFixedAdvance  = 9
	lneEndSequence   = 1
	lneSetAddress    = 2
	lneDefineFile    = 3
	lneDiscriminator = 4
)

func (m *lineMachine) step(r *reader) error {
	op := r.u8()
	if op >= m.h.opcodeBase {
		m.special(op)
		return nil
	}
	switch op {
	case lnsExtended:
		return m.extended(r)
	case lnsCopy:
		m.record(false)
		m.discriminator = 0
	case lnsAdvancePC:
		m.address += r.uleb() * m.h.minInst
	case lnsAdvanceLine:
		m.advanceLine(int64(r.sleb()))
	case lnsSetFile:
		m.file = r.uleb()
		if m.validFile() {
			m.discriminated = m.discriminator != 0
			m.startFile()
		}
	case lnsSetColumn:
		m.column = r.uleb()
	case lnsNegateStmt:
		m.stmt = !m.stmt
	case lnsConstAddPC:
		m.address += uint64((255-m.h.opcodeBase)/m.h.lineRange) * m.h.minInst
	case lnsFixedAdvance:
		m.address += uint64(r.u16())
	default:
		for range m.h.opcodeLength[op-1] {
			r.skipLEB()
		}
	}
	return nil
}

func (m *lineMachine) special(op uint8) {
	adjusted := op - m.h.opcodeBase
	m.address += uint64(adjusted/m.h.lineRange) * m.h.minInst
	m.advanceLine(int64(m.h.lineBase) + int64(adjusted%m.h.lineRange))
	m.record(false)
	m.discriminator = 0
}

func (m *lineMachine) advanceLine(delta int64) {
	m.line = uint32(int64(m.line) + delta)
	if delta != 0 {
		m.discriminated = m.discriminator != 0
	}
}

func (m *lineMachine) extended(r *reader) error {
	at := r.pos
	length := r.uleb()
	if r.bad || length > uint64(r.left()) {
		return m.h.bad(at, "extended opcode is longer than the program")
	}
	end := r.pos + int(length)
	if length == 0 {
		return nil
	}
	switch r.u8() {
	case lneEndSequence:
		m.record(true)
		m.reset()
	case lneSetAddress:
		if length != 9 {
			return m.h.bad(at, fmt.Sprintf("set_address of %d bytes", length))
		}
		m.address = r.u64()
		if m.address == 0 && m.lowest > 0 || m.address >= ^uint64(1) {
			m.dropped = true
		}
	case lneDefineFile:
		name := r.cstring()
		m.h.addFile(string(name), r)
	case lneDiscriminator:
		m.discriminator = r.uleb()
		m.discriminated = m.discriminated || m.discriminator != 0
	}
	if r.pos > end {
		return m.h.bad(at, "extended opcode overruns its length")
	}
	r.pos = end
	return nil
}

// record adds the machine's row, or its end of sequence. A row that changes the
// file ends the claim of the file before; a row without is_stmt at an address
// that has a statement does not.
func (m *lineMachine) record(end bool) {
	if m.validFile() {
		changed := m.last != m.current
		hidden := !end && changed && m.lastAddress == m.address && !m.stmt && m.stmtAtAddress
		ignored := !end && m.line == 0 || hidden
		m.hide(hidden && m.line != 0)
		if end || changed && !ignored {
			m.keep(m.last, lineRow{pc: m.address, stmt: true})
		}
		repeats := !changed && m.line == m.lastLine && m.discriminated
		if !end && !ignored && !repeats {
			m.last, m.lastLine = m.current, m.line
			m.keep(m.last, lineRow{m.address, m.line, uint32(m.column), m.stmt})
		}
	}
	if m.lastAddress != m.address {
		m.lastAddress, m.stmtAtAddress = m.address, false
	}
	m.stmtAtAddress = m.stmtAtAddress || m.stmt
}

// hide keeps the machine's row as the last one of its address, if it is one that gdb does not keep; it takes the place of another such row.
func (m *lineMachine) hide(hidden bool) {
	if m.hiddenIn >= 0 {
		before := &m.subfiles[m.hiddenIn].hidden
		if n := len(*before); n > 0 && (*before)[n-1].pc == m.address {
			*before = (*before)[:n-1]
		}
	}
	if m.hiddenIn = -1; hidden && !m.dropped && m.current >= 0 {
		m.hiddenIn = m.current
		rows := &m.subfiles[m.current].hidden
		*rows = append(*rows, lineRow{m.address, m.line, uint32(m.column), m.stmt})
	}
}

// keep appends a row. An end removes the rows of its own address, which cover
// nothing. Without a row before it, it is dropped.
func (m *lineMachine) keep(file int, row lineRow) {
	if file < 0 || m.dropped {
		return
	}
	rows := m.subfiles[file].rows
	if row.line == 0 {
		line := uint32(0)
		for len(rows) > 0 {
			line = rows[len(rows)-1].line
			if rows[len(rows)-1].pc != row.pc {
				break
			}
			rows = rows[:len(rows)-1]
		}
		m.subfiles[file].rows = rows
		if line == 0 {
			return
		}
	}
	m.subfiles[file].rows = append(rows, row)
}

// positionAt returns the row that covers pc, as gdb's find_pc_sect_line chooses it:
// the nearest one at or before pc among those that no later row or end of
// their file supersedes, a statement before a non-statement at one address.
func (t *lineTable) positionAt(pc uint64) (Position, bool, error) {
	subfiles, err := t.rows()
	if err != nil {
		return Position{}, false, err
	}
	best, file := rowAt(subfiles, pc)
	if best == nil {
		return Position{}, false, nil
	}
	return best.in(file), true, nil
}

// positionIn returns the place in a file if the last row of the address that positionAt takes is one of that file, and gdb passes over it;
// ok is false if it is not.
func (t *lineTable) positionIn(pc uint64, path string) (p Position, ok bool, err error) {
	subfiles, err := t.rows()
	if err != nil {
		return Position{}, false, err
	}
	best, _ := rowAt(subfiles, pc)
	for i := range subfiles {
		if best == nil || subfiles[i].path != path {
			continue
		}
		rows := subfiles[i].hidden
		n := sort.Search(len(rows), func(i int) bool { return rows[i].pc > best.pc })
		if n > 0 && rows[n-1].pc == best.pc {
			return rows[n-1].in(path), true, nil
		}
	}
	return Position{}, false, nil
}

func (r *lineRow) in(file string) Position {
	return Position{File: file, Line: int(r.line), Column: int(r.column)}
}

// rowAt is the row of positionAt, and its file; nil if there is none.
func rowAt(subfiles []subfile, pc uint64) (best *lineRow, file string) {
	for i := range subfiles {
		rows := subfiles[i].rows
		n := sort.Search(len(rows), func(i int) bool { return rows[i].pc > pc })
		if n == 0 || rows[n-1].line == 0 {
			continue
		}
		if best != nil && rows[n-1].pc <= best.pc {
			continue
		}
		best, file = preferStatement(rows, n-1), subfiles[i].path
	}
	return best, file
}

func preferStatement(rows []lineRow, i int) *lineRow {
	if rows[i].stmt {
		return &rows[i]
	}
	for j := i; j > 0 && rows[j-1].pc == rows[i].pc && rows[j-1].line != 0; j-- {
		if rows[j-1].stmt {
			return &rows[j-1]
		}
	}
	return &rows[i]
}
