package inject

import (
	"slices"
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
)

var lockOperators = []operator{
	{"lock-pair", Concurrency, "expression_statement", lockPair},
	{"cut-section", Concurrency, "expression_statement", cutSection},
	{"lock-order", Concurrency, "expression_statement", lockOrder},
	{"while-to-if", Concurrency, "while_statement", whileToIf},
	{"lost-signal", Concurrency, "expression_statement", lostSignal},
	{"join", Concurrency, "expression_statement", removedJoin},
	{"early-flag", Concurrency, "expression_statement", earlyFlag},
	{"plain-counter", Concurrency, "call_expression", plainCounter},
}

// Programs call these functions through wrappers and macros of their own names, such as
// safe_mutex_lock and ZSTD_pthread_mutex_lock: the ends of the names decide.
var (
	locks   = []string{"mutex_lock", "rwlock_wrlock", "spin_lock", "xlock"}
	waits   = []string{"cond_wait", "cond_timedwait"}
	signals = []string{"cond_signal", "cond_broadcast"}
	joins   = []string{"pthread_join", "thread_join"}
)

// isOne reports whether a function is one of a list, by the end of its name.
func isOne(name string, of []string) bool {
	if name == "lock" {
		return slices.Equal(of, locks)
	}
	return slices.ContainsFunc(of, func(end string) bool { return strings.HasSuffix(strings.ToLower(name), end) })
}

// isUnlock reports whether a function releases what another one locks.
func isUnlock(name, lock string) bool {
	name, lock = strings.ToLower(name), strings.ToLower(lock)
	if prefix, ok := strings.CutSuffix(lock, "wrlock"); ok {
		return name == prefix+"unlock"
	}
	return name == strings.TrimSuffix(lock, "lock")+"unlock"
}

// section is a lock's statement, its unlock in the same block, and the statements between.
func (f *file) section(n *sitter.Node) (lock, unlock *sitter.Node, body []*sitter.Node) {
	name, args := f.callStatement(n)
	if !isOne(name, locks) || len(args) != 1 || !inBlock(n) {
		return nil, nil, nil
	}
	for _, s := range after(n) {
		other, of := f.callStatement(s)
		if isUnlock(other, name) && len(of) == 1 && f.text(of[0]) == f.text(args[0]) {
			return args[0], s, body
		}
		body = append(body, s)
	}
	return nil, nil, nil
}

// about are the objects of a critical section: the lock, and what its statements name.
func (f *file) about(lock *sitter.Node, body []*sitter.Node) []string {
	return append(f.names(lock), f.names(body...)...)
}

// lockPair takes out a lock and its unlock.
func lockPair(f *file, n *sitter.Node) []change {
	lock, unlock, body := f.section(n)
	if lock == nil || len(body) == 0 {
		return nil
	}
	return []change{{edits: []edit{f.blank(n), f.blank(unlock)}, objects: f.about(lock, body), removes: true}}
}

// cutSection releases a lock in the middle of its section.
func cutSection(f *file, n *sitter.Node) []change {
	lock, unlock, body := f.section(n)
	if lock == nil || len(body) < 2 {
		return nil
	}
	s := body[len(body)/2]
	at := int(s.StartByte())
	return []change{{edits: []edit{{at, at, f.text(unlock) + " " + f.text(n) + " "}}, objects: f.about(lock, body), removes: true, at: s}}
}

// lockOrder takes two locks in the other order.
func lockOrder(f *file, n *sitter.Node) []change {
	name, args := f.callStatement(n)
	next := n.NextNamedSibling()
	if next == nil || !isOne(name, locks) || len(args) != 1 || !inBlock(n) {
		return nil
	}
	other, of := f.callStatement(next)
	if other != name || len(of) != 1 {
		return nil
	}
	return []change{{edits: []edit{replace(args[0], f.text(of[0])), replace(of[0], f.text(args[0]))}, objects: f.names(args[0], of[0])}}
}

// whileToIf looks at the condition once before a wait.
func whileToIf(f *file, n *sitter.Node) []change {
	body := n.ChildByFieldName("body")
	keyword := n.Child(0)
	if body == nil || keyword == nil || keyword.Type() != "while" || !f.calls(body, waits) {
		return nil
	}
	return []change{{edits: []edit{replace(keyword, "if")}, objects: f.names(n.ChildByFieldName("condition"), body)}}
}

// calls reports whether one of the functions is called below a node.
func (f *file) calls(n *sitter.Node, functions []string) bool {
	if name, _ := f.call(n); isOne(name, functions) {
		return true
	}
	for i := range int(n.NamedChildCount()) {
		if f.calls(n.NamedChild(i), functions) {
			return true
		}
	}
	return false
}

// lostSignal takes out the signal that a waiting thread waits for.
func lostSignal(f *file, n *sitter.Node) []change {
	name, args := f.callStatement(n)
	if !isOne(name, signals) || len(args) == 0 || !inBlock(n) {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.names(args[0]), removes: true}}
}

// removedJoin does not wait for a thread's end.
func removedJoin(f *file, n *sitter.Node) []change {
	name, args := f.callStatement(n)
	if !isOne(name, joins) || len(args) == 0 {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.names(args[0]), removes: true}}
}

// earlyFlag stores a constant into a member before the statement that it follows.
func earlyFlag(f *file, n *sitter.Node) []change {
	if !inBlock(n) || n.NamedChildCount() != 1 {
		return nil
	}
	a := n.NamedChild(0)
	left, right := a.ChildByFieldName("left"), a.ChildByFieldName("right")
	earlier := n.PrevNamedSibling()
	if a.Type() != "assignment_expression" || left == nil || right == nil || earlier == nil || earlier.Type() != "expression_statement" {
		return nil
	}
	if text := f.text(right); text != "1" && text != "true" {
		return nil
	}
	at := int(earlier.StartByte())
	return []change{{edits: []edit{{at, at, f.text(n) + " "}, f.blank(n)}, objects: f.names(left), at: earlier}}
}

// plainCounter makes an atomic addition a plain one.
func plainCounter(f *file, n *sitter.Node) []change {
	name, args := f.call(n)
	if len(args) < 2 {
		return nil
	}
	var operator string
	switch {
	case strings.Contains(name, "fetch_and_add"), strings.Contains(name, "fetch_add"), strings.Contains(name, "add_and_fetch"), strings.Contains(name, "add_fetch"):
		operator = "+="
	case strings.Contains(name, "fetch_and_sub"), strings.Contains(name, "fetch_sub"), strings.Contains(name, "sub_and_fetch"), strings.Contains(name, "sub_fetch"):
		operator = "-="
	default:
		return nil
	}
	text := "(*(" + f.text(args[0]) + ") " + operator + " (" + f.text(args[1]) + "))"
	if strings.Contains(name, "fetch_and") || strings.Contains(name, "fetch_add") || strings.Contains(name, "fetch_sub") {
		text = "(" + text + strings.Map(inverse, operator[:1]) + " (" + f.text(args[1]) + "))" // the old value
	}
	return []change{{edits: []edit{replace(n, text)}, objects: f.names(args[0])}}
}

func inverse(operator rune) rune {
	if operator == '+' {
		return '-'
	}
	return '+'
}
