package value

import "diagnose/image/debuginfo"

// deepestMember bounds how deep base classes and members without a name nest.
const deepestMember = 16

// FindMember returns a member of a struct or union by its name, and its offset in bytes. Members of
// base classes and of members without a name are found, too. If there is none, names are those of
// the members that there are.
func FindMember(t debuginfo.Type, name string) (m debuginfo.Member, names []string, found bool) {
	m, found = findMember(t, name, 0, &names)
	return m, names, found
}

// findMember returns the member with its offset in t.
func findMember(t debuginfo.Type, name string, depth int, names *[]string) (debuginfo.Member, bool) {
	if depth > deepestMember || t == nil || !aggregate(t) {
		return debuginfo.Member{}, false
	}
	for _, m := range t.Members() {
		if m.Type == nil {
			continue
		}
		if m.Name == name && !m.Base {
			return m, true
		}
		if m.Name != "" && !m.Base {
			*names = append(*names, m.Name)
			continue
		}
		if inner, found := findMember(m.Type, name, depth+1, names); found {
			inner.Offset += m.Offset
			return inner, true
		}
	}
	return debuginfo.Member{}, false
}
