package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/expression"
	"diagnose/image/value"
	"diagnose/probe/blocks"
	"diagnose/probe/declare"
	"diagnose/probe/sandbox"
	"diagnose/replay"
)

// Code is a block of debug code, and what became of it.
type Code struct {
	// File and Line are where it was read from; At is FILE:LINE of the program's source before which it ran.
	File string
	Line int
	At   string
	// Runs counts how often it ran to its end, Failed how often it did not, and Left how often it was not run because the code had
	// ended for good.
	Runs, Failed, Left uint64
	// First is the first failure; nil: there is none.
	First *CodeFailure
}

// CodeFailure says why a block did not run to its end.
type CodeFailure struct {
	sandbox.Failure
	// Name is the variable that has no value, or the function that was called; empty if that is not known.
	Name string
	// Why the variable has no value.
	Why evidence.Value
}

// mostPrinted bounds what all of the code prints, in bytes.
const mostPrinted = 256 << 20

// alwaysIncluded are the headers that debug code need not include.
var alwaysIncluded = []string{"<stdio.h>", "<stdlib.h>", "<string.h>"}

// codeRun is the debug code of a question.
type codeRun struct {
	sources []*blocks.Source
	limits  sandbox.Limits
	// texts are the blocks; variants are their functions, by the places that they are for.
	texts    []codeText
	variants []*variant
	byPlace  map[int]*variant
	// file has the declarations for the code outside of blocks. It is read as from the place filePlace.
	file      *declare.Declarations
	filePlace int
	slots     []declare.Slot
	binary    *sandbox.Binary
	process   *sandbox.Process
	arguments []sandbox.Argument
	missing   map[int]error // by slot
	fileScope *expression.Place
	printed   int
	// over: the code has ended for good.
	over bool
}

// codeText is a block with the file that it is of.
type codeText struct {
	*blocks.Block
	source *blocks.Source
}

// variant is the function of a block for places where its names stand for things of the same types.
type variant struct {
	number, block int
	declarations  string
	slots         []declare.Slot
	first         int // slot
}

func newCodeRun(q *Question) *codeRun {
	c := &codeRun{sources: q.Code, limits: q.CodeLimits, byPlace: map[int]*variant{}, missing: map[int]error{}}
	for _, s := range q.Code {
		for i := range s.Blocks {
			c.texts = append(c.texts, codeText{&s.Blocks[i], s})
		}
	}
	return c
}

// listed are the blocks for the log.
func (c *codeRun) listed() []Code {
	var list []Code
	for _, t := range c.texts {
		list = append(list, Code{File: t.source.Name, Line: t.Line, At: t.At})
	}
	return list
}

// headers are the names that the included headers declare.
type headers struct {
	includes      string
	taken, macros map[string]bool
}

func (c *codeRun) headers(ctx context.Context, compiler *sandbox.Compiler) (*headers, error) {
	list := slices.Clone(alwaysIncluded)
	for _, s := range c.sources {
		list = append(list, s.Includes...)
	}
	h := &headers{includes: "#line 1 \"includes\"\n"}
	for _, name := range list {
		h.includes += "#include " + name + "\n"
	}
	text, macros, err := compiler.Headers(ctx, h.includes)
	if err != nil {
		return nil, err
	}
	h.taken, h.macros = blocks.Declared(text), blocks.Macros(macros)
	return h, nil
}

// declare finds what the code's names stand for at its places in the process at the recording's end.
func (c *codeRun) declare(p *image.Process, places []Place, h *headers) error {
	all := declare.Names{Taken: h.taken, Macros: h.macros}
	for _, s := range c.sources {
		for _, part := range s.Parts {
			all.Objects = append(all.Objects, blocks.Identifiers(part.Text)...)
			all.Tags = append(all.Tags, blocks.Tags(part.Text)...)
		}
		for _, b := range s.Blocks {
			all.Types = append(all.Types, blocks.Identifiers(b.Text)...)
			all.Tags = append(all.Tags, blocks.Tags(b.Text)...)
		}
	}
	all.Types = append(all.Types, all.Objects...)
	c.filePlace = slices.IndexFunc(places, func(x Place) bool { return x.Kind == KindCode })
	if c.filePlace < 0 {
		return nil
	}
	place, err := c.outside(p, &places[c.filePlace])
	if err != nil {
		return err
	}
	if c.file, err = declare.New(&codeScope{place: place}, all, "f", nil); err != nil {
		return err
	}
	c.slots = slices.Clone(c.file.Slots)
	for i := range places {
		if places[i].Kind != KindCode {
			continue
		}
		if err := c.vary(p, i, &places[i], h); err != nil {
			return err
		}
	}
	return nil
}

