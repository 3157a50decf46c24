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
	{"blind-wait", Concurrency, "while_statement", blindWait},
	{"scoped-lock", Concurrency, "declaration", scopedLock},
	{"join", Concurrency, "expression_statement", removedJoin},
	{"last-user", Concurrency, "if_statement", lastUser},
	{"early-flag", Concurrency, "expression_statement", earlyFlag},
	{"plain-counter", Concurrency, "call_expression", plainCounter},
}

// Programs call these functions through wrappers and macros of their own names, such as
// safe_mutex_lock and ZSTD_pthread_mutex_lock: the ends of the names decide. possess and
// twist are pigz's, Lock is that of C++.
var (
	locks   = []string{"mutex_lock", "rwlock_wrlock", "rwlock_rdlock", "spin_lock", "xlock", "possess", ".lock", ">lock"}
	waits   = []string{"cond_wait", "cond_timedwait", "xwait", ".wait", ">wait", "sigsuspend", "pause"}
	signals = []string{"cond_signal", "cond_broadcast", "xsignal", "xbroadcast", "notify_one", "notify_all"}
	joins   = []string{"pthread_join", "thread_join", ".join", ">join"}
)

// isOne reports whether a function is one of a list, by the end of its name.
func isOne(name string, of []string) bool {
	return name == "lock" && slices.Equal(of, locks) || ends(name, of)
}

// isUnlock reports whether a function releases what another one locks.
func isUnlock(name, lock string) bool {
	name, lock = strings.ToLower(name), strings.ToLower(lock)
	for _, kind := range []string{"wrlock", "rdlock"} {
		if prefix, ok := strings.CutSuffix(lock, kind); ok {
			return name == prefix+"unlock"
		}
	}
	if lock == "possess" {
		return name == "release"
	}
	return name == strings.TrimSuffix(lock, "lock")+"unlock"
}

// lockCall is the function and the object of a statement that locks or unlocks.
func (f *file) lockCall(n *sitter.Node) (name string, object string) {
	name, args := f.callStatement(n)
	switch {
	case len(args) == 1:
		return name, f.text(args[0])
	case len(args) == 0:
		// A method, or a function with a lock of its own.
		lower := strings.ToLower(name)
		return name, strings.TrimSuffix(strings.TrimSuffix(lower, "unlock"), "lock")
	}
	return name, ""
}

// section is a lock's statement, its unlock in the same block, and the statements between.
func (f *file) section(n *sitter.Node) (lock, unlock *sitter.Node, body []*sitter.Node) {
	name, object := f.lockCall(n)
	if !inBlock(n) || !f.masks(n) && (object == "" || !isOne(name, locks) && !ends(name, []string{"_lock"})) {
		return nil, nil, nil
	}
	for _, s := range after(n) {
		if found := f.unlocks(s, n); len(found) == 1 && found[0].Equal(s) {
			return n.NamedChild(0), s, body
		}
		body = append(body, s)
	}
	return nil, nil, nil
}

// unlocks are the statements below one that end the section that lock begins.
func (f *file) unlocks(s, lock *sitter.Node) (list []*sitter.Node) {
	name, object := f.lockCall(lock)
	if other, of := f.lockCall(s); f.masks(lock) && f.unmasks(s) || of != "" && of == object && isUnlock(other, name) {
		return []*sitter.Node{s}
	}
	for i := range int(s.NamedChildCount()) {
		list = append(list, f.unlocks(s.NamedChild(i), lock)...)
	}
	return list
}

// about are the objects of a critical section: the lock, and what its statements name.
func (f *file) about(lock *sitter.Node, body []*sitter.Node) []string {
	return append(f.names(lock), f.names(body...)...)
}

// lockPair takes out a lock and its unlock, also those of exits within the section.
func lockPair(f *file, n *sitter.Node) []change {
	lock, unlock, body := f.section(n)
	if lock == nil || len(body) == 0 {
		return nil
	}
	edits := []edit{f.blank(n), f.blank(unlock)}
	for _, s := range body {
		for _, exit := range f.unlocks(s, n) {
			edits = append(edits, f.blank(exit))
		}
	}
	return []change{{edits: edits, objects: f.about(lock, body), removes: true, section: []*sitter.Node{n, unlock}}}
}

// cutSection releases a lock in the middle of its section.
func cutSection(f *file, n *sitter.Node) []change {
	lock, unlock, body := f.section(n)
	if lock == nil || len(body) < 2 {
		return nil
	}
	s := body[len(body)/2]
	at := int(s.StartByte())
	return []change{{edits: []edit{{at, at, f.text(unlock) + " " + f.text(n) + " "}}, objects: f.about(lock, body), removes: true, section: []*sitter.Node{n, unlock}, at: s}}
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
	return []change{{edits: []edit{replace(keyword, "if")}, objects: f.names(n.ChildByFieldName("condition"), body), whole: true}}
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
	if !isOne(name, signals) || !inBlock(n) {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.subject(n, args), removes: true, signals: true}}
}

