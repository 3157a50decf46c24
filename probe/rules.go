package probe

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/formula"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/replay"
)

// column is a printed expression of which a rule logs the value.
type column struct {
	name string
	// missing is why there is never a value here; if it is set, nothing is logged.
	missing *evidence.Value
	typ     debuginfo.Type
	// located: the first value that is logged is the object itself with its address.
	located bool
	// text: the last value that is logged is a pointer with its characters.
	text bool
}

// rules returns rules for the places whose arrivals code in the process can handle.
func (q *Question) rules(p *image.Process, places []Place) map[evidence.Addr]*replay.Rule {
	if q.Stops || q.Stack || len(q.Returns) > 0 {
		return nil
	}
	rules, at := map[evidence.Addr]*replay.Rule{}, map[evidence.Addr]int{}
	for i := range places {
		at[places[i].PC]++
	}
	u := unwind.New(p)
	for i := range places {
		x := &places[i]
		if x.Kind != KindLine && x.Kind != KindCall || at[x.PC] > 1 {
			continue
		}
		if r := q.ask(p, x, x.PC).rule(u, x); r != nil {
			rules[x.PC] = r
		}
	}
	return rules
}

// rule returns the rule for a place, and sets the columns; nil: the expressions are not simple enough.
func (a *asked) rule(u *unwind.Unwinder, x *Place) *replay.Rule {
	if a.place == nil || a.err != nil {
		return nil
	}
	var frame *formula.Node
	if base, offset, known := u.FrameAddress(x.PC); known {
		frame = formula.Plus(&formula.Node{Kind: formula.Register, Value: uint64(base)}, offset)
	}
	r := &replay.Rule{Numbered: x.Kind == KindCall}
	if a.condition != nil {
		var ok bool
		if r.Condition, ok = a.condition.FixTruth(a.place, frame); !ok {
			return nil
		}
	}
	a.columns = nil
	for i := range a.print {
		c, values, ok := a.column(&a.print[i], frame)
		if !ok {
			return nil
		}
		a.columns = append(a.columns, c)
		r.Values = append(r.Values, values...)
	}
	if len(r.Values) > replay.MostRuleValues {
		return nil
	}
	return r
}

// column returns how an expression is printed, and the values that a rule logs for it.
func (a *asked) column(x *printed, frame *formula.Node) (c column, values []replay.RuleValue, ok bool) {
	c.name = x.name
	if x.err != nil {
		missing := evidence.NoValue(bare(x.err))
		c.missing = &missing
		return c, nil, true
	}
	if c.missing = a.neverThere(x); c.missing != nil {
		return c, nil, true
	}
	f, ok := x.expr.Fix(a.place, frame)
	if !ok {
		return c, nil, false
	}
	c.typ, c.located = f.Type, f.Address != nil
	c.text = value.PointsToText(f.Type) && !f.Type.Reference() && f.Type.Size() == 8
	size := int(f.Type.Size())
	if !c.text && !value.FormatsAlone(f.Type) || size > replay.MostRuleBytes || !c.located && size > 8 {
		return c, nil, false
	}
	number := f.Value
	if c.located {
		values = append(values, replay.RuleValue{Address: f.Address, Size: size})
		number = &formula.Node{Kind: formula.Load, Size: 8, A: f.Address}
	}
	if !c.located || c.text {
		values = append(values, replay.RuleValue{Number: number, Text: c.text})
	}
	return c, values, true
}

// neverThere says why a variable alone has no value at the place, whatever the thread does; nil: it may have one.
func (a *asked) neverThere(x *printed) *evidence.Value {
	v, local := a.place.Local(x.name)
	if !local || len(v.Location) > 0 || v.Const != nil || v.Type == nil {
		return nil
	}
	_, err := value.Lives(&value.Frame{}, v)
	if err == nil {
		return nil
	}
	missing := value.Missing(err)
	return &missing
}

// loggedMemory is the memory that an entry has. Its addresses are named as in the process.
type loggedMemory struct {
	*image.Process
	values []replay.Logged
}

// ReadMemory implements image.Memory.
func (m loggedMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for _, v := range m.values {
		if addr >= v.Address && uint64(addr-v.Address) < uint64(len(v.Data)) {
			if n := copy(p, v.Data[addr-v.Address:]); n == len(p) {
				return n, nil
			}
		}
	}
	return 0, &image.MemoryError{Addr: addr}
}

// variable makes the printed value of a column from the first of the logged values, and returns the others.
func (c *column) variable(p *image.Process, list []replay.Logged) (evidence.Variable, []replay.Logged) {
	v := evidence.Variable{Name: c.name}
	if c.missing != nil {
		v.Value = *c.missing
		return v, list
	}
	n := 1
	if c.located && c.text {
		n = 2
	}
	memory := loggedMemory{p, list[:n]}
	first := &list[0]
	var o value.Object
	if c.located {
		o = value.ObjectAt(memory, first.Address, c.typ)
		v.Location = first.Address.String()
	} else {
		data := make([]byte, 0, 8)
		for i := range c.typ.Size() {
			data = append(data, byte(uint64(first.Address)>>(8*i)))
		}
		o = value.ObjectFrom(memory, data, c.typ)
	}
	v.Type, v.Value = c.typ.Name(), o.Format(shown)
	return v, list[n:]
}

// logged adds the row of an arrival that a rule has handled.
func (r *run) logged(s *replay.Stopped, e *replay.Entry) error {
	if !r.asksOf(e.Thread) || !r.log.holds(r.q) {
		return nil
	}
	if err := r.observe(s); err != nil {
		return err
	}
	place := r.at[e.PC][0]
	x := &r.log.Places[place]
	a := r.ask(place, e.PC)
	if a.columns == nil && a.rule(r.unwinder, x) == nil {
		return errNoScope
	}
	row := Row{Moment: evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal, PC: e.PC, Count: e.Count}, Position: e.Position, Place: place,
		Values: make([]evidence.Variable, 0, len(a.columns))}
	if x.Kind == KindCall {
		row.Call = e.Number
	}
	list := e.Values
	for i := range a.columns {
		var v evidence.Variable
		v, list = a.columns[i].variable(r.process, list)
		row.Values = append(row.Values, v)
	}
	return r.add(row)
}

// counted counts arrivals that a rule has handled.
func (r *run) counted(pc evidence.Addr, thread uint32, arrivals uint64) {
	if r.asksOf(thread) {
		r.log.Arrivals += arrivals
		r.log.Places[r.at[pc][0]].Hits += arrivals
	}
}

// room is the number of rows until the replay may end.
func (r *run) room() uint64 {
	if r.q.Most == 0 || r.q.Verify {
		return ^uint64(0)
	}
	return uint64(max(r.q.Most-len(r.log.Rows), 1))
}
