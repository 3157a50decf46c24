package expected

import (
	"slices"
	"strconv"
	"strings"
)

// chain is a variable with members and elements, as the source writes it: session->users[3].name.
type chain struct {
	root  string
	links []link
	// text is the whole, as written, without a * before it.
	text string
}

// link leads from an object to a part of it, or from a pointer to what it points to.
type link struct {
	// arrow: ->; star: the * before the whole; member is the name after -> or a dot.
	arrow, star bool
	member      string
	// element: [index], whose number is known only of a constant.
	element, constant bool
	index             int64
	// end is the length of the text up to here.
	end int
}

// mostLinks bounds a chain.
const mostLinks = 16

// keywords begin no chain.
var keywords = append([]string{"if", "while", "for", "switch", "new", "delete", "const", "struct", "union", "enum", "class", "unsigned", "signed",
	"int", "long", "short", "char", "float", "double", "void", "static", "auto", "static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"}, notOperands...)

// chainsOf are the chains in tokens, in their order. What a call returns begins none, and what a chain calls ends it.
func chainsOf(list []token) (chains []chain) {
	for i := 0; i < len(list); i++ {
		if list[i].kind != word || slices.Contains(keywords, list[i].text) || i > 0 && follows(&list[i-1]) {
			continue
		}
		c, end := chainAt(list, i)
		if end < len(list) && list[end].text == "(" && len(c.links) == 0 {
			continue // a function's name
		}
		if c.root == "" {
			continue
		}
		chains = append(chains, c)
		if i > 0 && list[i-1].text == "*" && (i < 2 || !endsOperand(&list[i-2]) && list[i-2].text != ">") {
			star := c
			star.links = append(slices.Clone(c.links), link{star: true, end: len(c.text)})
			chains = append(chains, star)
		}
	}
	return chains
}

// follows reports whether a token makes the next word a member or a name of a scope.
func follows(t *token) bool { return t.text == "." || t.text == "->" || t.text == "::" }

// chainAt is the chain whose variable is token i, and where it ends.
func chainAt(list []token, i int) (chain, int) {
	c := chain{root: list[i].text}
	end := i + 1
	for len(c.links) < mostLinks && end < len(list) {
		l, next := linkAt(list, end)
		if next < 0 {
			break
		}
		if next < len(list) && list[next].text == "(" && l.member != "" {
			break // a call of a method
		}
		end = next
		l.end = len(textOf(list[i:end]))
		c.links = append(c.links, l)
	}
	if end < len(list) && list[end].text == "::" {
		return chain{}, end
	}
	c.text = textOf(list[i:end])
	return c, end
}

// linkAt is the link that begins at token i, and where it ends; -1: none begins there.
func linkAt(list []token, i int) (l link, end int) {
	switch t := list[i].text; t {
	case "->", ".":
		if i+1 >= len(list) || list[i+1].kind != word {
			return l, -1
		}
		return link{arrow: t == "->", member: list[i+1].text}, i + 2
	case "[":
		end := closing(list, i)
		if end < 0 {
			return l, -1
		}
		l.element = true
		if end == i+2 {
			n, err := strconv.ParseInt(strings.TrimRight(list[i+1].text, "uUlL"), 0, 32)
			l.index, l.constant = n, err == nil
		}
		return l, end + 1
	}
	return l, -1
}
