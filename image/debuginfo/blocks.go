package debuginfo

import "debug/dwarf"

// block is a function, an inlined call or a lexical block within a function.
type block struct {
	die    uint64
	parent int32
	level  bool // a function or an inlined call
	ranges [][2]uint64
}

func (b *block) covers(pc uint64) bool {
	for _, r := range b.ranges {
		if pc >= r[0] && pc < r[1] {
			return true
		}
	}
	return false
}

// blockTree is a function's blocks in the order of the DIEs; closed lists
// them in the order in which they end.
type blockTree struct {
	unit   *unit
	blocks []block
	closed []int32
}

// buildBlocks walks a function. A lexical block without addresses is left out,
// and its children become its parent's. An inlined call without addresses has
// no code, and neither have its children.
func buildBlocks(u *unit, die uint64) (*blockTree, error) {
	w, err := u.walk(die)
	if err != nil {
		return nil, err
	}
	tree := &blockTree{unit: u}
	var e entry
	var open []int32 // the block that each level of nesting opened, or -1
	current := int32(-1)
walk:
	for w.next(&e) {
		if e.abbrev == nil {
			n := len(open) - 1
			if n < 0 {
				return nil, u.src.bad(u.section, die, "no function where one is referred to")
			}
			if closed := open[n]; closed >= 0 {
				tree.closed = append(tree.closed, closed)
				current = tree.blocks[closed].parent
			}
			if open = open[:n]; n == 0 {
				break
			}
			continue
		}
		opened, skip, err := tree.addBlock(&e, current)
		if err != nil {
			return nil, err
		}
		switch {
		case skip:
			if !w.skipChildren(&e) {
				break walk
			}
		case e.abbrev.children:
			open = append(open, opened)
			if opened >= 0 {
				current = opened
			}
		case opened >= 0:
			tree.closed = append(tree.closed, opened)
		}
		if len(open) == 0 {
			break
		}
	}
	if w.err == nil && len(tree.blocks) == 0 {
		return nil, u.src.bad(u.section, die, "no function where one is referred to")
	}
	return tree, w.err
}

// addBlock enters a DIE of the function's tree if it is a block.
func (t *blockTree) addBlock(e *entry, parent int32) (opened int32, skip bool, err error) {
	switch e.tag() {
	case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
	case dwarf.TagTryDwarfBlock, dwarf.TagCatchDwarfBlock, dwarf.TagWithStmt:
		return -1, false, nil
	default:
		return -1, true, nil
	}
	ranges, err := e.ranges()
	if err != nil {
		return -1, false, err
	}
	if e.tag() == dwarf.TagSubprogram && parent >= 0 {
		return -1, true, nil // nested functions are functions of their own
	}
	if len(ranges) == 0 && parent >= 0 {
		return -1, e.tag() == dwarf.TagInlinedSubroutine, nil
	}
	t.blocks = append(t.blocks, block{die: e.off, parent: parent,
		level: e.tag() != dwarf.TagLexDwarfBlock, ranges: ranges})
	return int32(len(t.blocks) - 1), false, nil
}

// innermost returns the block that covers pc and ends first, as gdb's map of
// addresses does (its buildsym.c, record_block_range), even when a block
// around it does not cover pc; the function itself if none covers pc.
func (t *blockTree) innermost(pc uint64) int32 {
	for _, i := range t.closed {
		if t.blocks[i].covers(pc) {
			return i
		}
	}
	return 0
}

// levels returns the function and inlined calls around a block, innermost
// first.
func (t *blockTree) levels(i int32) []int32 {
	var list []int32
	for ; i >= 0; i = t.blocks[i].parent {
		if t.blocks[i].level {
			list = append(list, i)
		}
	}
	return list
}
