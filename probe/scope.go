package probe

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/expression"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/replay"
	"diagnose/watchtrace"
)

// shown are the bounds of a printed value.
var shown = value.Options{Depth: 3, Elements: 8, StringBytes: replay.RuleTextBytes, Values: 64, TextBytes: 160, Shallow: true}

// asked are the expressions of a question, parsed for one place.
type asked struct {
	place *expression.Place
	print []printed
	// condition is nil if there is none.
	condition *expression.Expr
	// result is the type of what the function returns, for a return.
	result debuginfo.Type
	// err is why the question cannot be asked here.
	err error
	// columns say how the values of a rule are printed.
	columns []column
}

type printed struct {
	name string
	expr *expression.Expr
	err  error
}

// ask parses the expressions for a place.
func (q *Question) ask(p *image.Process, x *Place, pc evidence.Addr) *asked {
	a := &asked{}
	inside := x.inside
	if inside == 0 {
		inside = pc
	}
	if a.place, a.err = expression.NewPlaceIn(p, pc, inside, x.level); a.err != nil {
		return a
	}
	names := q.Print
	switch x.Kind {
	case KindCode:
		return a
	case KindCall:
		if !x.Inlined {
			if a.err = a.place.AtEntry(); a.err != nil {
				return a
			}
		}
		if len(names) == 0 {
			names = a.place.Parameters()
		}
	case KindReturn:
		if a.result, a.err = a.place.Result(); a.err != nil {
			return a
		}
		a.place.Outside()
		if len(names) == 0 && a.result != nil {
			names = []string{Result}
		}
	}
	for _, name := range names {
		e, err := a.parse(name)
		if err != nil && a.err == nil {
			a.err = err
		}
		a.print = append(a.print, printed{name, e, err})
	}
	if q.If != "" {
		var err error
		if a.condition, err = a.parse(q.If); err != nil {
			a.err = err
		}
	}
	return a
}

// parse parses an expression, and checks it as far as that needs no values.
func (a *asked) parse(text string) (*expression.Expr, error) {
	e, err := expression.Parse(text, a.place.IsType)
	if err != nil {
		return nil, &Error{Asked: text, Problem: err.Error()}
	}
	err = e.Check(&resultScope{Scope: a.place.Dry(), result: value.ObjectAt(nil, 0, a.result), has: a.result != nil})
	var name *expression.NameError
	var types *expression.TypeError
	switch {
	case errors.As(err, &name):
		return nil, &Error{Asked: text, Problem: err.Error(), Nearest: near(name, a.place)}
	case errors.As(err, &types):
		return nil, &Error{Asked: text, Problem: err.Error()}
	}
	return e, nil
}

// resultScope adds what a function returns.
type resultScope struct {
	expression.Scope
	result value.Object
	err    error
	has    bool
}

// Variable implements expression.Scope.
func (s *resultScope) Variable(name string) (value.Object, bool, error) {
	if name == Result && s.has {
		return s.result, true, s.err
	}
	return s.Scope.Variable(name)
}

// returned is what a function returns (System V ABI for x86-64, 3.2.3). The thread is right after
// the call.
func returned(m image.Memory, regs *image.Registers, t debuginfo.Type) (value.Object, error) {
	const largest = 16 // bytes that registers return
	rax, known := regs.Get(image.RAX)
	if !known {
		return value.Object{}, &value.UnavailableError{Reason: "rax is not known"}
	}
	switch {
	case debuginfo.InGeneralRegister(t):
		data := make([]byte, 8)
		for i := range data {
			data[i] = byte(rax >> (8 * i))
		}
		return value.ObjectFrom(m, data[:t.Size()], t), nil
	case t.Kind() == debuginfo.KindFloat && t.Size() <= 8 && regs.Vector != nil:
		return value.ObjectFrom(m, regs.Vector[0][:t.Size()], t), nil
	case (t.Kind() == debuginfo.KindStruct || t.Kind() == debuginfo.KindUnion) && t.Size() > largest:
		return value.ObjectAt(m, evidence.Addr(rax), t), nil
	}
	return value.Object{}, &value.UnavailableError{Reason: "not computed", Details: fmt.Sprintf("how %s of %d bytes is returned", t.Name(), t.Size())}
}

// memory is the replayed process's, without the code that the tool has put into its text.
type memory struct {
	*image.Process
	stopped *replay.Stopped
}

// ReadMemory implements image.Memory.
func (m *memory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if n, err := m.stopped.ReadMemory(addr, p); err == nil {
		return n, nil
	}
	return m.Process.ReadMemory(addr, p) // as much as there is, and why there is no more
}

// frameAt is the frame of a thread's next instruction. Its callers, which give arguments that the frame has lost, are found when asked for.
func (r *run) frameAt(m *memory) *value.Frame {
	pc := r.thread.Registers.PC()
	rule, known := r.frames[pc]
	if !known {
		rule.base, rule.offset, rule.known = r.unwinder.FrameAddress(pc)
		r.frames[pc] = rule
	}
	base, has := r.thread.Registers.Get(rule.base)
	module := m.ModuleAt(pc)
	if !rule.known || !has || module == nil {
		return r.frameOf(m, 0)
	}
	return &value.Frame{Process: m.Process, Thread: &r.thread, Module: module, Registers: r.thread.Registers, CFA: evidence.Addr(base + uint64(rule.offset)),
		Lookup: image.AtInstruction, Memory: m, Caller: func() *value.Frame { return r.frameOf(m, 1) }}
}

// frameRule says where the canonical frame address of the innermost frame at an instruction is: at an offset of a register.
type frameRule struct {
	base   image.Register
	offset int64
	known  bool
}

// frameOf is the frame of a call of the thread; 0 is the innermost one, 1 its caller.
func (r *run) frameOf(m *memory, number int) *value.Frame {
	const frames = 4
	var first, inner *value.Frame
	r.unwinder.Visit(m, &r.thread.Registers, frames, func(f *unwind.Frame) bool {
		module := m.ModuleAt(f.PC())
		if module == nil {
			return false
		}
		if number--; number >= 0 {
			return true
		}
		frame := &value.Frame{Process: m.Process, Thread: &r.thread, Module: module, Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup, Memory: m}
		if inner == nil {
			first = frame
		} else {
			inner.CalledBy(frame)
		}
		inner = frame
		return true
	})
	return first
}

// evaluate evaluates the printed expressions.
func (a *asked) evaluate(s expression.Scope) []evidence.Variable {
	list := make([]evidence.Variable, 0, len(a.print))
	for _, x := range a.print {
		v := evidence.Variable{Name: x.name}
		if x.err != nil {
			v.Value = evidence.NoValue(bare(x.err))
		} else if o, err := x.expr.Eval(s); err != nil {
			v.Value = value.Missing(err)
		} else {
			if o.Type != nil {
				v.Type = o.Type.Name()
			}
			if at, ok := o.Address(); ok {
				v.Location = at.String()
			}
			v.Value = o.Format(shown)
		}
		list = append(list, v)
	}
	return list
}

func bare(err error) string {
	var own *Error
	if errors.As(err, &own) {
		return own.Problem
	}
	return err.Error()
}

// near returns the names that may have been meant.
func near(e *expression.NameError, p *expression.Place) []string {
	if e.Of != "" {
		return watchtrace.Nearest(e.Name, e.Known)
	}
	return watchtrace.Nearest(e.Name, p.Names())
}
