package evidence

import "fmt"

// ContainerKind is a kind of container of the C++ standard library, by its layout.
type ContainerKind string

// The kinds. A tree is a std::map, set, multimap or multiset, a hash table one of their unordered forms.
const (
	ContainerVector ContainerKind = "vector"
	ContainerString ContainerKind = "string"
	ContainerDeque  ContainerKind = "deque"
	ContainerList   ContainerKind = "list"
	ContainerTree   ContainerKind = "tree"
	ContainerHash   ContainerKind = "hash"
)

// ContainerMisuse is what a program did with a container that has no such element.
type ContainerMisuse string

// The misuses.
const (
	// MisuseIndex is an index that is not below the size.
	MisuseIndex ContainerMisuse = "index-out-of-range"
	// MisuseEmpty is the first or last element of an empty container.
	MisuseEmpty ContainerMisuse = "element-of-empty"
	// MisuseEnd is the element at an iterator that is the container's end().
	MisuseEnd ContainerMisuse = "end-dereferenced"
	// MisuseStale is the element at an iterator whose element was freed.
	MisuseStale ContainerMisuse = "stale-iterator"
)

// Container is an object of a container type. Its layout was checked in memory.
type Container struct {
	// Name is the program's expression for it; empty: none is known.
	Name string `json:"name,omitempty"`
	// Type is the whole type, as the debug information has it: "std::vector<int, std::allocator<int> >".
	Type string        `json:"type"`
	Kind ContainerKind `json:"kind"`
	Addr Addr          `json:"addr"`
	// Size counts its elements.
	Size uint64 `json:"size"`
}

// ContainerIterator is an iterator of a container.
type ContainerIterator struct {
	// Name is the program's variable; empty: it is a temporary object, or not known.
	Name string `json:"name,omitempty"`
	// Type is the whole type; empty: it is not known.
	Type string `json:"type,omitempty"`
	// Position is the address of its element, or of the node that has it.
	Position Addr `json:"position"`
}

// Invalidation is the call of a container's function that freed what an iterator points to.
type Invalidation struct {
	// Function is the outermost function of the library on the stack of the free ("std::vector<int>::push_back").
	Function string `json:"function"`
	// Site is the program's place that called it.
	Site   *Site      `json:"site,omitempty"`
	Thread *ThreadRef `json:"thread,omitempty"`
}

// ContainerUse is the use of an element that a container does not have.
type ContainerUse struct {
	Misuse ContainerMisuse `json:"misuse"`
	// Container is nil if it is not known which one it is: for a stale iterator only.
	Container *Container         `json:"container,omitempty"`
	Iterator  *ContainerIterator `json:"iterator,omitempty"`
	// Index is that of MisuseIndex, IndexName the program's expression for it, if one is known.
	Index     *int64 `json:"index,omitempty"`
	IndexName string `json:"index_name,omitempty"`
	// Function is the library's function that gave the element ("operator[]"); empty: it was inlined.
	Function    string        `json:"function,omitempty"`
	Invalidated *Invalidation `json:"invalidated,omitempty"`
}

func (u *ContainerUse) check() error {
	switch u.Misuse {
	case MisuseIndex:
		if u.Index == nil {
			return fmt.Errorf("a container's index is out of range, and there is no index")
		}
	case MisuseEmpty:
		if u.Container != nil && u.Container.Size != 0 {
			return fmt.Errorf("an empty container of size %d", u.Container.Size)
		}
	case MisuseEnd:
	case MisuseStale:
		if u.Iterator == nil {
			return fmt.Errorf("a stale iterator that is not named")
		}
		return nil
	default:
		return fmt.Errorf("unknown misuse of a container %q", u.Misuse)
	}
	if u.Container == nil {
		return fmt.Errorf("misuse of a container %q without the container", u.Misuse)
	}
	return nil
}