// blindWait waits without a look at the condition: a signal that was sent before is missed.
func blindWait(f *file, n *sitter.Node) []change {
	keyword, condition, body := n.Child(0), n.ChildByFieldName("condition"), n.ChildByFieldName("body")
	if body == nil || keyword == nil || keyword.Type() != "while" || !f.calls(body, waits) || f.calls(body, []string{"timedwait"}) {
		return nil
	}
	return []change{{edits: []edit{replace(keyword, "if"), replace(condition, "(1)")}, objects: f.names(condition, body), whole: true}}
}

// scopedLock takes out an object of C++ that locks until the end of its block.
func scopedLock(f *file, n *sitter.Node) []change {
	kind := n.ChildByFieldName("type")
	if kind == nil || !inBlock(n) {
		return nil
	}
	name := f.text(kind)
	if !strings.Contains(name, "lock_guard") && !strings.Contains(name, "scoped_lock") && !strings.HasSuffix(name, "MutexLock") {
		return nil
	}
	rest := after(n)
	return []change{{edits: []edit{f.blank(n)}, objects: f.about(n.ChildByFieldName("declarator"), rest), removes: true}}
}

// lastUser frees an object at the first release, not at that of the last user.
func lastUser(f *file, n *sitter.Node) []change {
	condition, body := unparenthesised(n.ChildByFieldName("condition")), n.ChildByFieldName("consequence")
	if condition == nil || body == nil || !f.decrements(condition) || !f.calls(body, []string{"free", "delete", "destroy"}) {
		return nil
	}
	return []change{{edits: []edit{replace(condition, "("+f.text(condition)+", 1)")}, objects: f.names(condition, body), whole: true}}
}

// decrements reports whether an expression counts down.
func (f *file) decrements(n *sitter.Node) bool {
	if name, _ := f.call(n); strings.Contains(name, "sub") && strings.Contains(name, "fetch") {
		return true
	}
	if n.Type() == "update_expression" && strings.Contains(f.text(n), "--") {
		return true
	}
	for i := range int(n.NamedChildCount()) {
		if f.decrements(n.NamedChild(i)) {
			return true
		}
	}
	return false
}

// removedJoin does not wait for a thread's end.
func removedJoin(f *file, n *sitter.Node) []change {
	name, args := f.callStatement(n)
	if !isOne(name, joins) {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.subject(n, args), removes: true, joins: true}}
}

// subject is what a call is about: its first argument, or the object of a method.
func (f *file) subject(n *sitter.Node, args []*sitter.Node) []string {
	if len(args) > 0 {
		return f.member(args[0])
	}
	if object := n.NamedChild(0).ChildByFieldName("function").ChildByFieldName("argument"); object != nil {
		return f.member(object)
	}
	return nil
}

// earlyFlag stores a constant before the statement that it follows.
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
	if text := f.text(right); text != "1" && text != "true" && (text != strings.ToUpper(text) || right.Type() != "identifier" || text == "NULL") {
		return nil
	}
	if name, _ := f.callStatement(earlier); isOne(name, locks) {
		return nil
	}
	at := int(earlier.StartByte())
	return []change{{edits: []edit{{at, at, f.text(n) + " "}, f.blank(n)}, objects: f.names(left), at: earlier}}
}

// plainCounter makes an atomic addition a load and a store.
func plainCounter(f *file, n *sitter.Node) []change {
	name, args := f.call(n)
	operator := "+"
	if strings.Contains(name, "sub") {
		operator = "-"
	}
	method := strings.HasSuffix(name, ".fetch_add") || strings.HasSuffix(name, ">fetch_add") || strings.HasSuffix(name, ".fetch_sub") || strings.HasSuffix(name, ">fetch_sub")
	switch {
	case method && len(args) > 0:
		object := name[:len(name)-len("fetch_add")]
		// The old value is what the expression has.
		text := "(" + object + "store(" + object + "load() " + operator + " (" + f.text(args[0]) + ")), " + object + "load() " + inverse(operator) + " (" + f.text(args[0]) + "))"
		return []change{{edits: []edit{replace(n, text)}, objects: f.names(n.ChildByFieldName("function"))}}
	case len(args) < 2 || !strings.Contains(name, "fetch") || !strings.Contains(name, "add") && !strings.Contains(name, "sub"):
		return nil
	}
	variable, by := "*("+f.text(args[0])+")", " ("+f.text(args[1])+")"
	text := "(" + variable + " = " + variable + " " + operator + by + ")"
	if strings.Contains(name, "fetch_and") || strings.Contains(name, "fetch_add") || strings.Contains(name, "fetch_sub") {
		text = "(" + text + " " + inverse(operator) + by + ")"
	}
	return []change{{edits: []edit{replace(n, text)}, objects: f.names(args[0])}}
}

func inverse(operator string) string {
	if operator == "+" {
		return "-"
	}
	return "+"
}
