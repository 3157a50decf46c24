package image

import (
	"strings"

	"diagnose/evidence"
)

// containerClasses are the containers of the C++ library and their adaptors ([containers] of the standard).
var containerClasses = []string{
	"vector<", "deque<", "list<", "forward_list<", "map<", "multimap<", "set<", "multiset<", "unordered_map<", "unordered_multimap<",
	"unordered_set<", "unordered_multiset<", "queue<", "priority_queue<", "stack<", "basic_string<", "string::",
}

// ContainerFunction is the name of a member function of a container of the C++ library without its result and
// parameters: "std::vector<int>::push_back"; false: the function is none.
func ContainerFunction(function string) (string, bool) {
	name := evidence.ShortName(function)
	for _, space := range []string{"std::__cxx11::", "std::__1::"} {
		name = strings.ReplaceAll(name, space, "std::")
	}
	depth := 0
	for i := range len(name) {
		switch name[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case 's':
			if rest, ok := strings.CutPrefix(name[i:], "std::"); ok && depth == 0 && (i == 0 || name[i-1] == ' ') && containerMember(rest) {
				return name[i:], true
			}
		}
	}
	return "", false
}

// containerMember reports whether a name begins with a container's class and continues with its member.
func containerMember(name string) bool {
	for _, class := range containerClasses {
		rest, ok := strings.CutPrefix(name, class)
		if !ok {
			continue
		}
		depth := strings.Count(class, "<")
		for i := 0; i < len(rest) && depth > 0; i++ {
			switch rest[i] {
			case '<':
				depth++
			case '>':
				if depth--; depth == 0 {
					return strings.HasPrefix(rest[i+1:], "::")
				}
			}
		}
		return strings.HasSuffix(class, "::")
	}
	return false
}

// InvalidatedBy is the member function of a container that made a call of free, by its stack; nil: none did, or the
// stack does not reach the program's own code.
func InvalidatedBy(call *evidence.HeapCall) *evidence.Invalidation {
	if call == nil {
		return nil
	}
	frames := call.Stack.Frames
	for i := range frames {
		if LibraryCode(&frames[i].Site) {
			continue
		}
		if i == 0 {
			return nil
		}
		function, ok := ContainerFunction(frames[i-1].Site.Function)
		if !ok {
			return nil
		}
		site := frames[i].Site
		out := &evidence.Invalidation{Function: function, Site: &site}
		if call.Thread != nil {
			out.Thread = call.Thread.Ref
		}
		return out
	}
	return nil
}
