package gocore

import (
	"fmt"
	"go/constant"
	"strings"

	"diagnose/evidence"

	"github.com/go-delve/delve/pkg/proc"
	"golang.org/x/sys/unix"
)

// loading bounds the parts of a value that are read.
var loading = proc.LoadConfig{
	FollowPointers: true, MaxVariableRecurse: 2, MaxStringLen: 4096, MaxArrayValues: 512, MaxStructFields: 32,
}

// eval evaluates an expression of delve's, in the goroutine of the thread if
// it runs one.
func (r *reader) eval(thread proc.Thread, expr string) (*proc.Variable, error) {
	scope, err := proc.GoroutineScope(r.target, thread)
	if err != nil {
		scope, err = proc.ThreadScope(r.target, thread)
	}
	if err != nil {
		return nil, err
	}
	v, err := scope.EvalExpression(expr, loading)
	if err != nil {
		return nil, err
	}
	return v, v.Unreadable
}

func stringOf(v *proc.Variable) string {
	if v.Value == nil || v.Value.Kind() != constant.String {
		return ""
	}
	return constant.StringVal(v.Value)
}

func uintOf(v *proc.Variable) uint64 {
	if v.Value == nil || v.Value.Kind() != constant.Int {
		return 0
	}
	u, _ := constant.Uint64Val(v.Value)
	return u
}

// failure finds what ended the process: the panic of the failing goroutine,
// or else the runtime's last printed line.
func (r *reader) failure() error {
	thread := r.threadOf(r.failingGoroutine())
	if thread == nil {
		return fmt.Errorf("no thread to read it from")
	}
	e := r.panicValue(thread)
	if e == nil {
		e = r.fatalError(thread)
	}
	if e != nil {
		r.describe(e, r.signal(thread))
	}
	return nil
}

// failingGoroutine is nil when none failed.
func (r *Result) failingGoroutine() *evidence.Goroutine {
	if len(r.Goroutines) > 0 && r.Goroutines[0].Failing {
		return &r.Goroutines[0]
	}
	return nil
}

// describe makes the failure of what the runtime recorded. signal may be nil.
func (r *Result) describe(e *evidence.Exception, signal *evidence.Signal) {
	f := &evidence.Failure{Kind: evidence.GoPanic, Proof: e.Proof, Exception: e, Signal: signal}
	failing := r.failingGoroutine()
	if failing != nil {
		f.Site = programSite(&failing.Stack)
	}
	if strings.Contains(e.What, "all goroutines are asleep") {
		f.Kind, f.Message = evidence.Deadlock, e.What
		if main := r.mainGoroutine(); main != nil {
			f.Site = programSite(&main.Stack)
		}
	}
	f.Sentence = evidence.Say(sentence(f, failing))
	f.MessageInSentence = f.Message != "" // the exception's, which ends the sentence
	r.Failure = f
}

func (r *reader) threadOf(g *evidence.Goroutine) proc.Thread {
	if g != nil && g.TID != 0 {
		if t, ok := r.target.FindThread(g.TID); ok {
			return t
		}
	}
	return r.target.CurrentThread()
}

func (r *Result) mainGoroutine() *evidence.Goroutine {
	for i := range r.Goroutines {
		if r.Goroutines[i].ID == 1 {
			return &r.Goroutines[i]
		}
	}
	return nil
}

// panicValue reads the innermost panic of the thread's goroutine. The runtime
// has already replaced an error or Stringer by its text (preprintpanics), so
// the type is lost.
func (r *reader) panicValue(thread proc.Thread) *evidence.Exception {
	arg, err := r.eval(thread, "runtime.curg._panic.arg")
	if err != nil || len(arg.Children) == 0 {
		return nil
	}
	value := &arg.Children[0]
	e := &evidence.Exception{Proof: evidence.FromCore}
	if value.Unreadable != nil {
		e.WhatUnavailable = value.Unreadable.Error()
		return e
	}
	if value.RealType != nil && value.RealType.String() != "string" {
		e.Type = value.RealType.String()
	}
	e.What = shown(value)
	nameRuntimeError(e)
	return e
}

// nameRuntimeError gives the runtime's own errors their type, which the runtime
// has replaced by their text.
func nameRuntimeError(e *evidence.Exception) {
	if strings.HasPrefix(e.What, "runtime error: ") || e.What == "assignment to entry in nil map" {
		e.Type = "runtime.Error"
	}
}

// shown is a panic's value as text: a scalar, or the first fields of a struct.
func shown(v *proc.Variable) string {
	if v.Value != nil {
		if v.Value.Kind() == constant.String {
			return constant.StringVal(v.Value)
		}
		return v.Value.ExactString()
	}
	var fields []string
	for i := range v.Children {
		if c := &v.Children[i]; c.Value != nil {
			fields = append(fields, c.Name+": "+c.Value.ExactString())
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// fatalError reads the last line that the runtime printed before it aborted,
// from the ring buffer that it keeps for debuggers (runtime/print.go,
// printBacklog).
func (r *reader) fatalError(thread proc.Thread) *evidence.Exception {
	ring, err := r.eval(thread, "runtime.printBacklog")
	if err != nil {
		return nil
	}
	index, err := r.eval(thread, "runtime.printBacklogIndex")
	if err != nil {
		return nil
	}
	n := len(ring.Children)
	var text []byte
	for i := range n {
		c := byte(uintOf(&ring.Children[(int(uintOf(index)%uint64(max(n, 1)))+i)%n]))
		if c != 0 {
			text = append(text, c)
		}
	}
	const mark = "fatal error: "
	at := strings.LastIndex(string(text), mark)
	if at < 0 {
		return nil
	}
	line, _, _ := strings.Cut(string(text[at+len(mark):]), "\n")
	return &evidence.Exception{Type: "fatal error", What: strings.ToValidUTF8(line, "\uFFFD"), Proof: evidence.FromCore}
}

// signal is the fault that the runtime turned into a panic; nil for none.
func (r *reader) signal(thread proc.Thread) *evidence.Signal {
	number, err := r.eval(thread, "runtime.curg.sig")
	if err != nil || uintOf(number) == 0 {
		return nil
	}
	sig := signalOf(uintOf(number))
	if code, err := r.eval(thread, "runtime.curg.sigcode0"); err == nil {
		sig.Code = int(int32(uintOf(code)))
	}
	if addr, err := r.eval(thread, "runtime.curg.sigcode1"); err == nil {
		sig.Addr, sig.HasAddr = evidence.Addr(uintOf(addr)), true
	}
	return sig
}

// signalOf names a signal by its number.
func signalOf(number uint64) *evidence.Signal {
	n := int(number & 0x7f)
	return &evidence.Signal{Number: n, Name: unix.SignalName(unix.Signal(n))}
}

// sentence describes the failure like failure.Describe does for threads.
func sentence(f *evidence.Failure, g *evidence.Goroutine) string {
	text := "panic"
	switch {
	case f.Kind == evidence.Deadlock:
		text = "deadlock"
	case f.Exception.Type == "fatal error":
		text = "fatal error of the Go runtime"
	}
	if f.Site != nil {
		text += " in " + f.Site.Function
	}
	if g != nil {
		text += fmt.Sprintf(", goroutine %d", g.ID)
	}
	what := f.Exception.What
	if t := f.Exception.Type; t != "" && t != "fatal error" && t != "runtime.Error" {
		text += ": " + t
	}
	if what == "" {
		return text
	}
	return text + ": " + what
}
