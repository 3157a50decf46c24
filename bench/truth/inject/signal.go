package inject

import (
	"slices"
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
)

// A section in which signals are blocked is one of a lock between the main program and its
// handlers: the operators of locks apply to it too.
var signalOperators = []operator{
	{"handler-mask", Concurrency, "expression_statement", handlerMask},
	{"unblocked-wait", Concurrency, "expression_statement", unblockedWait},
	{"delayed-block", Concurrency, "expression_statement", delayedBlock},
}

var masking = []string{"sigprocmask", "pthread_sigmask"}

// masks reports whether a statement blocks signals.
func (f *file) masks(n *sitter.Node) bool {
	name, args := f.callStatement(n)
	return slices.Contains(masking, name) && len(args) == 3 && f.text(args[0]) == "SIG_BLOCK"
}

// unmasks reports whether a statement ends what masks begins.
func (f *file) unmasks(n *sitter.Node) bool {
	name, args := f.callStatement(n)
	return slices.Contains(masking, name) && len(args) == 3 && f.text(args[0]) != "SIG_BLOCK"
}

// handlerMask lets one handler interrupt another.
func handlerMask(f *file, n *sitter.Node) []change {
	name, args := f.callStatement(n)
	if name != "sigaddset" || len(args) != 2 || !inBlock(n) || !strings.Contains(f.text(args[0]), "mask") {
		return nil
	}
	return []change{{edits: []edit{f.blank(n)}, objects: f.names(args...), removes: true}}
}

// unblockedWait waits with pause for a signal that is not blocked before: it may come before
// the wait.
func unblockedWait(f *file, n *sitter.Node) []change {
	name, args := f.callStatement(n)
	if name != "sigsuspend" || len(args) != 1 {
		return nil
	}
	set := f.text(args[0])
	return []change{{edits: []edit{replace(n, "{ sigprocmask(SIG_SETMASK, "+set+", 0); pause(); }")}, objects: f.names(args[0])}}
}

// delayedBlock blocks signals after the first statement of the section.
func delayedBlock(f *file, n *sitter.Node) []change {
	if !f.masks(n) {
		return nil
	}
	lock, _, body := f.section(n)
	if lock == nil || len(body) < 2 || body[0].Type() == "declaration" {
		return nil
	}
	end := int(body[0].EndByte())
	return []change{{edits: []edit{f.blank(n), {end, end, " " + f.text(n)}}, objects: f.about(lock, body[:1]), removes: true}}
}
