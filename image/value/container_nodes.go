package value

import (
	"maps"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Nodes are the nodes of a list, tree or hash table, in no order; none: they are too many.
func (c *Container) Nodes() []evidence.Addr { return slices.Collect(maps.Keys(c.nodes)) }

// add adds a node; an error: it is there already, or there are more than the size.
func (c *Container) add(node evidence.Addr) error {
	if c.nodes[node] || uint64(len(c.nodes)) >= c.Size {
		return notValid("the nodes are not %d", c.Size)
	}
	c.nodes[node] = true
	return nil
}

// whole is called when all nodes were walked.
func (c *Container) whole() error {
	if uint64(len(c.nodes)) != c.Size {
		return notValid("it has %d nodes and its size is %d", len(c.nodes), c.Size)
	}
	return nil
}

// walkable prepares the walk of the nodes; false: they are too many.
func (c *Container) walkable() bool {
	if c.Size > maxNodes {
		return false
	}
	c.nodes = make(map[evidence.Addr]bool, c.Size)
	return true
}

// list reads a ring of nodes: end is the node that stands for the end, next and previous its links.
func (r *containerReader) list(end, next, previous string, size ...string) (bool, error) {
	ring, ok := r.member(end)
	if !ok || !aggregate(ring.typ) {
		return false, nil
	}
	forward, ok := find(ring.typ, next, isPointer)
	back, also := find(ring.typ, previous, isPointer)
	if !ok || !also {
		return false, nil
	}
	count, _, ok, err := r.number(size...)
	if !ok || err != nil {
		return false, err
	}
	r.Kind, r.Size, r.Sentinel, r.Elem = evidence.ContainerList, count, r.at(ring), typeParameter(r.t, 0)
	if !r.walkable() {
		return true, r.ringAt(r.Sentinel, forward, back)
	}
	for node := r.Sentinel; ; {
		if err := r.ringAt(node, forward, back); err != nil {
			return false, err
		}
		to, err := image.Uint64(r.memory, node+evidence.Addr(forward.offset))
		if err != nil {
			return false, err
		}
		if node = evidence.Addr(to); node == r.Sentinel {
			return true, r.whole()
		}
		if err := r.add(node); err != nil {
			return false, err
		}
	}
}

// ringAt checks that the node after another one links back to it.
func (r *containerReader) ringAt(node evidence.Addr, forward, back part) error {
	to, err := image.Uint64(r.memory, node+evidence.Addr(forward.offset))
	if err != nil {
		return err
	}
	from, err := image.Uint64(r.memory, evidence.Addr(to)+evidence.Addr(back.offset))
	if err == nil && evidence.Addr(from) != node {
		err = notValid("the node after %v links back to %#x", node, from)
	}
	return err
}

// gnuTree is libstdc++'s (bits/stl_tree.h). The header has the root as its parent.
func (r *containerReader) gnuTree() (bool, error) {
	header, ok := r.member("_M_header")
	if !ok || !aggregate(header.typ) {
		return false, nil
	}
	count, _, ok, err := r.number("_M_node_count")
	if !ok || err != nil {
		return false, err
	}
	r.elementOf("_M_t", 1)
	return r.tree(header, header.typ, "_M_parent", count, "_M_left", "_M_right", "_M_parent")
}

// llvmTree is libc++'s (<__tree>). The end node has the root as its left child.
func (r *containerReader) llvmTree() (bool, error) {
	pair, ok := r.member("__pair1_", "__end_node_")
	if !ok || !aggregate(pair.typ) {
		return false, nil
	}
	root, ok := find(pair.typ, "__left_", isPointer)
	if !ok || root.typ.Elem() == nil {
		return false, nil
	}
	count, _, ok, err := r.number("__pair3_", "__size_")
	if !ok || err != nil {
		return false, err
	}
	end := part{pair.offset + root.offset, pair.typ}
	if inner, found := find(pair.typ, "__value_", aggregate); found {
		end.typ = inner.typ
	}
	r.elementOf("__tree_", 0)
	return r.tree(end, root.typ.Elem(), "__left_", count, "__left_", "__right_", "__parent_")
}

// tree walks a tree from its end node, a part whose member root leads to the root. node is the type of the nodes.
func (r *containerReader) tree(end part, node debuginfo.Type, root string, count uint64, left, right, parent string) (bool, error) {
	top, ok := find(end.typ, root, isPointer)
	if !ok {
		return false, nil
	}
	var at [3]evidence.Addr
	for i, name := range []string{left, right, parent} {
		p, found := find(node, name, nil)
		if !found || p.typ.Size() != 8 {
			return false, nil
		}
		at[i] = evidence.Addr(p.offset)
	}
	r.Kind, r.Size, r.Sentinel = evidence.ContainerTree, count, r.at(end)
	first, err := image.Uint64(r.memory, r.Sentinel+evidence.Addr(top.offset))
	if err != nil {
		return false, err
	}
	if !r.walkable() || first == 0 {
		if (first == 0) != (count == 0) {
			return false, notValid("root %#x, size %d", first, count)
		}
		return true, nil
	}
	type edge struct{ node, parent evidence.Addr }
	for open := []edge{{evidence.Addr(first), r.Sentinel}}; len(open) > 0; {
		e := open[len(open)-1]
		open = open[:len(open)-1]
		if err := r.add(e.node); err != nil {
			return false, err
		}
		up, err := image.Uint64(r.memory, e.node+at[2])
		if err != nil {
			return false, err
		}
		if evidence.Addr(up) != e.parent {
			return false, notValid("the node at %v has the parent %#x", e.node, up)
		}
		for _, offset := range at[:2] {
			child, err := image.Uint64(r.memory, e.node+offset)
			if err != nil {
				return false, err
			}
			if child != 0 {
				open = append(open, edge{evidence.Addr(child), e.node})
			}
		}
	}
	return true, r.whole()
}

// elementOf sets the type of the elements: a parameter of the template of the member that has the nodes.
func (r *containerReader) elementOf(table string, parameter int) {
	if p, ok := r.member(table); ok {
		r.Elem = typeParameter(p.typ, parameter)
	}
}

// gnuHash is libstdc++'s (bits/hashtable.h): one list of all nodes.
func (r *containerReader) gnuHash() (bool, error) {
	head, ok := r.member("_M_before_begin")
	if !ok {
		return false, nil
	}
	next, ok := find(head.typ, "_M_nxt", isPointer)
	if !ok {
		return false, nil
	}
	count, _, ok, err := r.number("_M_element_count")
	if !ok || err != nil {
		return false, err
	}
	r.elementOf("_M_h", 1)
	return r.chain(part{head.offset + next.offset, next.typ}, evidence.Addr(next.offset), count)
}

// llvmHash is libc++'s (<__hash_table>).
func (r *containerReader) llvmHash() (bool, error) {
	head, ok := r.member("__p1_", "__first_node_")
	if !ok {
		return false, nil
	}
	next, ok := find(head.typ, "__next_", isPointer)
	if !ok {
		return false, nil
	}
	count, _, ok, err := r.number("__p2_", "__size_")
	if !ok || err != nil {
		return false, err
	}
	r.elementOf("__table_", 0)
	return r.chain(part{head.offset + next.offset, next.typ}, 0, count)
}

// chain walks a list that ends with a null pointer; link is the offset of a node's link.
func (r *containerReader) chain(first part, link evidence.Addr, count uint64) (bool, error) {
	r.Kind, r.Size = evidence.ContainerHash, count
	node, err := r.o.word(first)
	if err != nil {
		return false, err
	}
	if !r.walkable() {
		return true, nil
	}
	for node != 0 {
		if err := r.add(evidence.Addr(node)); err != nil {
			return false, err
		}
		if node, err = image.Uint64(r.memory, evidence.Addr(node)+link); err != nil {
			return false, err
		}
	}
	return true, r.whole()
}
