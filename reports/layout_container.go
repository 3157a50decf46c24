package reports

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// containerFacts are the lines on the use of an element that a container does not have.
func containerFacts(u *evidence.ContainerUse) facts {
	if u == nil {
		return nil
	}
	var list facts
	if c := u.Container; c != nil {
		list = append(list, fact{"container", say(plain, containerText(c))})
	}
	if u.Index != nil {
		list = append(list, fact{"index", say(plain, joined(u.IndexName, fmt.Sprint(*u.Index)))})
	}
	if i := u.Iterator; i != nil {
		list = append(list, fact{"iterator", say(plain, iteratorText(i))})
	}
	if u.Function != "" {
		list = append(list, fact{"asked by", say(plain, u.Function)})
	}
	if i := u.Invalidated; i != nil {
		list = append(list, fact{"invalidated", say(plain, invalidationText(i))})
	}
	return list
}

// joined is an expression and its value; the name may be empty.
func joined(name, value string) string {
	if name == "" || name == value {
		return value
	}
	return name + " = " + value
}

// containerKinds are the kinds in words.
var containerKinds = map[evidence.ContainerKind]string{
	evidence.ContainerVector: "vector", evidence.ContainerString: "string", evidence.ContainerDeque: "deque",
	evidence.ContainerList: "list", evidence.ContainerTree: "map or set", evidence.ContainerHash: "unordered map or set",
}

func containerText(c *evidence.Container) string {
	name := c.Name
	if name == "" {
		name = "without a name"
	}
	return fmt.Sprintf("%s, %s (a %s) at %v, %s", name, c.Type, containerKinds[c.Kind], c.Addr, wording.Count(c.Size, "element"))
}

func iteratorText(i *evidence.ContainerIterator) string {
	name := i.Name
	if name == "" {
		name = "without a name"
	}
	text := fmt.Sprintf("%s, to %v", name, i.Position)
	if i.Position == 0 {
		text = name + ", to no node"
	}
	if i.Type != "" {
		text += fmt.Sprintf(" (%s)", i.Type)
	}
	return text
}

func invalidationText(i *evidence.Invalidation) string {
	text := i.Function
	if i.Site != nil {
		text += ", called in " + functionOf(*i.Site)
		if i.Site.File != "" {
			text += " at " + position(*i.Site)
		}
	}
	if i.Thread != nil {
		text += ", by " + i.Thread.Label()
	}
	return text
}
