package inject

import (
	"slices"
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
)

// operator makes one kind of bug at nodes of one type of the grammar.
type operator struct {
	name  string
	class Class
	node  string
	find  func(*file, *sitter.Node) []change
}

// change is what an operator does at a node.
type change struct {
	edits   []edit
	objects []string
	// removes says that the statement is taken out, so that the root may be named by the
	// statements around it.
	removes bool
	// signals says that the statement that is taken out is a signal: its object, which comes first, is all that is left to name.
	signals bool
	// unsets says that the object, which comes first, does not get a value any more.
	unsets bool
	// joins says that the statement that is taken out waits for a thread's end.
	joins bool
	// whole says that the body of the statement is changed as well, in what it means: a wait without its loop, a free by each user.
	whole bool
	// at is the statement that is changed, if it is not the one around the node.
	at *sitter.Node
	// section is the first and the last statement of a critical section that the bug is about:
	// all its lines are the root.
	section []*sitter.Node
	// effect is what must be executed for the change to be one, if it is not the statement.
	effect *sitter.Node
}

var operators = slices.Concat(memoryOperators, lockOperators, signalOperators)

// ends reports whether a function is one of a list by the end of its name: programs have
// wrappers and macros such as xmalloc, jsonp_free and ZSTD_memcpy.
func ends(name string, of []string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(of, func(end string) bool { return strings.HasSuffix(name, end) })
}

// call is the name and the arguments of a call of a plain function.
func (f *file) call(n *sitter.Node) (name string, args []*sitter.Node) {
	function, list := n.ChildByFieldName("function"), n.ChildByFieldName("arguments")
	if n.Type() != "call_expression" || function == nil || list == nil {
		return "", nil
	}
	for i := range int(list.NamedChildCount()) {
		if a := list.NamedChild(i); a.Type() != "comment" {
			args = append(args, a)
		}
	}
	return f.text(function), args
}

// callStatement is the call that a statement consists of.
func (f *file) callStatement(n *sitter.Node) (name string, args []*sitter.Node) {
	if n.Type() != "expression_statement" || n.NamedChildCount() != 1 {
		return "", nil
	}
	return f.call(n.NamedChild(0))
}

// inBlock reports whether a statement is one of the statements of a block, where it can be
// taken out.
func inBlock(n *sitter.Node) bool {
	p := n.Parent()
	return p != nil && (p.Type() == "compound_statement" || p.Type() == "case_statement")
}

// after are the statements that follow one in its block.
func after(n *sitter.Node) (list []*sitter.Node) {
	for s := n.NextNamedSibling(); s != nil; s = s.NextNamedSibling() {
		if s.Type() != "comment" {
			list = append(list, s)
		}
	}
	return list
}

// before are the statements that precede one in its block, the nearest first.
func before(n *sitter.Node) (list []*sitter.Node) {
	for s := n.PrevNamedSibling(); s != nil; s = s.PrevNamedSibling() {
		if s.Type() != "comment" {
			list = append(list, s)
		}
	}
	return list
}

// unparenthesised is a condition without its parentheses.
func unparenthesised(n *sitter.Node) *sitter.Node {
	for n != nil && (n.Type() == "parenthesized_expression" || n.Type() == "condition_clause") {
		if v := n.ChildByFieldName("value"); v != nil {
			n = v
		} else if n.NamedChildCount() == 1 {
			n = n.NamedChild(0)
		} else {
			return n
		}
	}
	return n
}

// leaves reports whether a statement is only an exit: return, break, continue, goto, or a
// block of calls that ends in one.
func (f *file) leaves(n *sitter.Node) bool {
	switch n.Type() {
	case "return_statement", "break_statement", "continue_statement", "goto_statement":
		return true
	case "compound_statement":
		return n.NamedChildCount() > 0 && f.leaves(n.NamedChild(int(n.NamedChildCount())-1))
	case "expression_statement":
		name, _ := f.callStatement(n)
		return slices.Contains([]string{"abort", "exit", "_exit", "die", "fatal", "error", "err", "errx", "bail"}, strings.ToLower(name))
	}
	return false
}