// outside is a place seen from outside of its function.
func (c *codeRun) outside(p *image.Process, x *Place) (*expression.Place, error) {
	place, err := expression.NewPlaceIn(p, x.PC, x.PC, x.level)
	if err == nil {
		place.Outside()
	}
	return place, err
}

// ownSymbols is replaced by what distinguishes the symbols of a variant.
const ownSymbols = "VARIANT"

// vary finds or makes the function of a block for a place.
func (c *codeRun) vary(p *image.Process, index int, x *Place, h *headers) error {
	place, err := expression.NewPlaceIn(p, x.PC, x.PC, x.level)
	if err != nil {
		return err
	}
	text := c.texts[x.Code].Text
	words := blocks.Identifiers(text)
	scope := &codeScope{place: place}
	d, err := declare.New(scope, declare.Names{Objects: words, Types: words, Tags: blocks.Tags(text), Taken: h.taken, Macros: h.macros}, ownSymbols, c.file)
	if err == nil {
		err = scope.err
	}
	if err != nil {
		return err
	}
	for _, v := range c.variants {
		if v.block == x.Code && v.declarations == d.Text() {
			c.byPlace[index] = v
			return nil
		}
	}
	v := &variant{number: len(c.variants), block: x.Code, declarations: d.Text(), slots: d.Slots, first: len(c.slots)}
	for _, s := range d.Slots {
		s.Symbol = v.own(s.Symbol)
		c.slots = append(c.slots, s)
	}
	c.variants = append(c.variants, v)
	c.byPlace[index] = v
	return nil
}

// own makes the symbols of declarations those of the variant. The declarations have identifiers only, of which the program's begin
// otherwise.
func (v *variant) own(text string) string {
	return strings.ReplaceAll(text, "_dg_s"+ownSymbols+"_", fmt.Sprintf("_dg_s%d_", v.number))
}

// compile compiles the code.
func (c *codeRun) compile(ctx context.Context, compiler *sandbox.Compiler, h *headers) error {
	if c.file == nil {
		return nil
	}
	var b strings.Builder
	b.WriteString(h.includes + "#line 1 \"declarations\"\n" + c.file.Text())
	for _, s := range c.sources {
		for _, part := range s.Parts {
			fmt.Fprintf(&b, "#line %d %s\n%s\n", part.Line, quotedName(s.Name), part.Text)
		}
	}
	for _, v := range c.variants {
		t := c.texts[v.block]
		fmt.Fprintf(&b, "static void _dg_block_%d(void) {\n#line 1 \"declarations\"\n%s{\n#line %d %s\n%s\n;}\n}\n", v.number, v.own(v.declarations), t.Line, quotedName(t.source.Name), t.Text)
	}
	var symbols []string
	for _, s := range c.slots {
		symbols = append(symbols, s.Symbol)
	}
	var err error
	c.binary, err = compiler.Compile(ctx, b.String(), len(c.variants), symbols)
	return err
}

