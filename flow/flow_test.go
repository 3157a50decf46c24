package flow_test

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/cpu"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// traced is a trace of a program and the process at its end.
type traced struct {
	*flow.Trace
	core *image.Process
	last int
}

func recorded(t *testing.T, q flow.Request) *traced {
	return recordedProgram(t, "testdata/origins.c", q)
}

func recordedProgram(t *testing.T, source string, q flow.Request) *traced {
	p, err := recordtest.Read(source)
	if err != nil {
		t.Fatal(err)
	}
	rec, core := p.Record(t).Open(t)
	trace, err := flow.Record(t.Context(), rec, q)
	if err != nil {
		t.Fatal(err)
	}
	return &traced{trace, core, trace.Last(rec.Manifest.Outcome.Thread)}
}

func (x *traced) global(t *testing.T, name string) evidence.Addr {
	s, ok := x.core.SymbolNamed(name)
	if !ok {
		t.Fatalf("no variable %s", name)
	}
	return s.Addr
}

func (x *traced) pointer(t *testing.T, name string) evidence.Addr {
	var b [8]byte
	if _, err := x.core.ReadMemory(x.global(t, name), b[:]); err != nil {
		t.Fatal(err)
	}
	return evidence.Addr(binary.LittleEndian.Uint64(b[:]))
}

// The steps are those of the program, not of what the recording library does at its start: that
// alone has 80,000.
func TestLibraryRunsAtFullSpeed(t *testing.T) {
	if x := recorded(t, flow.Request{Most: 20_000}); x.Cut {
		t.Error("a program of a few thousand instructions has more than 20,000 steps")
	}
}

// Each byte has the origin that its program gave it.
func TestDefine(t *testing.T) {
	x := recorded(t, flow.Request{})
	if x.Cut {
		t.Fatal("the trace is cut")
	}
	for _, c := range []struct {
		what string
		l    flow.Location
		kind flow.Kind
		call string
	}{
		{"input", flow.Memory(x.global(t, "input"), 5), flow.Input, "read"},
		{"constant", flow.Memory(x.global(t, "constant"), 8), flow.Constant, ""},
		{"computed", flow.Memory(x.global(t, "computed"), 8), flow.Copied, ""},
		{"counted", flow.Memory(x.global(t, "counted"), 8), flow.Computed, ""},
		{"a pointer", flow.Memory(x.global(t, "fresh"), 8), flow.Copied, ""},
		{"malloc's memory", flow.Memory(x.pointer(t, "fresh"), 8), flow.Allocated, "malloc"},
		{"calloc's memory", flow.Memory(x.pointer(t, "cleared")+8, 8), flow.Constant, "calloc"},
		{"realloc's old bytes", flow.Memory(x.pointer(t, "moved"), 8), flow.Copied, "realloc"},
		{"realloc's new bytes", flow.Memory(x.pointer(t, "moved")+1000, 8), flow.Allocated, "realloc"},
		{"freed memory", flow.Memory(x.pointer(t, "gone"), 1), flow.Freed, "free"},
		{"what nothing stored", flow.Memory(x.global(t, "input")+6, 1), flow.Before, ""},
	} {
		if d := x.Define(c.l, x.last); d.Kind != c.kind || d.Call != c.call {
			t.Errorf("%s: %v by %q, want %v by %q: %+v", c.what, d.Kind, d.Call, c.kind, c.call, d)
		}
	}
	// A copy is followed to the register that brought it, and that to its constant.
	l, n := flow.Memory(x.global(t, "copied"), 8), x.last
	d := x.Define(l, n)
	for range 4 {
		if d.Kind != flow.Copied {
			break
		}
		d = x.Define(d.From[0], d.At)
	}
	if d.Kind != flow.Constant {
		t.Errorf("the copy ends at %+v", d)
	}
	if o := x.ObjectAt(x.pointer(t, "gone"), x.last); o == nil || o.Size != 24 || o.Freed < 0 || o.FreedBy != "free" {
		t.Errorf("the freed object is %+v", o)
	}
}

// More instructions than asked for are cut, and a window begins after its event.
func TestBounds(t *testing.T) {
	if x := recorded(t, flow.Request{Most: 50}); !x.Cut || x.Len() > 60 {
		t.Errorf("%d steps, cut %v", x.Len(), x.Cut)
	}
	x := recorded(t, flow.Request{Windows: map[uint32]replay.StepWindow{1: {From: 2, To: 1 << 40}}})
	if d := x.Define(flow.Memory(x.global(t, "input"), 5), x.last); x.Cut || d.Kind != flow.Before {
		t.Errorf("input from before the window is %v, cut %v", d.Kind, x.Cut)
	}
	if d := x.Define(flow.Memory(x.global(t, "constant"), 8), x.last); d.Kind != flow.Constant {
		t.Errorf("a store in the window is %v", d.Kind)
	}
}

