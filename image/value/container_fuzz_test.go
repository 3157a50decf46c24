package value

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// containerMembers are the names by which containers and iterators are recognised.
var containerMembers = []string{"_M_dataplus", "_M_p", "_M_string_length", "_M_local_buf", "_M_allocated_capacity", "_M_start", "_M_finish",
	"_M_end_of_storage", "_M_cur", "_M_first", "_M_last", "_M_node", "_M_next", "_M_prev", "_M_size", "_M_t", "_M_header", "_M_parent", "_M_left",
	"_M_right", "_M_node_count", "_M_h", "_M_before_begin", "_M_nxt", "_M_element_count", "_M_current", "__r_", "__l", "__s", "__data_", "__size_",
	"__cap_", "__map_", "__start_", "__begin_", "__end_", "__end_cap_", "__next_", "__prev_", "__size_alloc_", "__tree_", "__pair1_", "__pair3_",
	"__left_", "__right_", "__parent_", "__table_", "__p1_", "__p2_", "__value_", "__i_", "__ptr_", "__m_iter_", "__node_"}

var containerBases = []string{"_Vector_base<int>", "_Deque_base<int>", "_List_base<int>", "__vector_base<int>", "__deque_base<int>", "__list_imp<int>"}

// container makes a structure of a container's members, whose sizes are mostly possible.
func (m *typeMaker) container(depth int) *fakeType {
	t := &fakeType{name: containerBases[int(m.next())%len(containerBases)], kind: debuginfo.KindStruct, size: 8 * int64(m.next()%9)}
	for range m.next() % 7 {
		b := m.next()
		member := debuginfo.Member{Name: containerMembers[int(b)%len(containerMembers)], Offset: int64(m.next()%64) * 8, Base: b&0x80 != 0}
		switch m.next() % 4 {
		case 0:
			member.Type = u64Type
		case 1:
			pointer := &fakeType{name: "T *", kind: debuginfo.KindPointer, size: 8, elem: i32Type}
			if depth < 4 && m.next()&1 != 0 {
				pointer.elem = m.container(depth + 1)
			}
			member.Type = pointer
		case 2:
			member.Type = &fakeType{name: "char [16]", kind: debuginfo.KindArray, size: 16, elem: i8Type, count: int64(int8(m.next()))}
		default:
			if depth < 4 {
				member.Type = m.container(depth + 1)
			}
		}
		t.members = append(t.members, member)
	}
	return t
}

func FuzzContainer(f *testing.F) {
	f.Add([]byte{0, 3, 3, 5, 0, 1, 0, 6, 1, 1, 0, 7, 2, 1, 0}, words(0x1000, 0x1010, 0x1020))
	f.Add([]byte{2, 3, 2, 11, 0, 3, 0, 3, 2, 12, 0, 1, 0, 13, 1, 1, 0, 14, 2, 0}, words(0x1000, 0x1000, 0))
	f.Fuzz(func(t *testing.T, shape, data []byte) {
		typ := (&typeMaker{shape}).container(0)
		m := &fakeMemory{ranges: map[evidence.Addr][]byte{0x1000: data}}
		i, is, _ := IteratorAt(m, 0x1000, typ)
		c, err := ContainerAt(m, 0x1000, typ)
		if c == nil {
			return
		}
		if err != nil {
			t.Fatal("a container and an error")
		}
		if len(c.Nodes()) > maxNodes || len(c.blocks) > maxNodes+1 {
			t.Errorf("%d nodes, %d blocks", len(c.Nodes()), len(c.blocks))
		}
		if c.Kind == evidence.ContainerVector && (c.End < c.Begin || c.Storage < c.End) {
			t.Errorf("elements from %v to %v of %v", c.Begin, c.End, c.Storage)
		}
		if is {
			c.Place(i)
		}
		for _, node := range c.Nodes() {
			if c.Place(Iterator{Kind: c.Kind, Position: node}) != PlaceAtElement && node != c.Sentinel {
				t.Errorf("the node at %v is not among the nodes", node)
			}
		}
	})
}
