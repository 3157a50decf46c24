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
	fileSlots []slot
	// symbols are those of all slots, names what they stand for.
	symbols, names []string
	binary         *sandbox.Binary
	process        *sandbox.Process
	arguments      []sandbox.Argument
	missing        map[int]error // by slot
	fileScope      *expression.Place
	printed        int
	// over: the code has ended for good.
	over bool
}

// codeText is a block with the file that it is of.
type codeText struct {
	*blocks.Block
	source *blocks.Source
}

// slot is a name and the index of its symbol.
type slot struct {
	name string
	at   int
}

// variant is the function of a block for places where its names stand for things of the same types.
type variant struct {
	number, block int
	declared      *declare.Declarations
	slots         []slot
	// renamed are the names that have others in the C of this variant.
	renamed []string
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
	all := declare.Names{Taken: h.taken, Macros: h.macros, Aliases: map[string][]string{}}
	var parts strings.Builder
	for _, s := range c.sources {
		for _, part := range s.Parts {
			parts.WriteString(part.Text)
			parts.WriteByte('\n')
		}
		for _, b := range s.Blocks {
			all.Types = append(all.Types, blocks.Identifiers(b.Text)...)
			all.Tags = append(all.Tags, blocks.Tags(b.Text)...)
		}
	}
	all.Objects = blocks.Identifiers(parts.String())
	all.Types = append(all.Types, all.Objects...)
	all.Tags = append(all.Tags, blocks.Tags(parts.String())...)
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
	for i := range places {
		if places[i].Kind != KindCode {
			continue
		}
		if err := c.vary(p, i, &places[i], h); err != nil {
			return err
		}
	}
	c.name(blocks.Declared(parts.String()), h)
	for _, v := range c.variants {
		for _, name := range v.renamed {
			all.Aliases[name] = append(all.Aliases[name], v.alias(name))
		}
	}
	c.file, err = declare.New(&codeScope{place: place}, all, "f", nil) // with the aliases
	c.fileSlots = c.add(c.file.Slots, func(s *declare.Slot) string { return s.Symbol })
	for _, v := range c.variants {
		v.slots = c.add(v.declared.Slots, v.symbol)
	}
	return err
}

// name decides which names need another one in a variant. In C all declarations of a name that is not one of a function stand for
// one object of one type, and one that a header or the code itself declares outside of functions hides what it stands for at a place.
func (c *codeRun) name(declared map[string]bool, h *headers) {
	type known struct {
		text    string
		records bool
	}
	before := map[string]known{}
	for _, s := range c.file.Slots {
		declared[s.Name] = true
	}
	for _, v := range c.variants {
		for _, s := range v.declared.Slots {
			old, has := before[s.Name]
			here := known{s.Text, v.declared.HasRecords()}
			switch {
			case declared[s.Name] || h.taken[s.Name], has && (old != here || here.records):
				v.renamed = append(v.renamed, s.Name)
			case !has:
				before[s.Name] = here
			}
		}
	}
}

// add adds the slots of declarations. Slots with one symbol are one.
func (c *codeRun) add(slots []declare.Slot, symbol func(*declare.Slot) string) []slot {
	var list []slot
	for i := range slots {
		name := symbol(&slots[i])
		at := slices.Index(c.symbols, name)
		if at < 0 {
			at = len(c.symbols)
			c.symbols = append(c.symbols, name)
			c.names = append(c.names, slots[i].Name)
		}
		list = append(list, slot{slots[i].Name, at})
	}
	return list
}

// outside is a place seen from outside of its function.
func (c *codeRun) outside(p *image.Process, x *Place) (*expression.Place, error) {
	place, err := expression.NewPlaceIn(p, x.PC, x.PC, x.level)
	if err == nil {
		place.Outside()
	}
	return place, err
}

