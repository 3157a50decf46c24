package evidence

import (
	"fmt"
	"strconv"
	"strings"
)

// IdentityKind says what memory a variable is a part of.
type IdentityKind string

// The kinds of memory.
const (
	// IdentityStatic is a variable with static storage, or what it leads to: Name.
	IdentityStatic IdentityKind = "static"
	// IdentityHeap is an object of the heap: its allocation is at Site, by Name ("malloc").
	IdentityHeap IdentityKind = "heap"
	// IdentityStack is the variable Name of Function.
	IdentityStack IdentityKind = "stack"
	// IdentityReturn is the return address of Function.
	IdentityReturn IdentityKind = "return-address"
	// IdentityMemory is memory at Addr of which nothing else is known.
	IdentityMemory IdentityKind = "memory"
)

// Identity says which variable it is, in terms that other runs and other builds share.
// Names are for people; programs compare identities.
type Identity struct {
	Kind IdentityKind `json:"kind"`
	// Name is the variable's, or the function's that allocated a heap object.
	Name string `json:"name,omitempty"`
	// Function is the one whose variable or whose return address it is.
	Function string `json:"function,omitempty"`
	// Site is where a heap object was allocated; nil: it is not known.
	Site *Site `json:"site,omitempty"`
	// Addr is the address of an object of the heap or of memory without a name, Size the
	// bytes that were asked for by number; they are of one run.
	Addr Addr `json:"addr,omitempty"`
	Size int  `json:"size,omitempty"`
	// Path leads from there to the part that is meant.
	Path []PathStep `json:"path,omitempty"`
}

// PathStep is one step into a variable: one of the three.
type PathStep struct {
	// Member is a member with the operator before it: ".state", "->next".
	Member string `json:"member,omitempty"`
	// Element is an index.
	Element *int64 `json:"element,omitempty"`
	// Offset is a number of bytes.
	Offset *uint64 `json:"offset,omitempty"`
}

// At returns the identity of the part that a path in the program's terms leads to.
func (i Identity) At(path string) Identity {
	i.Path = pathOf(path)
	return i
}

// Expression is the identity of what an expression of the program names, such as
// "cfg.workers[3].state", "*head" or "table+0x10", or of an address, with or without a
// number of bytes after it: "0x7ffff7a00010:8".
func Expression(text string) Identity {
	if strings.HasPrefix(text, "0x") {
		digits, length, _ := strings.Cut(text[2:], ":")
		addr, err := strconv.ParseUint(digits, 16, 64)
		size, _ := strconv.ParseUint(length, 10, 31)
		if err == nil {
			return Identity{Kind: IdentityMemory, Addr: Addr(addr), Size: int(size)}
		}
	}
	end := len(text)
	for i := 1; i < len(text); i++ {
		if stepAt(text[i:]) {
			end = i
			break
		}
	}
	return Identity{Kind: IdentityStatic, Name: text[:end]}.At(text[end:])
}

// stepAt reports whether a step of a path begins a text.
func stepAt(text string) bool {
	return text[0] == '.' || text[0] == '[' || strings.HasPrefix(text, "->") || strings.HasPrefix(text, "+0x")
}

// pathOf reads a path. What it cannot read is a member of that name.
func pathOf(text string) []PathStep {
	var path []PathStep
	for text != "" {
		end := 1
		if closed := strings.IndexByte(text, ']'); text[0] == '[' && closed > 0 {
			end = closed + 1 // its inside may be anything
		}
		for end < len(text) && (end < 2 && strings.HasPrefix(text, "->") || !stepAt(text[end:])) {
			end++
		}
		path = append(path, stepOf(text[:end]))
		text = text[end:]
	}
	return path
}

func stepOf(text string) PathStep {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			if n, err := strconv.ParseInt(inner, 10, 64); err == nil {
				return PathStep{Element: &n}
			}
		}
	}
	if digits, ok := strings.CutPrefix(text, "+0x"); ok {
		if n, err := strconv.ParseUint(digits, 16, 64); err == nil {
			return PathStep{Offset: &n}
		}
	}
	return PathStep{Member: text}
}

// String is the step as a program writes it.
func (s PathStep) String() string {
	switch {
	case s.Element != nil:
		return fmt.Sprintf("[%d]", *s.Element)
	case s.Offset != nil:
		return fmt.Sprintf("+%#x", *s.Offset)
	}
	return s.Member
}
