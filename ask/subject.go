package ask

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/expression"
	"diagnose/image/value"
	"diagnose/watchtrace"
)

// subject is an expression in its setting.
type subject struct {
	setting
	text string
	expr *expression.Expr
	// locals are the variables of the function that the expression uses.
	locals []debuginfo.Variable
}

// find parses an expression, in the innermost setting where all its names are known.
func find(p *image.Process, text string) (*subject, error) {
	settings := settingsOf(p, p.FailingThread())
	if len(settings) == 0 {
		return nil, &Error{Asked: text, Problem: "the program has no debug information, so its variables have no names: compile it with -g, install its debug symbols, or give ADDRESS:LENGTH"}
	}
	var first *Error
	for _, c := range settings {
		e, err := expression.Parse(text, c.place.IsType)
		if err != nil {
			return nil, &Error{Asked: text, Problem: err.Error()}
		}
		err = e.Check(c.place.Dry())
		var name *expression.NameError
		var types *expression.TypeError
		switch {
		case errors.As(err, &types), errors.As(err, &name) && name.Of != "":
			wrong := &Error{Asked: text, Problem: err.Error()}
			if name != nil {
				wrong.Nearest = watchtrace.Nearest(name.Name, name.Known)
			}
			return nil, wrong
		case errors.As(err, &name):
			if first == nil {
				first = &Error{Asked: text, Problem: err.Error(), Nearest: watchtrace.Nearest(name.Name, append(c.place.Names(), watchtrace.Globals(p)...))}
			}
			continue
		}
		s := &subject{setting: c, text: text, expr: e}
		if _, err := e.Eval(&noting{Scope: c.place.In(c.frame), subject: s}); err != nil {
			return s, s.noValue(p, err)
		}
		return s, nil
	}
	return nil, elsewhere(p, text, first)
}

// noting is a scope that notes which local variables an expression uses.
type noting struct {
	expression.Scope
	subject *subject
}

// Variable implements expression.Scope.
func (n *noting) Variable(name string) (value.Object, bool, error) {
	if v, local := n.subject.place.Local(name); local {
		n.subject.locals = append(n.subject.locals, v)
	}
	return n.Scope.Variable(name)
}

// noValue is the error for an expression that has no value where it was asked for.
func (s *subject) noValue(p *image.Process, err error) error {
	problem := fmt.Sprintf("it has no value %s: %s", s.where(), err.Error())
	var missing *value.UnavailableError
	if s.site != nil && errors.As(err, &missing) {
		problem += "; 'diagnose probe --at FILE:LINE --print' shows it at lines where the compiler kept it"
	}
	return errors.Join(&Error{Asked: s.text, Problem: problem}, err)
}

func (s *subject) where() string {
	if s.site == nil {
		return "there"
	}
	text := "in " + s.site.Function
	if s.site.Line != 0 {
		text += fmt.Sprintf(" at line %d", s.site.Line)
	}
	return text
}

// elsewhere says where a name is known that the thread's stack does not have.
func elsewhere(p *image.Process, text string, e *Error) error {
	if e == nil {
		return &Error{Asked: text, Problem: "the program's code has no debug information there"}
	}
	var threads []string
	for i := range p.Threads {
		t := &p.Threads[i]
		if t == p.FailingThread() || len(threads) == 4 {
			continue
		}
		for _, c := range settingsOf(p, t) {
			if c.site == nil {
				continue
			}
			x, err := expression.Parse(text, c.place.IsType)
			if err == nil && x.Check(c.place.Dry()) == nil {
				threads = append(threads, fmt.Sprintf("%s in thread %d", c.site.Function, t.Ref.Number))
				break
			}
		}
	}
	if len(threads) > 0 {
		e.Nearest = nil
		e.Problem += " in the calls of this thread; it is known in " + strings.Join(threads, ", ") + ": give a moment of that thread as --until"
	} else if len(e.Nearest) == 0 {
		e.Problem += " with static storage or in a call that is active there; a local variable of another function needs --until with a moment in a call of it, which 'diagnose ask --calls FUNCTION' prints"
	}
	return e
}

// isMemory reports whether an expression is one of watchtrace's for memory without a name.
func isMemory(text string) bool { return watchtrace.NamesMemory(text) }

// object evaluates the expression to the object that it names.
func (s *subject) object(p *image.Process) (value.Object, error) {
	o, err := s.expr.Eval(s.place.In(s.frame))
	if err != nil {
		return o, s.noValue(p, err)
	}
	if _, ok := o.Address(); ok {
		return o, nil
	}
	problem := "it is a value that was computed, and no memory that could be written"
	switch {
	case o.Bits() > 0:
		problem = "it is a bit field, which shares its bytes with others; ask about the structure, or give ADDRESS:LENGTH"
	case len(s.locals) > 0:
		problem = fmt.Sprintf("it is in registers, or in several pieces, %s, where writes are not seen; 'diagnose probe --at FILE:LINE --print' shows it at lines", s.where())
	}
	return o, &Error{Asked: s.text, Problem: problem}
}

// listed reports whether a local variable of the expression is somewhere else in other parts of its function.
func (s *subject) listed() bool {
	return slices.ContainsFunc(s.locals, func(v debuginfo.Variable) bool { return v.Listed })
}

// addressed is an expression as memory.
type addressed struct {
	*subject
	addr evidence.Addr
	size int
	typ  debuginfo.Type // nil: it is not known
}

// address finds the memory that an expression names.
func address(p *image.Process, text string) (*addressed, error) {
	if isMemory(text) {
		list, err := watchtrace.Resolve(p, text)
		var name *watchtrace.NameError
		switch {
		case errors.As(err, &name):
			return nil, &Error{Asked: text, Problem: name.Problem, Nearest: name.Nearest}
		case err != nil:
			return nil, err
		}
		return &addressed{addr: list[0].Addr, size: list[0].Size}, nil
	}
	s, err := find(p, text)
	if err != nil {
		return nil, err
	}
	o, err := s.object(p)
	if err != nil {
		return nil, err
	}
	x := &addressed{subject: s, typ: o.Type}
	x.addr, _ = o.Address()
	if o.Type != nil {
		x.size = int(min(o.Type.Size(), 1<<30))
	}
	if x.size <= 0 {
		return nil, &Error{Asked: text, Problem: fmt.Sprintf("its size is not known; it is at %v: give ADDRESS:LENGTH", x.addr)}
	}
	if m := p.MappingAt(x.addr); m == nil {
		return nil, &Error{Asked: text, Problem: fmt.Sprintf("it leads to %v, where no memory is", x.addr)}
	}
	return x, nil
}
