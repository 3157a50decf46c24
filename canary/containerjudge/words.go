package containerjudge

import (
	"fmt"
	"path"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// Summary is one sentence about the use of a container, without a final stop, with the call that freed its element.
func Summary(u *evidence.ContainerUse) string {
	text := Clause(u)
	if i := u.Invalidated; i != nil {
		text += "; " + i.Function + " freed it"
		if i.Site != nil && i.Site.File != "" {
			text += fmt.Sprintf(", called in %s (%s:%d)", evidence.ShortName(i.Site.Function), path.Base(i.Site.File), i.Site.Line)
		}
	}
	return text
}

// Clause is the same without that call.
func Clause(u *evidence.ContainerUse) string {
	c := u.Container
	switch u.Misuse {
	case evidence.MisuseIndex:
		index := fmt.Sprint(*u.Index)
		if u.IndexName != "" && u.IndexName != index {
			index = fmt.Sprintf("%s (%s)", u.IndexName, index)
		}
		return fmt.Sprintf("the index %s is out of range: %s has %s", index, nameOf(c), wording.Count(c.Size, "element"))
	case evidence.MisuseEmpty:
		what := "an element"
		if u.Function != "" {
			what = u.Function + "()"
		}
		return fmt.Sprintf("%s is empty, and %s was asked of it", nameOf(c), what)
	case evidence.MisuseEnd:
		if u.Iterator != nil && u.Iterator.Name != "" {
			return fmt.Sprintf("%s (an iterator) is the end() of %s, which is no element", u.Iterator.Name, nameOf(c))
		}
		return fmt.Sprintf("an element was read at the end() of %s, which has none", nameOf(c))
	}
	text := "an iterator"
	if u.Iterator.Name != "" {
		text = u.Iterator.Name + " (an iterator)"
	}
	text += " points to freed memory"
	if c != nil {
		text += fmt.Sprintf(" and to no element of %s", nameOf(c))
	}
	return text
}

// nameOf is the program's name for a container and its class. The arguments of the template are among the facts.
func nameOf(c *evidence.Container) string {
	class, _, _ := strings.Cut(c.Type, "<")
	if c.Name == "" {
		return fmt.Sprintf("the %s at %v", class, c.Addr)
	}
	return fmt.Sprintf("%s (%s)", c.Name, class)
}
