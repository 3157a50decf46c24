package inject

import (
	"fmt"
	"slices"
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
)

var memoryOperators = []operator{
	{"loop-bound", Memory, "binary_expression", loopBound},
	{"allocation-size", Memory, "call_expression", allocationSize},
	{"copy-length", Memory, "call_expression", copyLength},
	{"truncated-size", Memory, "call_expression", truncatedSize},
	{"length-check", Memory, "if_statement", lengthCheck},
	{"null-check", Memory, "if_statement", nullCheck},
	{"early-free", Memory, "expression_statement", earlyFree},
	{"second-free", Memory, "expression_statement", secondFree},
	{"initialisation", Memory, "init_declarator", initialisation},
	{"member-initialisation", Memory, "expression_statement", memberInitialisation},
	{"stack-address", Memory, "declaration", stackAddress},
	{"index", Memory, "subscript_expression", index},
	{"pointer-increment", Memory, "update_expression", pointerIncrement},
	{"swapped-arguments", Memory, "call_expression", swappedArguments},
	{"wrong-struct", Memory, "sizeof_expression", wrongStruct},
	{"terminator", Memory, "expression_statement", terminator},
}

var (
	allocators = []string{"malloc", "alloc", "alloca", "allocate"} // and calloc, realloc: see size
	copiers    = []string{"memcpy", "memmove", "memset", "strncpy", "strncat", "read"}
)

// loopBound turns < of a loop's condition into <=.
func loopBound(f *file, n *sitter.Node) []change {
	operator := n.ChildByFieldName("operator")
	if operator == nil || operator.Type() != "<" && operator.Type() != ">" || !isLoopCondition(n) {
		return nil
	}
	return []change{{edits: []edit{replace(operator, operator.Type()+"=")}, objects: f.names(n)}}
}

