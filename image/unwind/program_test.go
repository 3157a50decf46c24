package unwind

import (
	"strings"
	"testing"

	"diagnose/image"
)

// The CIE of every compiler: CFA is rsp+8, the return address at CFA-8.
var usualCIE = cie{codeAlign: 1, dataAlign: -8, ra: 16, initial: []byte{0x0c, 7, 8, 0x90, 1}}

// rowOf runs an FDE's instructions up to an offset into its function.
func rowOf(t *testing.T, c cie, instructions []byte, offset uint64) (row, error) {
	t.Helper()
	f := &fde{cie: &c, begin: 0x1000, end: 0x2000, instructions: instructions}
	code, err := rewrite(f, 0)
	if err != nil {
		return row{}, err
	}
	entry, err := interpreter(f, code)
	if err != nil {
		return row{}, err
	}
	var r row
	err = recovered("test", func() error {
		ctx, err := entry.EstablishFrame(f.begin + offset)
		if err == nil {
			r, err = compileRow(ctx, f)
		}
		return err
	})
	return r, err
}

func (r *row) ruleOf(n image.Register) rule {
	for _, c := range r.rules {
		if c.of == n {
			return c
		}
	}
	return rule{of: n, kind: ruleSame}
}

func TestProgram(t *testing.T) {
	const rbx = image.RBX
	pushRBX := []byte{0x41, 0x0e, 16, 0x83, 2} // advance 1; def_cfa_offset 16; rbx at CFA-16
	add := func(more ...byte) []byte { return append(append([]byte(nil), pushRBX...), more...) }
	for name, test := range map[string]struct {
		code   []byte
		offset uint64
		cfa    int64
		rbx    rule
	}{
		"entry":                          {pushRBX, 0, 8, rule{kind: ruleSame}},
		"after the push":                 {pushRBX, 1, 16, rule{kind: ruleOffset, offset: -16}},
		"restore gives the value back":   {add(0x41, 0xc3, 0x0e, 8), 2, 8, rule{kind: ruleSame}},
		"restore_extended":               {add(0x41, 0x06, 3), 2, 16, rule{kind: ruleSame}},
		"remember and restore_state":     {add(0x0a, 0x41, 0xc3, 0x0e, 8, 0x41, 0x0b), 3, 16, rule{kind: ruleOffset, offset: -16}},
		"GNU_args_size is passed over":   {add(0x2e, 0x30, 0x41, 0x0e, 24), 2, 24, rule{kind: ruleOffset, offset: -16}},
		"negative_offset_extended":       {[]byte{0x2f, 3, 4}, 0, 8, rule{kind: ruleOffset, offset: 32}},
		"val_offset is factored":         {[]byte{0x14, 3, 4}, 0, 8, rule{kind: ruleValOffset, offset: -32}},
		"advance_loc1":                   {[]byte{0x02, 0x80, 0x0e, 40}, 0x80, 40, rule{kind: ruleSame}},
		"advance_loc2, not yet":          {[]byte{0x03, 0x00, 0x02, 0x0e, 40}, 0x1ff, 8, rule{kind: ruleSame}},
		"advance_loc4":                   {[]byte{0x04, 0x00, 0x02, 0, 0, 0x0e, 40}, 0x200, 40, rule{kind: ruleSame}},
		"set_loc":                        {[]byte{0x01, 0x10, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 40}, 0x10, 40, rule{kind: ruleSame}},
		"vector registers are dropped":   {[]byte{0x05, 17, 3, 0x0e, 40}, 0, 40, rule{kind: ruleSame}},
		"undefined":                      {[]byte{0x07, 3}, 0, 8, rule{kind: ruleUndefined}},
		"in a register, big ULEB number": {[]byte{0x09, 3, 0x8c, 0x00}, 0, 8, rule{kind: ruleRegister, reg: image.R12}},
	} {
		r, err := rowOf(t, usualCIE, test.code, test.offset)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		test.rbx.of = rbx
		got := r.ruleOf(rbx)
		if r.cfa.reg != image.RSP || r.cfa.offset != test.cfa ||
			got.kind != test.rbx.kind || got.offset != test.rbx.offset || got.reg != test.rbx.reg {
			t.Errorf("%s: CFA %v%+d, rbx %+v; want rsp%+d, %+v", name, r.cfa.reg, r.cfa.offset, got, test.cfa, test.rbx)
		}
		if ra := r.ruleOf(image.RIP); ra.kind != ruleOffset || ra.offset != -8 {
			t.Errorf("%s: return address %+v", name, ra)
		}
	}
}

// TestExpressionOfCIE has FDE instructions that are shorter than the CIE's: in
// delve's buffer they would overwrite the CIE's expression.
func TestExpressionOfCIE(t *testing.T) {
	c := usualCIE
	c.initial = append([]byte{0x10, 3, 2, 0x77, 40}, c.initial...) // rbx saved at rsp+40
	r, err := rowOf(t, c, []byte{0x0e, 99}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ruleOf(image.RBX); got.kind != ruleExpression || string(got.expr) != "\x77\x28" {
		t.Errorf("rbx = %+v, want the expression 77 28", got)
	}
}

func TestOutermost(t *testing.T) {
	r, err := rowOf(t, usualCIE, []byte{0x07, 16}, 0)
	if err != nil || !r.outermost {
		t.Errorf("outermost = %v, %v; want true for an undefined return address", r.outermost, err)
	}
}

// TestRegisterThatIsNotFollowed: register 256+6 must not pass for register 6.
func TestRegisterThatIsNotFollowed(t *testing.T) {
	r, err := rowOf(t, usualCIE, []byte{0x09, 3, 0x86, 0x02}, 0)
	if got := r.ruleOf(image.RBX); err != nil || got.kind != ruleUndefined {
		t.Errorf("rbx: %+v, %v; want undefined", got, err)
	}
}

func TestProgramErrors(t *testing.T) {
	long := strings.Repeat("\x00", maxProgram)
	for name, code := range map[string][]byte{
		"restore_state without remember": {0x0b},
		"too many remembered states":     []byte(strings.Repeat("\x0a", maxRemembered+1)),
		"cut operand":                    {0x0c, 7},
		"cut block":                      {0x0f, 40, 0x77},
		"unknown opcode":                 {0x3d, 0},
		"CFA in a vector register":       {0x0c, 17, 8},
		"location goes back":             {0x01, 0, 0, 0, 0, 0, 0, 0, 0},
		"number of 70 bits":              {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"too long":                       []byte(long),
	} {
		if r, err := rowOf(t, usualCIE, code, 0x10); err == nil {
			t.Errorf("%s: no error, but %+v", name, r)
		}
	}
}
