package debuginfo

import (
	"debug/dwarf"
	"encoding/binary"
	"sort"
)

// Variable is a variable in scope, where it lives, and its type.
type Variable struct {
	Name string
	Type Type
	// Linkage is the mangled name of a variable with static storage, or "".
	Linkage string
	// OfFunction is set for a variable with static storage that a function declares.
	OfFunction bool
	// Parameter is set for arguments, not for locals; Artificial for variables
	// that the compiler made ("this").
	Parameter, Artificial bool
	// Location is the DWARF expression valid at the address asked for; nil
	// when the variable has none there. Const is DW_AT_const_value.
	Location []byte
	Const    []byte
	// Listed: Location is from a location list, so it is valid exactly there. One for the whole
	// function need not be valid before the function has made its frame.
	Listed bool
	// FrameBase is the enclosing function's DW_AT_frame_base expression.
	FrameBase []byte
	File      string
	Line      int
	// Depth is the nesting of its lexical block; inner ones hide outer ones.
	Depth int

	unit *unit
}

// BaseType resolves the operand of a typed DWARF operation
// (DW_OP_regval_type, DW_OP_convert, ...) in the variable's Location: the
// offset of a base type in the variable's unit.
func (v *Variable) BaseType(offset uint64) (Type, bool) {
	if v.unit == nil || offset > v.unit.end {
		return nil, false
	}
	e, err := v.unit.entryAt(v.unit.offset + offset)
	if err != nil || e.tag() != dwarf.TagBaseType {
		return nil, false
	}
	return v.unit.src.info.typeOf(e.unit, e.off, v.unit.describe().Language), true
}

// ImplicitPointer resolves DW_OP_implicit_pointer's reference: the variable,
// as it is at pc, that a pointer without a value of its own points to.
func (v *Variable) ImplicitPointer(offset, pc uint64) (Variable, bool, error) {
	if v.unit == nil {
		return Variable{}, false, nil
	}
	u, off, err := v.unit.src.resolve(offset)
	if err != nil {
		return Variable{}, false, err
	}
	e, err := u.entryAt(off)
	if err != nil {
		return Variable{}, false, err
	}
	target, ok, err := e.variable(pc, v.unit.describe().Language)
	target.FrameBase = v.FrameBase
	return target, ok, err
}

// VariablesAt returns the parameters and locals of one level of the inline
// chain that are in scope at pc, parameters first, in declaration order.
// Among them are those that the compiler dropped, which have no location.
func (i *Info) VariablesAt(call Call, pc uint64) ([]Variable, error) {
	if call.tree == nil {
		return nil, nil
	}
	s := &scopeReader{call: call, pc: pc, seen: map[dieKey]bool{}, order: map[dieKey]int{}, language: call.unit.describe().Language}
	if err := s.readFrameBase(); err != nil {
		return nil, err
	}
	var instances []entry
	for depth, n := range call.blocks() {
		e, err := call.unit.entryAt(call.tree.blocks[n].die)
		if err != nil {
			return nil, err
		}
		if err := s.readChildren(&e, depth, 0); err != nil {
			return nil, err
		}
		instances = append(instances, e)
	}
	for depth := range instances {
		if err := s.readAbstract(&instances[depth], depth); err != nil {
			return nil, err
		}
	}
	sort.Stable(byDeclaration{&s.parameters, s.order})
	sort.Stable(byDeclaration{&s.locals, s.order})
	return append(s.parameters.list, s.locals.list...), nil
}