func isLoopCondition(n *sitter.Node) bool {
	for c, p := n, n.Parent(); p != nil; c, p = p, p.Parent() {
		switch p.Type() {
		case "for_statement", "while_statement", "do_statement":
			condition := p.ChildByFieldName("condition")
			return condition != nil && condition.Equal(c)
		case "parenthesized_expression", "condition_clause":
		case "binary_expression":
			if o := p.ChildByFieldName("operator"); o == nil || o.Type() != "&&" {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// size is the argument of an allocation that says how much, or how many. Allocators of a
// program may have a state before it.
func (f *file) size(n *sitter.Node) *sitter.Node {
	name, args := f.call(n)
	switch {
	case !ends(name, allocators) || len(args) == 0 || ends(name, []string{"dealloc"}):
	case ends(name, []string{"calloc"}):
		return args[max(0, len(args)-2)]
	case len(args) == 1 || ends(name, []string{"realloc"}):
		return args[len(args)-1]
	case len(args) == 2 && args[0].Type() == "identifier":
		return args[1]
	}
	return nil
}

// allocationSize allocates less: one less, or without the + 1 that a string needs.
func allocationSize(f *file, n *sitter.Node) []change {
	size := f.size(n)
	if size == nil {
		return nil
	}
	if size.Type() == "binary_expression" {
		o, right := size.ChildByFieldName("operator"), size.ChildByFieldName("right")
		if o != nil && right != nil && o.Type() == "+" && right.Type() == "number_literal" {
			return []change{{edits: []edit{replace(size, f.text(size.ChildByFieldName("left")))}, objects: f.names(n.Parent())}}
		}
	}
	return []change{{edits: []edit{replace(size, "("+f.text(size)+") - 1")}, objects: f.names(n.Parent())}}
}

// copyLength copies one byte more.
func copyLength(f *file, n *sitter.Node) []change {
	name, args := f.call(n)
	if !ends(name, copiers) || len(args) < 3 {
		return nil
	}
	return []change{{edits: []edit{replace(args[2], "("+f.text(args[2])+") + 1")}, objects: f.names(args...)}}
}

// truncatedSize loses the upper bits of a size.
func truncatedSize(f *file, n *sitter.Node) []change {
	size := f.size(n)
	if size == nil || size.Type() == "number_literal" || size.Type() == "sizeof_expression" {
		return nil
	}
	return []change{{edits: []edit{replace(size, "(unsigned char)("+f.text(size)+")")}, objects: f.names(n.Parent())}}
}

// checks finds an if without else whose body only leaves; its condition is given to want.
func checks(f *file, n *sitter.Node, want func(*sitter.Node) bool) []change {
	body := n.ChildByFieldName("consequence")
	condition := unparenthesised(n.ChildByFieldName("condition"))
	if n.ChildByFieldName("alternative") != nil || body == nil || condition == nil || !inBlock(n) || !f.leaves(body) || !want(condition) {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.names(condition), removes: true, effect: body}}
}

func lengthCheck(f *file, n *sitter.Node) []change {
	return checks(f, n, func(c *sitter.Node) bool {
		o := c.ChildByFieldName("operator")
		return c.Type() == "binary_expression" && o != nil && slices.Contains([]string{"<", "<=", ">", ">="}, o.Type())
	})
}

func nullCheck(f *file, n *sitter.Node) []change {
	return checks(f, n, func(c *sitter.Node) bool {
		switch c.Type() {
		case "unary_expression":
			a := c.ChildByFieldName("argument")
			return strings.HasPrefix(f.text(c), "!") && a != nil && (a.Type() == "identifier" || a.Type() == "field_expression")
		case "binary_expression":
			o, right := c.ChildByFieldName("operator"), c.ChildByFieldName("right")
			return o != nil && right != nil && o.Type() == "==" && slices.Contains([]string{"NULL", "nullptr"}, f.text(right))
		}
		return false
	})
}

// freed is the variable that a statement frees. Functions of a program may have a state
// before it.
func (f *file) freed(n *sitter.Node) *sitter.Node {
	if !inBlock(n) || n.NamedChildCount() != 1 {
		return nil
	}
	object := n.NamedChild(0)
	if object.Type() == "delete_expression" {
		object = object.NamedChild(int(object.NamedChildCount()) - 1)
	} else {
		name, args := f.call(object)
		if !ends(name, []string{"free"}) || len(args) == 0 || len(args) > 2 {
			return nil
		}
		object = args[len(args)-1]
	}
	if t := object.Type(); t != "identifier" && t != "field_expression" {
		return nil
	}
	return object
}

// earlyFree moves a free before the last statement that uses the object.
func earlyFree(f *file, n *sitter.Node) []change {
	object := f.freed(n)
	if object == nil {
		return nil
	}
	for _, s := range before(n) {
		if s.Type() != "expression_statement" && s.Type() != "if_statement" && s.Type() != "for_statement" && s.Type() != "while_statement" {
			return nil
		}
		if slices.Contains(f.texts(s, object.Type()), f.text(object)) {
			return []change{{
				edits:   []edit{{int(s.StartByte()), int(s.StartByte()), f.text(n) + " "}, f.blank(n)},
				objects: f.names(object), at: s,
			}}
		}
	}
	return nil
}

// secondFree frees an object once more at the end of its block.
func secondFree(f *file, n *sitter.Node) []change {
	object := f.freed(n)
	if object == nil {
		return nil
	}
	last := n
	for _, s := range after(n) {
		if s.Type() == "return_statement" || s.Type() == "break_statement" || s.Type() == "goto_statement" || s.Type() == "continue_statement" {
			break
		}
		last = s
	}
	end := int(last.EndByte())
	return []change{{edits: []edit{{end, end, " " + f.text(n)}}, objects: f.names(object), at: last}}
}

// texts are the texts of the nodes of a type below a node.
func (f *file) texts(n *sitter.Node, kind string) (list []string) {
	if n.Type() == kind {
		list = append(list, f.text(n))
	}
	for i := range int(n.NamedChildCount()) {
		list = append(list, f.texts(n.NamedChild(i), kind)...)
	}
	return list
}

// initialisation leaves a local variable without its first value.
func initialisation(f *file, n *sitter.Node) []change {
	d, value := n.ChildByFieldName("declarator"), n.ChildByFieldName("value")
	statement := n.Parent()
	if d == nil || value == nil || statement == nil || statement.Type() != "declaration" || !inBlock(statement) {
		return nil
	}
	if text := f.text(statement); strings.Contains(text, "const") || strings.Contains(text, "static") || strings.Contains(text, "&"+f.text(d)) {
		return nil
	}
	switch value.Type() {
	case "number_literal", "null", "initializer_list", "identifier", "false", "true":
	default:
		return nil
	}
	return []change{{edits: []edit{{int(d.EndByte()), int(value.EndByte()), ""}}, objects: f.names(d), removes: true, unsets: true}}
}

// memberInitialisation takes out the store of a constant into a member, or a memset to 0.
func memberInitialisation(f *file, n *sitter.Node) []change {
	if !inBlock(n) || n.NamedChildCount() != 1 {
		return nil
	}
	if name, args := f.callStatement(n); (name == "memset" || name == "bzero") && len(args) > 0 {
		return []change{{edits: []edit{f.blank(n)}, objects: f.member(args[0]), removes: true, unsets: true}}
	}
	a := n.NamedChild(0)
	left, right := a.ChildByFieldName("left"), a.ChildByFieldName("right")
	if a.Type() != "assignment_expression" || left == nil || right == nil || left.Type() != "field_expression" {
		return nil
	}
	if t := right.Type(); t != "number_literal" && t != "null" && f.text(right) != "NULL" {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.member(left), removes: true, unsets: true}}
}

// member is the name of what an expression denotes: of a member, not of what it is in.
func (f *file) member(n *sitter.Node) []string {
	if field := n.ChildByFieldName("field"); field != nil {
		return f.names(field)
	}
	if argument := n.ChildByFieldName("argument"); argument != nil {
		return f.member(argument)
	}
	return f.names(n)
}

// stackAddress makes a static array a local one where the function returns its address.
func stackAddress(f *file, n *sitter.Node) []change {
	text := f.text(n)
	rest, static := strings.CutPrefix(text, "static ")
	if !static || !inBlock(n) || !strings.Contains(text, "[") {
		return nil
	}
	names := f.names(n.ChildByFieldName("declarator"))
	if len(names) == 0 || !slices.ContainsFunc(f.returned(n.Parent()), func(s string) bool { return s == names[0] }) {
		return nil
	}
	return []change{{edits: []edit{replace(n, rest)}, objects: names[:1]}}
}

// returned are the expressions that a block returns.
func (f *file) returned(n *sitter.Node) (list []string) {
	if n.Type() == "return_statement" && n.NamedChildCount() == 1 {
		return []string{f.text(n.NamedChild(0))}
	}
	for i := range int(n.NamedChildCount()) {
		list = append(list, f.returned(n.NamedChild(i))...)
	}
	return list
}

// index is one too large, or one too small.
func index(f *file, n *sitter.Node) (list []change) {
	i := n.ChildByFieldName("index")
	if i == nil && n.ChildByFieldName("indices") != nil && n.ChildByFieldName("indices").NamedChildCount() == 1 {
		i = n.ChildByFieldName("indices").NamedChild(0) // C++
	}
	if i == nil || i.Type() == "number_literal" || i.Type() == "char_literal" {
		return nil
	}
	for _, by := range []string{" + 1", " - 1"} {
		list = append(list, change{edits: []edit{replace(i, "("+f.text(i)+")"+by)}, objects: f.names(n)})
	}
	return list
}

// pointerIncrement advances a variable by two.
func pointerIncrement(f *file, n *sitter.Node) []change {
	a := n.ChildByFieldName("argument")
	if a == nil || a.Type() != "identifier" || n.Parent() == nil || n.Parent().Type() != "expression_statement" && n.Parent().Type() != "for_statement" {
		return nil
	}
	by := "+="
	if strings.Contains(f.text(n), "--") {
		by = "-="
	}
	return []change{{edits: []edit{replace(n, fmt.Sprintf("%s %s 2", f.text(a), by))}, objects: f.names(a)}}
}

// swappedArguments exchanges two neighbours among the arguments of a call.
func swappedArguments(f *file, n *sitter.Node) (list []change) {
	_, args := f.call(n)
	for i := 0; i+1 < len(args); i++ {
		a, b := args[i], args[i+1]
		if a.Type() != "identifier" || b.Type() != "identifier" || f.text(a) == f.text(b) {
			continue
		}
		list = append(list, change{edits: []edit{replace(a, f.text(b)), replace(b, f.text(a))}, objects: f.names(a, b)})
	}
	return list
}

// wrongStruct takes the size of a pointer for that of what it points to.
func wrongStruct(f *file, n *sitter.Node) []change {
	v := unparenthesised(n.ChildByFieldName("value"))
	if v == nil || v.Type() != "pointer_expression" || !strings.HasPrefix(f.text(v), "*") {
		return nil
	}
	return []change{{edits: []edit{replace(v, f.text(v)[1:])}, objects: f.names(v)}}
}

// terminator takes out the store of the 0 at the end of a string.
func terminator(f *file, n *sitter.Node) []change {
	if !inBlock(n) || n.NamedChildCount() != 1 || n.NamedChild(0).Type() != "assignment_expression" {
		return nil
	}
	left, right := n.NamedChild(0).ChildByFieldName("left"), n.NamedChild(0).ChildByFieldName("right")
	if left == nil || right == nil || f.text(right) != `'\0'` && f.text(right) != `L'\0'` {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.member(left), removes: true}}
}
