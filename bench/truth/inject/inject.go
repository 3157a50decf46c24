package inject

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/c"
	"github.com/smacker/go-tree-sitter/cpp"
)

// Class is what kind of failure an operator makes possible.
type Class string

const (
	Memory      Class = "memory"
	Concurrency Class = "concurrency"
)

// Mutation is one bug that a file could have.
type Mutation struct {
	Operator string `json:"operator"`
	Class    Class  `json:"class"`
	Function string `json:"function"`
	// Line is that of the statement that is changed or removed, from 1, and Last its last
	// one: of a statement that stays and has a body, that before the body.
	Line int `json:"line"`
	Last int `json:"last"`
	// Objects are the identifiers that the bug is about: variables, members, locks.
	Objects []string `json:"objects,omitempty"`
	// Root are the lines that a diagnosis may name as the root: those that are changed, and of
	// a removal also its neighbours that name an object.
	Root []int `json:"root"`
	// Unsignalled is what the statement that is taken out would have signalled; empty: it is no signal.
	Unsignalled string `json:"unsignalled,omitempty"`
	// Unset is the variable or member to which the statement that is taken out gave a value; empty: it gave none.
	Unset string `json:"unset,omitempty"`
	// Unjoined: the statement that is taken out waited for a thread's end, so all that the function does after it may come too early.
	Unjoined bool `json:"unjoined,omitempty"`
	// Effect are lines of which one must be executed for the bug to change anything: of a
	// removed check the lines of its body, else those from Line to Last.
	Effect []int `json:"effect,omitempty"`
	// Conditional says that the first of these lines has also a condition.
	Conditional bool `json:"conditional,omitempty"`
	// Original is the source of the statement.
	Original string `json:"original"`
	edits    []edit
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// Key tells the mutation from the others of its file.
func (m *Mutation) Key() string { return fmt.Sprint(m.Operator, m.edits) }

// Apply returns the source with the bug in it.
func (m *Mutation) Apply(source []byte) []byte {
	edits := slices.Clone(m.edits)
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, source[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, source[at:]...)
}

// Find returns the mutations of a file, in the order of their lines. The file's name says
// whether it is C or C++.
func Find(name string, source []byte) ([]Mutation, error) {
	parser := sitter.NewParser()
	defer parser.Close()
	switch filepath.Ext(name) {
	case ".c", ".h":
		parser.SetLanguage(c.GetLanguage())
	case ".cc", ".cpp", ".cxx", ".hh", ".hpp":
		parser.SetLanguage(cpp.GetLanguage())
	default:
		return nil, fmt.Errorf("inject: %s: neither C nor C++", name)
	}
	parsed, err := parser.ParseCtx(context.Background(), nil, source)
	if err != nil {
		return nil, fmt.Errorf("inject: %s: %w", name, err)
	}
	defer parsed.Close()
	f := &file{source: source}
	f.visit(parsed.RootNode(), "")
	slices.SortStableFunc(f.found, func(a, b Mutation) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Operator, b.Operator))
	})
	return f.found, nil
}

// file gathers the mutations of one file.
type file struct {
	source []byte
	found  []Mutation
}

func (f *file) visit(n *sitter.Node, function string) {
	if n.Type() == "function_definition" {
		function = f.functionName(n)
	}
	if function != "" && !n.HasError() {
		for _, o := range operators {
			if o.node == n.Type() {
				f.try(o, n, function)
			}
		}
	}
	for i := range int(n.NamedChildCount()) {
		f.visit(n.NamedChild(i), function)
	}
}

// try keeps the mutations that an operator has at a node.
func (f *file) try(o operator, n *sitter.Node, function string) {
	for _, change := range o.find(f, n) {
		statement := statementOf(n)
		if change.at != nil {
			statement = change.at
		}
		line := lineOf(statement)
		m := Mutation{
			Operator: o.name, Class: o.class, Function: function, Line: line, Last: lastLine(statement, change.removes && change.at == nil), Objects: change.objects,
			Original: f.text(statement), edits: change.edits,
		}
		m.Root = lines(m.Line, m.Last)
		for _, e := range m.edits {
			m.Root = append(m.Root, lines(f.lineAt(e.start), f.lineAt(max(e.start, e.end-1)))...)
		}
		switch {
		case change.whole:
			m.Root = append(m.Root, lines(m.Line, lastLine(statement, true))...)
		case change.section != nil:
			m.Root = append(m.Root, lines(lineOf(change.section[0]), lastLine(change.section[1], true))...)
		case change.removes:
			m.Root = append(m.Root, f.neighbours(statement, change.objects)...)
		}
		m.Unjoined = change.joins
		if change.signals && len(change.objects) > 0 {
			m.Unsignalled = change.objects[0]
		}
		if change.unsets && len(change.objects) > 0 {
			m.Unset = change.objects[0]
		}
		m.Effect = lines(m.Line, m.Last)
		if change.effect != nil {
			m.Effect = lines(lineOf(change.effect), int(change.effect.EndPoint().Row)+1)
			m.Conditional = len(m.Effect) == 1 && m.Effect[0] <= lastLine(statement, false)
		}
		slices.Sort(m.Root)
		m.Root = slices.Compact(m.Root)
		if f.keepsLines(&m) {
			f.found = append(f.found, m)
		}
	}
}