// blocks returns the level's own block and the lexical blocks within it that
// lead to the innermost one, outermost first.
func (c *Call) blocks() []int32 {
	var path []int32
	for n := c.inner; n >= 0 && n != c.level; n = c.tree.blocks[n].parent {
		if c.tree.blocks[n].level {
			path = path[:0]
			continue
		}
		path = append(path, n)
	}
	path = append(path, c.level)
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

type dieKey struct {
	unit *unit
	off  uint64
}

// scopeReader gathers the variables of a level.
type scopeReader struct {
	call               Call
	pc                 uint64
	language           int64
	frameBase          []byte
	seen               map[dieKey]bool // abstract variables that have an instance
	parameters, locals declared
	// order places the variables of abstract functions: compilers write the
	// variables of an instance in any order, and in other blocks.
	order map[dieKey]int
}

// declared are variables of a level with the DIEs that declare them.
type declared struct {
	list []Variable
	dies []dieKey
}

func (d *declared) addVariable(v Variable, die dieKey) {
	d.list, d.dies = append(d.list, v), append(d.dies, die)
}

// byDeclaration sorts variables as the program declares them. Variables without
// a place in that order come last.
type byDeclaration struct {
	*declared
	order map[dieKey]int
}

func (b byDeclaration) Len() int { return len(b.list) }

func (b byDeclaration) Swap(i, j int) {
	b.list[i], b.list[j] = b.list[j], b.list[i]
	b.dies[i], b.dies[j] = b.dies[j], b.dies[i]
}

func (b byDeclaration) Less(i, j int) bool { return b.place(i) < b.place(j) }

func (b byDeclaration) place(i int) int {
	if n, ok := b.order[b.dies[i]]; ok {
		return n
	}
	return len(b.order)
}

func (s *scopeReader) readFrameBase() error {
	e, err := s.call.unit.entryAt(s.call.tree.blocks[0].die)
	if err != nil {
		return err
	}
	s.frameBase, err = e.frameBase(s.pc)
	return err
}

// readAbstract adds variables that were optimized away, so that a block's
// instance lacks them: the abstract function still declares them.
func (s *scopeReader) readAbstract(block *entry, depth int) error {
	origin, ok := block.attr(dwarf.AttrAbstractOrigin)
	if !ok {
		return nil
	}
	u, off, err := origin.ref()
	if err != nil {
		return err
	}
	abstract, err := u.entryAt(off)
	if err != nil {
		return err
	}
	err = abstract.children(func(child *entry) bool {
		s.order[dieKey{child.unit, child.off}] = len(s.order)
		return true
	})
	if err != nil {
		return err
	}
	return s.readChildren(&abstract, depth, 0)
}

// readChildren adds the variables of a block, and those of its lexical blocks
// without addresses, which are no blocks of their own.
func (s *scopeReader) readChildren(block *entry, depth, nesting int) error {
	var failed error
	err := block.children(func(child *entry) bool {
		switch child.tag() {
		case dwarf.TagFormalParameter, dwarf.TagVariable:
			failed = s.addEntry(child, depth)
		case dwarf.TagLexDwarfBlock:
			bare := !child.abbrev.has(dwarf.AttrLowpc) && !child.abbrev.has(dwarf.AttrRanges)
			// in an abstract function every block is bare, and which ones
			// are in scope is not known
			if bare && block.unit == s.call.unit && !block.flagged(dwarf.AttrInline) && nesting < maxHops {
				failed = s.readChildren(child, depth+1, nesting+1)
			}
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

func (e *entry) flagged(attr dwarf.Attr) bool {
	_, ok := e.attr(attr)
	return ok
}

func (s *scopeReader) addEntry(e *entry, depth int) error {
	key := dieKey{e.unit, e.off}
	if s.seen[key] {
		return nil
	}
	s.seen[key] = true
	declaration := key
	if origin, ok := e.attr(dwarf.AttrAbstractOrigin); ok {
		u, off, err := origin.ref()
		if err != nil {
			return err
		}
		declaration = dieKey{u, off}
		s.seen[declaration] = true
	}
	v, ok, err := e.variable(s.pc, s.language)
	if err != nil || !ok {
		return err
	}
	v.Depth, v.FrameBase = depth, s.frameBase
	if v.Parameter {
		s.parameters.addVariable(v, declaration)
	} else {
		s.locals.addVariable(v, declaration)
	}
	return nil
}

// variable reads a variable's DIE. ok is false for one without a name, and for
// a declaration.
func (e *entry) variable(pc uint64, language int64) (v Variable, ok bool, err error) {
	if v.Name, err = e.name(); err != nil || v.Name == "" {
		return v, false, err
	}
	location, hasLocation, err := e.inherited(dwarf.AttrLocation)
	if err != nil {
		return v, false, err
	}
	constant, hasConst, err := e.inherited(dwarf.AttrConstValue)
	if err != nil {
		return v, false, err
	}
	if e.flag(dwarf.AttrDeclaration) && !hasLocation && !hasConst {
		return v, false, nil
	}
	v.unit = e.unit
	v.Parameter = e.tag() == dwarf.TagFormalParameter
	artificial, _, err := e.inherited(dwarf.AttrArtificial)
	if err != nil {
		return v, false, err
	}
	v.Artificial = artificial.number != 0
	if hasLocation {
		v.Listed = location.form == formLoclistx || location.isOffset()
		if v.Location, err = locationAt(location, pc); err != nil {
			return v, false, err
		}
	}
	if v.Type, err = e.typeOf(language); err != nil {
		return v, false, err
	}
	if hasConst {
		v.Const = constBytes(constant, v.Type)
	}
	v.File, v.Line = e.declaredAt()
	return v, true, nil
}

// constBytes returns a constant as the bytes of the variable.
func constBytes(v value, t Type) []byte {
	if !v.isConstant() {
		if v.block != nil {
			return v.block
		}
		s, err := v.str()
		if err != nil {
			return nil
		}
		return append([]byte(s), 0)
	}
	n := v.number
	if t != nil && t.Kind() != KindUint && t.Kind() != KindBool {
		n = uint64(v.signed())
	}
	b := binary.LittleEndian.AppendUint64(nil, n)
	if t != nil && t.Size() > 0 && t.Size() < 8 {
		b = b[:t.Size()]
	}
	return b
}