// Objects of before the trace are known from how the heap was at its end.
func TestEarlierObjects(t *testing.T) {
	p, err := recordtest.Read("testdata/earlier.c")
	if err != nil {
		t.Fatal(err)
	}
	rec, core := p.Record(t).Open(t)
	x := &traced{core: core}
	ended := map[evidence.Addr]flow.HeapObject{}
	for name, o := range map[string]flow.HeapObject{"kept": {Size: 24}, "old": {Size: 24, Freed: true}, "gone": {Size: 40, Freed: true}} {
		o.Addr = x.pointer(t, name)
		ended[o.Addr] = o
	}
	getppid := uint64(0)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindSyscall && eventlog.SyscallName(e.Object) == "getppid" {
			getppid = e.Ordinal
		}
	}
	q := flow.Request{Windows: map[uint32]replay.StepWindow{1: {From: getppid, To: 1 << 40}}, HeapAt: func(addr evidence.Addr) (flow.HeapObject, bool) {
		for _, o := range ended {
			if addr >= o.Addr && addr < o.Addr+evidence.Addr(o.Size) {
				return o, true
			}
		}
		return flow.HeapObject{}, false
	}}
	if x.Trace, err = flow.Record(t.Context(), rec, q); err != nil || x.Cut || getppid == 0 {
		t.Fatalf("%v, cut %v, the traced part begins after event %d", err, x.Cut, getppid)
	}
	x.last = x.Last(1)
	for _, c := range []struct {
		what string
		l    flow.Location
		kind flow.Kind
		call string
	}{
		{"the old part of a moved object", flow.Memory(x.pointer(t, "moved"), 8), flow.Copied, "realloc"},
		{"the new part", flow.Memory(x.pointer(t, "moved")+100, 8), flow.Allocated, "realloc"},
		{"freed memory", flow.Memory(x.pointer(t, "gone")+32, 8), flow.Freed, "free"},
		{"what fread stored", flow.Memory(x.global(t, "block"), 2), flow.Input, "fread"},
		{"what fread did not store", flow.Memory(x.global(t, "block")+2, 1), flow.Before, ""},
		{"what fgets stored", flow.Memory(x.global(t, "line"), 3), flow.Input, "fgets"},
	} {
		if d := x.Define(c.l, x.last); d.Kind != c.kind || d.Call != c.call {
			t.Errorf("%s: %v by %q, want %v by %q: %+v", c.what, d.Kind, d.Call, c.kind, c.call, d)
		}
	}
	if o := x.ObjectAt(x.pointer(t, "kept")+8, x.last); o == nil || o.Size != 24 || o.Made >= 0 || o.Freed >= 0 {
		t.Errorf("an object of before is %+v", o)
	}
	if o := x.ObjectAt(x.pointer(t, "gone"), x.last); o == nil || o.Size != 40 || o.Made >= 0 || o.Freed < 0 {
		t.Errorf("an object of before that was freed is %+v", o)
	}
}

// A store under a mask writes the bytes that the mask selects, and no others.
func TestMasked(t *testing.T) {
	if !cpu.X86.HasAVX512BW || !cpu.X86.HasAVX512VL {
		t.Skip("the processor has no AVX-512 for vectors of 16 bytes")
	}
	x := recordedProgram(t, "testdata/masked.c", flow.Request{})
	extents := map[string]flow.Location{}
	for n := range x.Len() {
		if s := x.Step(n); s.Inst != nil && len(s.Inst.Operands) > 0 && s.Inst.Operands[0].IsMemory && s.Inst.Operands[0].Conditional {
			if l, known := x.Extent(n, 0); known {
				extents[s.Inst.Op] = l
			}
		}
	}
	object, words := x.pointer(t, "object"), x.global(t, "words")
	for op, want := range map[string]flow.Location{"vmovdqu8": flow.Memory(object, 5), "vmovdqu32": flow.Memory(words+4, 8)} {
		if extents[op] != want {
			t.Errorf("%s accesses %v, want %v", op, extents[op], want)
		}
	}
	for _, c := range []struct {
		what string
		l    flow.Location
		kind flow.Kind
		size int
	}{
		{"the object", flow.Memory(object, 5), flow.Copied, 5},
		{"a word before the mask", flow.Memory(words, 4), flow.Before, 4},
		{"a word of the mask", flow.Memory(words+4, 4), flow.Copied, 4},
		{"a word after the mask", flow.Memory(words+12, 4), flow.Before, 4},
		{"the words", flow.Memory(words, 16), flow.Copied, 8},
	} {
		if d := x.Define(c.l, x.last); d.Kind != c.kind || d.Part.Size != c.size {
			t.Errorf("%s: %d bytes are %v, want %d %v", c.what, d.Part.Size, d.Kind, c.size, c.kind)
		}
	}
}