func lines(first, last int) (list []int) {
	for l := first; l <= last; l++ {
		list = append(list, l)
	}
	return list
}

// keepsLines refuses edits after which the lines have other numbers.
func (f *file) keepsLines(m *Mutation) bool {
	for _, e := range m.edits {
		if bytes.Count(f.source[e.start:e.end], []byte("\n")) != bytes.Count([]byte(e.text), []byte("\n")) {
			return false
		}
	}
	return true
}

// neighbours are the lines that name one of the objects in the nearest statement of the block
// that does, before and after a statement.
func (f *file) neighbours(statement *sitter.Node, objects []string) (found []int) {
	for _, side := range [][]*sitter.Node{before(statement), after(statement)} {
		for _, s := range side {
			if list := f.naming(s, objects); len(list) > 0 {
				found = append(found, list...)
				break
			}
		}
	}
	return found
}

// naming are the lines of a statement that name one of the objects.
func (f *file) naming(s *sitter.Node, objects []string) (found []int) {
	for _, id := range f.identifiers(s) {
		if slices.Contains(objects, id.name) {
			found = append(found, id.line)
		}
	}
	return found
}

// lineAt is the line of a byte.
func (f *file) lineAt(offset int) int { return bytes.Count(f.source[:offset], []byte("\n")) + 1 }

type identifier struct {
	name string
	line int
}

// identifiers are the names of variables and members below a node.
func (f *file) identifiers(n *sitter.Node) (list []identifier) {
	if n.Type() == "identifier" || n.Type() == "field_identifier" {
		return []identifier{{f.text(n), lineOf(n)}}
	}
	for i := range int(n.NamedChildCount()) {
		list = append(list, f.identifiers(n.NamedChild(i))...)
	}
	return list
}

// names are the identifiers below nodes, each once.
func (f *file) names(nodes ...*sitter.Node) (list []string) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		for _, id := range f.identifiers(n) {
			if !slices.Contains(list, id.name) {
				list = append(list, id.name)
			}
		}
	}
	return list
}

func (f *file) text(n *sitter.Node) string { return string(f.source[n.StartByte():n.EndByte()]) }

func (f *file) functionName(n *sitter.Node) string {
	for d := n.ChildByFieldName("declarator"); d != nil; d = d.ChildByFieldName("declarator") {
		switch d.Type() {
		case "identifier", "field_identifier", "qualified_identifier", "destructor_name", "operator_name":
			return f.text(d)
		}
		if d.ChildByFieldName("declarator") == nil {
			return f.text(d)
		}
	}
	return ""
}

// replace is an edit of a whole node.
func replace(n *sitter.Node, text string) edit {
	return edit{int(n.StartByte()), int(n.EndByte()), text}
}

// blank removes a node and keeps its lines. What remains is an empty statement.
func (f *file) blank(n *sitter.Node) edit {
	return replace(n, ";"+string(bytes.Repeat([]byte("\n"), bytes.Count(f.source[n.StartByte():n.EndByte()], []byte("\n")))))
}

func lineOf(n *sitter.Node) int { return int(n.StartPoint().Row) + 1 }

// lastLine is that of a statement, or of its part before the body.
func lastLine(n *sitter.Node, whole bool) int {
	for _, field := range []string{"body", "consequence"} {
		if body := n.ChildByFieldName(field); body != nil && !whole && n.Type() != "do_statement" {
			return max(lineOf(n), int(body.PrevSibling().EndPoint().Row)+1)
		}
	}
	if n.Type() == "case_statement" {
		return lineOf(n)
	}
	return int(n.EndPoint().Row) + 1
}

// statementOf is the innermost statement or declaration that a node is part of.
func statementOf(n *sitter.Node) *sitter.Node {
	for s := n; s != nil; s = s.Parent() {
		switch s.Type() {
		case "expression_statement", "declaration", "return_statement", "if_statement", "while_statement", "for_statement", "do_statement",
			"switch_statement", "case_statement":
			return s
		}
	}
	return n
}