// vary finds or makes the function of a block for a place.
func (c *codeRun) vary(p *image.Process, index int, x *Place, h *headers) error {
	place, err := expression.NewPlaceIn(p, x.PC, x.PC, x.level)
	if err != nil {
		return err
	}
	text := c.texts[x.Code].Text
	words := blocks.Identifiers(text)
	scope := &codeScope{place: place}
	d, err := declare.New(scope, declare.Names{Objects: words, Types: words, Tags: blocks.Tags(text), Taken: h.taken, Macros: h.macros}, "b", c.file)
	if err == nil {
		err = scope.err
	}
	if err != nil {
		return err
	}
	for _, v := range c.variants {
		if v.block == x.Code && v.declared.Text() == d.Text() {
			c.byPlace[index] = v
			return nil
		}
	}
	v := &variant{number: len(c.variants), block: x.Code, declared: d}
	c.variants = append(c.variants, v)
	c.byPlace[index] = v
	return nil
}

// alias is the name that a name has in the variant.
func (v *variant) alias(name string) string { return fmt.Sprintf("_dg_n%d_%s", v.number, name) }

func (v *variant) symbol(s *declare.Slot) string {
	if slices.Contains(v.renamed, s.Name) {
		return declare.SymbolOf(v.alias(s.Name))
	}
	return s.Symbol
}

// function writes the function of the variant.
func (v *variant) function(t codeText) string {
	var b strings.Builder
	text := v.declared.Text()
	for i := range v.declared.Slots {
		s := &v.declared.Slots[i]
		text = strings.ReplaceAll(text, `"`+s.Symbol+`"`, `"`+v.symbol(s)+`"`)
	}
	for _, name := range v.renamed {
		fmt.Fprintf(&b, "#define %s %s\n", name, v.alias(name))
	}
	fmt.Fprintf(&b, "static void _dg_block_%d(void) {\n#line 1 \"declarations\"\n%s{\n#line %d %s\n%s\n;}\n}\n", v.number, text, t.Line, quotedName(t.source.Name), t.Text)
	for _, name := range v.renamed {
		fmt.Fprintf(&b, "#undef %s\n", name)
	}
	return b.String()
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
		b.WriteString(v.function(c.texts[v.block]))
	}
	var err error
	c.binary, err = compiler.Compile(ctx, b.String(), len(c.variants), c.symbols)
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
	program := &hitProgram{ctx: r.ctx, r: r, x: x}
	output, failure, err := c.process.Run(v.number, c.arguments, program)
	if err := errors.Join(err, program.close()); err != nil {
		return err
	}
	row := Row{Moment: x.stopped.Moment, Place: index, Printed: string(output)}
	if failure == nil {
		code.Runs++
	} else {
		row.Failure = c.describe(failure)
		if row.Failure.Name == "" && failure.Kind == sandbox.Called {
			row.Failure.Name = r.process.Symbolize(failure.Address, image.AtInstruction)[0].Site.Function
		}
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
		c.arguments = make([]sandbox.Argument, len(c.symbols))
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
		for i := range c.symbols {
			c.missing[i] = err
		}
		return nil
	}
	if len(c.fileSlots) > 0 {
		if c.fileScope == nil {
			var err error
			if c.fileScope, err = c.outside(r.process, &r.log.Places[c.filePlace]); err != nil {
				return err
			}
		}
		c.fill(c.fileSlots, c.fileScope.In(frame))
	}
	c.fill(v.slots, a.place.In(frame))
	return nil
}

// fill finds what slots stand for in a scope.
func (c *codeRun) fill(slots []slot, scope expression.Scope) {
	for _, s := range slots {
		o, found, err := scope.Variable(s.name)
		if err == nil && !found {
			err = &value.UnavailableError{Reason: "not found"}
		}
		to := &c.arguments[s.at]
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
		c.missing[s.at] = err
	}
}

// describe names what a failure is about.
func (c *codeRun) describe(f *sandbox.Failure) *CodeFailure {
	d := &CodeFailure{Failure: *f}
	if f.Slot >= 0 && f.Slot < len(c.names) {
		d.Name = c.names[f.Slot]
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
func (s *codeScope) Variable(name string) (t debuginfo.Type, local, ok bool) {
	m := s.meaning(name)
	return m.Variable, m.Local, m.Variable != nil
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
		if err := f.compareCopy(s); err != nil {
			return err
		}
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
