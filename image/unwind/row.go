package unwind

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"diagnose/evidence"
	"diagnose/image"
)

// ruleKind says how a register of the caller is found (DWARF 5 section 6.4.1).
type ruleKind uint8

const (
	ruleUndefined     ruleKind = iota
	ruleSame                   // the frame's own value
	ruleOffset                 // in memory at CFA + offset
	ruleValOffset              // CFA + offset
	ruleRegister               // in another register, plus offset
	ruleExpression             // in memory at the expression's value
	ruleValExpression          // the expression's value
)

// rule is one cell of a row of the call frame table.
type rule struct {
	of     image.Register // the caller's register
	kind   ruleKind
	reg    image.Register
	offset int64
	expr   []byte
}

// row is the row of the call frame table for one pc: how to find the CFA and
// the caller's registers. Registers without a rule follow the ABI: the stack
// pointer is the CFA, registers that a callee must preserve keep their values,
// and the others are not known.
type row struct {
	cfa       rule
	rules     []rule
	ra        image.Register // the return address column
	signal    bool
	outermost bool
	// bias is added to the addresses in expressions.
	bias uint64
}

// callerSaved are the registers that a callee may change (System V ABI for
// x86-64, figure 3.4).
var callerSaved = [...]image.Register{image.RAX, image.RDX, image.RCX, image.RSI, image.RDI,
	image.R8, image.R9, image.R10, image.R11, image.RIP}

// returnRow is the row of code that has pushed nothing since it was called:
// the return address is at the stack pointer plus depth - 8.
func returnRow(depth int64) row {
	return row{
		cfa:   rule{kind: ruleRegister, reg: image.RSP, offset: depth},
		rules: []rule{{of: image.RIP, kind: ruleOffset, offset: -8}},
		ra:    image.RIP,
	}
}

// compileRow turns the state of delve's interpreter into a row.
func compileRow(ctx *frame.FrameContext, f *fde) (row, error) {
	r := row{signal: f.cie.signal, ra: image.Register(f.cie.ra)}
	switch ctx.CFA.Rule {
	case frame.RuleCFA:
		r.cfa = rule{kind: ruleRegister, reg: image.Register(ctx.CFA.Reg), offset: ctx.CFA.Offset}
	case frame.RuleExpression:
		r.cfa = rule{kind: ruleValExpression, expr: shortened(ctx.CFA.Expression)}
	default:
		return row{}, errors.New("no rule for the canonical frame address")
	}
	hasReturn := false
	// The registers in order, so that equal tables give equal rows.
	for n := range uint64(columns) {
		d, ok := ctx.Regs[n]
		if !ok {
			continue
		}
		c, err := compileRule(image.Register(n), d)
		if err != nil {
			return row{}, err
		}
		if c.of == r.ra {
			hasReturn = true
			r.outermost = c.kind == ruleUndefined
		}
		r.rules = append(r.rules, c)
	}
	if !hasReturn {
		return row{}, fmt.Errorf("no rule for the return address in %v", r.ra)
	}
	return r, nil
}

func compileRule(of image.Register, d frame.DWRule) (rule, error) {
	c := rule{of: of, offset: d.Offset, expr: shortened(d.Expression)}
	switch d.Rule {
	case frame.RuleUndefined:
		c.kind = ruleUndefined
	case frame.RuleSameVal:
		c.kind = ruleSame
	case frame.RuleOffset:
		c.kind = ruleOffset
	case frame.RuleValOffset:
		c.kind = ruleValOffset
	case frame.RuleRegister:
		c.kind, c.reg = ruleRegister, image.Register(d.Reg)
		if d.Reg >= columns {
			c.kind = ruleUndefined // in a register that is not followed
		}
	case frame.RuleExpression:
		c.kind = ruleExpression
	case frame.RuleValExpression:
		c.kind = ruleValExpression
	default:
		return rule{}, fmt.Errorf("rule %d for %v is not known", d.Rule, of)
	}
	return c, nil
}

// cfaOf evaluates the rule of the canonical frame address.
func (r *row) cfaOf(regs *image.Registers, stack *stackReader) (evidence.Addr, error) {
	if r.cfa.kind == ruleRegister {
		v, ok := regs.Get(r.cfa.reg)
		if !ok {
			return 0, fmt.Errorf("the frame address depends on %v, which is not known", r.cfa.reg)
		}
		return evidence.Addr(v + uint64(r.cfa.offset)), nil
	}
	e := expression{code: r.cfa.expr, regs: regs, bias: r.bias}
	v, err := e.evaluate(stack)
	if err != nil {
		return 0, fmt.Errorf("the frame address: %w", err)
	}
	return evidence.Addr(v), nil
}

// apply finds the caller's registers. A register whose value cannot be read
// is not known in the caller; for the return address and the stack pointer
// that is an error.
func (r *row) apply(regs *image.Registers, stack *stackReader) (image.Registers, evidence.Addr, error) {
	cfa, err := r.cfaOf(regs, stack)
	if err != nil {
		return image.Registers{}, 0, err
	}
	caller := *regs
	for _, n := range callerSaved {
		caller.Forget(n)
	}
	caller.Set(image.RSP, uint64(cfa))
	caller.OrigRAX = -1
	caller.Vector = nil
	for i := range r.rules {
		c := &r.rules[i]
		v, known, err := c.value(r, regs, cfa, stack)
		switch {
		case err != nil && c.of == r.ra:
			return image.Registers{}, cfa, fmt.Errorf("the return address: %w", err)
		case err != nil && c.of == image.RSP:
			return image.Registers{}, cfa, fmt.Errorf("the caller's stack pointer: %w", err)
		case err != nil || !known:
			caller.Forget(c.of)
		default:
			caller.Set(c.of, v)
		}
	}
	pc, known := caller.Get(r.ra)
	if !known {
		return image.Registers{}, cfa, errors.New("the return address is not known")
	}
	caller.Set(image.RIP, pc)
	return caller, cfa, nil
}

// shortened copies an expression, so that a row does not keep the whole program
// alive. Of an expression that is too long to be evaluated it copies just
// enough to show that.
func shortened(code []byte) []byte {
	return bytes.Clone(code[:min(len(code), maxExpression+1)])
}

func (c *rule) value(r *row, regs *image.Registers, cfa evidence.Addr, stack *stackReader) (v uint64, known bool, err error) {
	switch c.kind {
	case ruleSame:
		v, known = regs.Get(c.of)
		return v, known, nil
	case ruleOffset:
		v, err = stack.word(cfa + evidence.Addr(c.offset))
		return v, err == nil, err
	case ruleValOffset:
		return uint64(cfa) + uint64(c.offset), true, nil
	case ruleRegister:
		v, known = regs.Get(c.reg)
		return v + uint64(c.offset), known, nil
	case ruleExpression, ruleValExpression:
		e := expression{code: c.expr, regs: regs, cfa: cfa, pushCFA: true, bias: r.bias}
		v, err = e.evaluate(stack)
		if err == nil && c.kind == ruleExpression {
			v, err = stack.word(evidence.Addr(v))
		}
		return v, err == nil, err
	}
	return 0, false, nil
}
