package unwind

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"diagnose/image"
)

// TestScanOfHoles scans a section that consists only of terminators, like the
// holes of a sparse file.
func TestScanOfHoles(t *testing.T) {
	a := &fileArea{title: "holes", data: make([]byte, 4*(maxScanned+16))}
	spans, err := scanSection(a, ehFrame, 0, uint64(len(a.data)))
	if err == nil || !strings.Contains(err.Error(), "entries") || len(spans) != 0 {
		t.Errorf("%d spans, %v", len(spans), err)
	}
}

// TestInitialInstructionsAreBounded: all FDEs repeat those of their CIE, so a
// small section could require any amount of memory.
func TestInitialInstructionsAreBounded(t *testing.T) {
	c := cie{codeAlign: 1, dataAlign: -8, ra: uint64(image.RIP), initial: make([]byte, maxInitial+1)}
	if _, err := rewrite(&fde{cie: &c, begin: 0, end: 1}, 0); err == nil {
		t.Error("a CIE of any size is repeated for each function")
	}
}

// TestFunctionsAreForgotten looks up more functions than are kept.
func TestFunctionsAreForgotten(t *testing.T) {
	const functions = 2 * maxCached / functionOverhead
	hdr, eh := buildFrames(functions)
	m := testModule(hdr, eh)
	for i := range uint64(functions) {
		begin, _ := m.table.entryAt(int(i))
		if fn, err := m.functionAt(begin); fn == nil || err != nil {
			t.Fatalf("function %d at %#x: %v", i, begin, err)
		}
	}
	if n := len(m.functions); n == 0 || n > maxCached/functionOverhead {
		t.Errorf("%d functions are kept", n)
	}
}

// TestRowsDoNotKeepPrograms: a cached row must not keep alive the 64 KiB that
// contain its expression.
func TestRowsDoNotKeepPrograms(t *testing.T) {
	program := bytes.Repeat([]byte{0x30}, maxProgram)
	r, err := compileRule(image.RBX, frame.DWRule{Rule: frame.RuleExpression, Expression: program})
	if err != nil {
		t.Fatal(err)
	}
	if cap(r.expr) > 2*maxExpression {
		t.Errorf("the rule holds %d bytes", cap(r.expr))
	}
	if err := vetExpression(r.expr); err == nil {
		t.Error("the cut expression passes for a whole one")
	}
}

// TestTablesInMemoryAreBounded: a core may map one file's bytes at any number
// of addresses, each of which may claim to be a table.
func TestTablesInMemoryAreBounded(t *testing.T) {
	p := openThreads(t)
	m := p.Modules[len(p.Modules)-1]
	var c moduleCache
	c.copied.Store(maxCopied)
	fileless := &image.Module{Path: m.Path, Bias: m.Bias, Start: m.Start, End: m.End}
	if _, ok, err := c.of(p, fileless).row(m.Start); ok || err == nil || !strings.Contains(err.Error(), "take more than") {
		t.Errorf("found %v, %v", ok, err)
	}
}

// TestEffortIsBounded: an unwinder that has done more work than any real
// program needs runs no more programs or expressions and reads no more
// prologues.
func TestEffortIsBounded(t *testing.T) {
	u := &Unwinder{process: newFake(callCode(8), nil)}
	if _, ok := u.prologue(0x400010, image.AtInstruction); !ok {
		t.Fatal("no prologue")
	}
	m := testModule(buildFrames(3))
	if _, ok, err := m.row(0x1000); !ok || err != nil {
		t.Fatal(err)
	}
	u.modules.spent.bytes.Store(maxEffort)
	m.spent.bytes.Store(maxEffort)
	if _, ok := u.prologue(0x400010, image.AtInstruction); ok {
		t.Error("a prologue was read")
	}
	if _, ok, err := m.row(0x1000); ok || !errors.Is(err, errEffort) {
		t.Errorf("a program was run: %v", err)
	}
	e := expression{code: []byte{0x31}, regs: new(image.Registers)}
	if _, err := e.evaluate(&stackReader{memory: ramp{}, spent: &u.modules.spent}); !errors.Is(err, errEffort) {
		t.Errorf("an expression was evaluated: %v", err)
	}
}