// quotedName is a file's name as a string of C.
func quotedName(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// end ends the process of a replay.
func (c *codeRun) end() {
	if c.process != nil {
		c.process.Close()
		c.process = nil
	}
	c.fileScope, c.printed, c.over = nil, 0, false
}

func (c *codeRun) close() {
	c.end()
	if c.binary != nil {
		c.binary.Close()
	}
}

// runCode runs the block of a place at a stop of a thread. The frame is nil if it is not known.
func (r *run) runCode(x *stop, index int, a *asked, frame *value.Frame) error {
	c, l := r.code, r.log
	l.Arrivals++
	l.Places[index].Hits++
	v := c.byPlace[index]
	code := &l.Code[v.block]
	if c.over {
		code.Left++
		return nil
	}
	if c.process == nil {
		process, err := c.binary.Start(x.stopped.PID(), c.limits)
		if err != nil {
			return err
		}
		c.process = process
	}
	if err := r.setArguments(v, index, a, frame); err != nil {
		return err
	}
	output, failure, err := c.process.Run(v.number, c.arguments, func(addr evidence.Addr, p []byte) error {
		_, err := x.stopped.ReadMemory(addr, p)
		return err
	})
	if err != nil {
		return err
	}
	row := Row{Moment: x.stopped.Moment, Place: index, Printed: string(output)}
	if failure == nil {
		code.Runs++
	} else {
		row.Failure = c.describe(failure)
		c.over = failure.Over
		code.Failed++
		if code.First == nil {
			code.First = row.Failure
		}
	}
	return r.addCode(x, &row)
}

// addCode adds a row for what a block printed, or for its failure.
func (r *run) addCode(x *stop, row *Row) error {
	l, c := r.log, r.code
	if row.Printed == "" && row.Failure == nil {
		return nil
	}
	c.printed += len(row.Printed)
	if c.printed > mostPrinted {
		l.Cut = true
		return replay.ErrEnough
	}
	if r.q.Most > 0 && len(l.Rows) >= r.q.Most {
		return nil
	}
	var err error
	if row.Position, err = x.stopped.Position(); err != nil {
		return err
	}
	if r.q.Stack {
		row.Stack = r.stack(x)
	}
	l.Rows = append(l.Rows, *row)
	r.rows.Store(int64(len(l.Rows)))
	if r.q.Most > 0 && len(l.Rows) == r.q.Most && !r.q.Verify {
		l.Cut = true
		return replay.ErrEnough
	}
	return nil
}

// setArguments finds the variables and functions that a variant names.
func (r *run) setArguments(v *variant, index int, a *asked, frame *value.Frame) error {
	c := r.code
	if c.arguments == nil {
		c.arguments = make([]sandbox.Argument, len(c.slots))
	}
	clear(c.missing)
	for i := range c.arguments {
		c.arguments[i] = sandbox.Argument{Missing: true}
	}
	if a.place == nil || frame == nil {
		err := a.err
		if err == nil {
			err = errNoScope
		}
		for i := range c.slots {
			c.missing[i] = err
		}
		return nil
	}
	if len(c.file.Slots) > 0 {
		if c.fileScope == nil {
			var err error
			if c.fileScope, err = c.outside(r.process, &r.log.Places[c.filePlace]); err != nil {
				return err
			}
		}
		c.fill(0, c.file.Slots, c.fileScope.In(frame))
	}
	c.fill(v.first, v.slots, a.place.In(frame))
	return nil
}

// fill finds what slots stand for in a scope.
func (c *codeRun) fill(first int, slots []declare.Slot, scope expression.Scope) {
	for i := range slots {
		o, found, err := scope.Variable(slots[i].Name)
		if err == nil && !found {
			err = &value.UnavailableError{Reason: "not found"}
		}
		to := &c.arguments[first+i]
		if err == nil {
			if addr, in := o.Address(); in {
				*to = sandbox.Argument{Addr: addr}
				continue
			}
			if to.Bytes, err = o.Bytes(); err == nil {
				to.Missing = false
				continue
			}
		}
		c.missing[first+i] = err
	}
}

// describe names what a failure is about.
func (c *codeRun) describe(f *sandbox.Failure) *CodeFailure {
	d := &CodeFailure{Failure: *f}
	if f.Slot >= 0 && f.Slot < len(c.slots) {
		d.Name = c.slots[f.Slot].Name
		if err := c.missing[f.Slot]; err != nil && f.Kind == sandbox.Missing {
			d.Why = value.Missing(err)
		}
	}
	return d
}

// codeScope is a place as declarations see it.
type codeScope struct {
	place *expression.Place
	err   error
}

func (s *codeScope) meaning(name string) expression.Meaning {
	m, ok, err := s.place.Meaning(name)
	if err != nil && s.err == nil {
		s.err = err
	}
	if !ok {
		return expression.Meaning{}
	}
	return m
}

// Variable implements declare.Scope.
func (s *codeScope) Variable(name string) (debuginfo.Type, bool) {
	m := s.meaning(name)
	return m.Variable, m.Variable != nil
}

// Constant implements declare.Scope.
func (s *codeScope) Constant(name string) (int64, bool) {
	if m := s.meaning(name); m.Constant != nil {
		return *m.Constant, true
	}
	return 0, false
}

// Function implements declare.Scope.
func (s *codeScope) Function(name string) (p debuginfo.Prototype, ok bool) {
	m := s.meaning(name)
	if m.Function == nil {
		return p, false
	}
	var err error
	if p.Result, p.Parameters, err = m.Function.Signature(); err != nil {
		if s.err == nil {
			s.err = err
		}
		return p, false
	}
	return p, true
}

// Type implements declare.Scope.
func (s *codeScope) Type(name string) (debuginfo.Type, bool) { return s.place.Type(name) }

// findCode finds the places of the blocks.
func (q *Question) findCode(f *finder) error {
	n := 0
	for _, s := range q.Code {
		for i := range s.Blocks {
			b := &s.Blocks[i]
			if err := f.statement(b.At, n); err != nil {
				var wrong *Error
				if errors.As(err, &wrong) {
					return &Error{Asked: fmt.Sprintf("%s:%d: %s", s.Name, b.Line, wrong.Asked), Problem: wrong.Problem, Nearest: wrong.Nearest}
				}
				return err
			}
			n++
		}
	}
	return nil
}
