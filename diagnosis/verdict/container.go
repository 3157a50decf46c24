package verdict

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

// A node of std::map and std::set, and the header of the tree, which stands for its end
// (libstdc++, bits/stl_tree.h, _Rb_tree_node_base). The header has no element; it lies
// behind the comparison in the container, and the number of elements lies behind it.
const (
	treeParent  = 8
	treeLeft    = 16
	treeRight   = 24
	treeElement = 32
	treeBlack   = 1
	// treeLargest bounds how far in an element a value is looked for.
	treeLargest = 512
)

// endOfTree is for a bad value that was read where the end of a std::map or std::set would
// have its element; nil if it was not.
func (ac *account) endOfTree() *evidence.Cause {
	if ac.chain.victim.damaged() || ac.chain.victim.start == 0 || len(ac.chain.links) > 0 {
		return nil
	}
	first := ac.chain.victim.start &^ (wordSize - 1)
	for at := first - treeElement; at+treeLargest > first; at -= wordSize {
		if !ac.treeHeader(at) {
			continue
		}
		count, ok := wordAt(ac.chain.Process, at+treeElement, wordSize)
		if !ok {
			return nil
		}
		name := fmt.Sprintf("the std::map or std::set at %v", at-wordSize)
		if s, ok := ac.chain.Process.SymbolAt(at - wordSize); ok && at-wordSize-s.Addr < evidence.Addr(max(s.Size, 1)) {
			name = evidence.ShortName(s.Name)
		}
		out := &evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisBounds, Variable: name + ".end()", Site: ac.chain.Case.Failure.Site, Proof: evidence.FromCore}
		out.Summary = fmt.Sprintf("the value was read through the end() of %s, which is no element: the key that the program searched for is not among its %s", name, wording.Count(count, "element"))
		out.Story = []evidence.CauseStep{{Text: out.Summary, Site: out.Site, Proof: evidence.FromCore}}
		return out
	}
	return nil
}

// treeHeader reports whether a header of a tree lies at an address: it is red and its
// parent, the root, which is black, has it as parent; without elements it has itself to
// both sides.
func (ac *account) treeHeader(at evidence.Addr) bool {
	colour, ok := wordAt(ac.chain.Process, at, 4)
	if !ok || colour != 0 {
		return false
	}
	root, err := image.Uint64(ac.chain.Process, at+treeParent)
	if err != nil {
		return false
	}
	if root == 0 {
		left, err := image.Uint64(ac.chain.Process, at+treeLeft)
		right, also := image.Uint64(ac.chain.Process, at+treeRight)
		return err == nil && also == nil && left == uint64(at) && right == uint64(at)
	}
	parent, err := image.Uint64(ac.chain.Process, evidence.Addr(root)+treeParent)
	black, ok := wordAt(ac.chain.Process, evidence.Addr(root), 4)
	return err == nil && ok && parent == uint64(at) && black == treeBlack
}
