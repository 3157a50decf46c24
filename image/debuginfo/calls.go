package debuginfo

import "debug/dwarf"

// Unit is a compilation unit.
type Unit struct {
	Name, CompDir, Producer string
	// Language is the DW_LANG code.
	Language int64
}

// Function is a subprogram with code.
type Function struct {
	// Name as in the DWARF, qualified by namespaces and classes in C++ and
	// Rust; Linkage is the mangled name or "". A C function with a Linkage has
	// its symbol's name there (an alias made with asm).
	Name, Linkage string
	// Entry is the address at which the function is entered; Ranges are [low,
	// high). An abstract function, of an inlined call, has neither.
	Entry  uint64
	Ranges [][2]uint64
	// File and Line are where it was declared. Implicit: the compiler made it, as it does the destructor of a class whose source has none;
	// then Line may be that of the class.
	File     string
	Line     int
	Implicit bool
	Unit     *Unit

	unit   *unit
	offset uint64
}

// Position is a line of source.
type Position struct {
	// File is the path that the compiler recorded: a relative one is joined
	// with its directory and the unit's, and nothing is cleaned.
	File         string
	Line, Column int
}

// Call is one level of an address's inline chain.
type Call struct {
	Function *Function // for an inlined call, the abstract function
	Inlined  bool
	// Position is, for the innermost level, the line of the address; for an
	// outer level, the place of the inlined call within it. It is zero if the
	// DWARF does not say.
	Position Position
	// Own is, for the innermost level, the place in the function's own file where Position, which is gdb's, is in another one, but the last
	// row of the line table for the address is of the function's own (DWARF 5 section 6.2); zero elsewhere. Code of an inlined call without
	// instructions of its own has such rows.
	Own Position

	unit  *unit
	tree  *blockTree
	level int32
	inner int32 // the innermost block at the address
}

// FunctionAt returns the physical function that covers pc, nil if none does.
func (i *Info) FunctionAt(pc uint64) (*Function, error) {
	p, err := i.placeAt(pc)
	if err != nil || !p.found {
		return nil, err
	}
	return p.unit.scopes.function(p.function)
}

// PositionAt returns the line-table row that covers pc.
func (i *Info) PositionAt(pc uint64) (Position, bool, error) {
	p, err := i.placeAt(pc)
	if p.home == nil {
		return Position{}, false, err
	}
	// the line table may be readable even if the rest of the unit is not
	return p.home.position(pc)
}

func (u *unit) position(pc uint64) (Position, bool, error) {
	table, err := u.lines()
	if err != nil || table == nil {
		return Position{}, false, err
	}
	return table.positionAt(pc)
}

// CallsAt returns the inline chain at pc, innermost first; the last one is
// the physical function. Empty when no function covers pc.
func (i *Info) CallsAt(pc uint64) ([]Call, error) {
	p, err := i.placeAt(pc)
	if err != nil || !p.found {
		return nil, err
	}
	tree, err := p.unit.scopes.tree(p.function)
	if err != nil {
		return nil, err
	}
	// an unreadable line table costs the lines, not the names
	position, _, err := p.home.position(pc)
	if err != nil {
		i.problem(err)
	}
	inner := tree.innermost(pc)
	var calls []Call
	for _, level := range tree.levels(inner) {
		call := Call{Position: position, unit: p.unit, tree: tree, level: level, inner: inner}
		e, err := p.unit.entryAt(tree.blocks[level].die)
		if err != nil {
			return nil, err
		}
		call.Inlined = e.tag() == dwarf.TagInlinedSubroutine
		if call.Function, err = p.unit.scopes.function(e.off); err != nil {
			return nil, err
		}
		calls = append(calls, call)
		position = e.callPosition()
	}
	if len(calls) > 0 {
		calls[0].Own = i.ownPosition(p.home, pc, &calls[0])
	}
	return calls, nil
}

// ownPosition is Call.Own.
func (i *Info) ownPosition(home *unit, pc uint64, inner *Call) Position {
	f := inner.Function
	if f == nil || f.File == "" || inner.Position.File == "" || inner.Position.File == f.File {
		return Position{}
	}
	table, err := home.lines()
	if err != nil || table == nil {
		return Position{}
	}
	p, _, err := table.positionIn(pc, f.File)
	if err != nil {
		i.problem(err)
	}
	return p
}

// callPosition is where an inlined call was made. As in gdb, a call without a
// line has no position.
func (e *entry) callPosition() Position {
	line, ok := e.attr(dwarf.AttrCallLine)
	if !ok || line.number == 0 {
		return Position{}
	}
	p := Position{Line: int(line.number)}
	if column, ok := e.attr(dwarf.AttrCallColumn); ok {
		p.Column = int(column.number)
	}
	if file, ok := e.attr(dwarf.AttrCallFile); ok {
		name, err := e.unit.fileName(file.number)
		if err != nil {
			e.unit.src.info.problem(err)
		}
		p.File = name
	}
	return p
}

func (e *entry) function() (*Function, error) {
	f := &Function{Unit: e.unit.describe(), unit: e.unit, offset: e.off}
	var err error
	if f.Name, err = e.displayName(f.Unit.Language); err != nil {
		return nil, err
	}
	if qualifies(f.Unit.Language) && f.Unit.Language != langRust {
		f.Name = canonical(f.Name)
	}
	if f.Linkage, err = e.linkageName(); err != nil {
		return nil, err
	}
	if e.tag() == dwarf.TagSubprogram {
		if f.Ranges, err = e.ranges(); err != nil {
			return nil, err
		}
		f.Entry = e.entryPC(f.Ranges)
	}
	f.File, f.Line = e.declaredAt()
	if v, ok, _ := e.inherited(dwarf.AttrArtificial); ok && v.number != 0 {
		f.Implicit = true
		if f.Line == 0 {
			f.Line = e.classLine()
		}
	}
	return f, nil
}

// classLine is where the class of a function was declared, as far as known.
func (e *entry) classLine() int {
	at, err := e.declared()
	if err != nil {
		return 0
	}
	table, err := at.unit.table()
	if err != nil {
		return 0
	}
	i := table.scopeAt(at.off)
	if i < 0 {
		return 0
	}
	around, err := at.unit.entryAt(table.scopes[i].die)
	if err != nil {
		return 0
	}
	_, line := around.declaredAt()
	return line
}

func (e *entry) displayName(language int64) (string, error) {
	if qualifies(language) {
		return e.qualifiedName()
	}
	return e.name()
}

// entryPC is where a function is entered: its first range's start, which is
// not the lowest one when a cold part was moved ahead of it.
func (e *entry) entryPC(ranges [][2]uint64) uint64 {
	if v, ok := e.attr(dwarf.AttrEntrypc); ok && v.form == formAddr {
		return v.number
	}
	if len(ranges) == 0 {
		return 0
	}
	return ranges[0][0]
}

// declaredAt returns the place of a DIE's declaration, as far as known.
func (e *entry) declaredAt() (file string, line int) {
	if v, ok, _ := e.inherited(dwarf.AttrDeclLine); ok {
		line = int(v.number)
	}
	if v, ok, _ := e.inherited(dwarf.AttrDeclFile); ok && v.number != 0 {
		name, err := v.unit.fileName(v.number)
		if err != nil {
			e.unit.src.info.problem(err)
		}
		file = name
	}
	return file, line
}
