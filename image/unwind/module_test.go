package unwind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
)

// section builds .eh_frame at ehAddr and .eh_frame_hdr at hdrAddr for functions
// at 0x1000, 0x1100, ... The n-th function grows its frame by n*8 bytes after
// one byte.
const (
	hdrAddr = 0x8000
	ehAddr  = 0x9000
)

func buildFrames(functions int) (hdr, eh []byte) {
	le := binary.LittleEndian
	entry := func(id uint32, body []byte) {
		for (len(body)+4)%8 != 4 {
			body = append(body, 0)
		}
		eh = le.AppendUint32(eh, uint32(len(body)+4))
		eh = le.AppendUint32(eh, id)
		eh = append(eh, body...)
	}
	entry(0, []byte("\x01zR\x00\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"))
	hdr = []byte{1, 0x1b, 3, encodingTable}
	hdr = le.AppendUint32(hdr, uint32(ehAddr-(hdrAddr+4)))
	hdr = le.AppendUint32(hdr, uint32(functions))
	for i := range functions {
		at := len(eh)
		begin := 0x1000 + 0x100*i
		body := le.AppendUint32(nil, uint32(begin-(ehAddr+at+8)))
		body = le.AppendUint32(body, 0x80)
		body = append(body, 0, 0x41, 0x0e, byte(16+8*i))
		hdr = le.AppendUint32(hdr, uint32(begin-hdrAddr))
		hdr = le.AppendUint32(hdr, uint32(ehAddr+at-hdrAddr))
		entry(uint32(at+4), body)
	}
	return hdr, append(eh, 0, 0, 0, 0)
}

func testModule(hdr, eh []byte) *moduleCFI {
	var c moduleCache
	m := c.of(ramp{}, &image.Module{Path: "test"})
	m.opened, m.debugOpened = true, true
	m.eh = &fileArea{title: "test: .eh_frame", addr: ehAddr, data: eh}
	m.ehStart, m.ehSize = ehAddr, uint64(len(eh))
	if hdr != nil {
		m.table, m.problem = parseHeader(hdr, hdrAddr)
	}
	return m
}

func TestLookup(t *testing.T) {
	hdr, eh := buildFrames(5)
	unsorted := bytes.Clone(hdr)
	copy(unsorted[12:], hdr[12+16:12+24]) // the first entry is the third
	wrong := bytes.Clone(hdr)
	wrong[12+8+4]++ // the second entry's FDE is elsewhere
	for name, table := range map[string][]byte{
		"table": hdr, "no table": nil, "unsorted table": unsorted, "wrong pointer": wrong,
		"empty table": {1, 0x1b, 0xff, 0xff, 0xfc, 0x0f, 0, 0}, "other version": {2}, "cut": hdr[:20],
	} {
		m := testModule(table, eh)
		for i := range 5 {
			pc := evidence.Addr(0x1000 + 0x100*i + 1)
			r, ok, err := m.row(pc)
			if !ok || err != nil || r.cfa.offset != int64(16+8*i) {
				t.Errorf("%s: row(%v) = rsp%+d, %v, %v", name, pc, r.cfa.offset, ok, err)
			}
		}
		for _, pc := range []evidence.Addr{0, 0xfff, 0x1080, 0x1480, 1 << 60} {
			if r, ok, _ := m.row(pc); ok {
				t.Errorf("%s: row(%v) = rsp%+d where no function is", name, pc, r.cfa.offset)
			}
		}
	}
}

// TestLookupInDebugFrame reads the same CIE and FDE forms as .debug_frame has
// them, of DWARF version 4 and in the 64-bit format.
func TestLookupInDebugFrame(t *testing.T) {
	le := binary.LittleEndian
	var b []byte
	cieBody := append([]byte{4, 0, 8, 0, 1, 0x78, 16}, usualCIE.initial...)
	b = le.AppendUint32(b, 0xffffffff)
	b = le.AppendUint64(b, uint64(8+len(cieBody)))
	b = le.AppendUint64(b, ^uint64(0))
	b = append(b, cieBody...)
	b = le.AppendUint32(b, 0xffffffff)
	b = le.AppendUint64(b, 8+16+3)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, 0x1000)
	b = le.AppendUint64(b, 0x80)
	b = append(b, 0x41, 0x0e, 48)
	m := testModule(nil, nil)
	m.debug = &fileArea{title: "test: .debug_frame", data: b}
	var err error
	m.debugSpans, err = scanSection(m.debug, debugFrame, 0, uint64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if r, ok, err := m.row(0x1001); !ok || err != nil || r.cfa.offset != 48 {
		t.Errorf("row = rsp%+d, %v, %v; want rsp+48", r.cfa.offset, ok, err)
	}
}

func TestDamagedEntries(t *testing.T) {
	_, eh := buildFrames(2)
	mutate := func(at int, b ...byte) []byte {
		c := bytes.Clone(eh)
		copy(c[at:], b)
		return c
	}
	for name, test := range map[string]struct {
		eh   []byte
		want string
	}{
		"CIE version":       {mutate(8, 9), "bad CIE version 9"},
		"augmentation":      {mutate(9, 'q'), "unknown augmentation"},
		"alignment":         {mutate(12, 0), "alignment"},
		"length":            {mutate(0, 0xff, 0xff, 0xff, 0x7f), "entry of"},
		"cut in an entry":   {eh[:30], "outside the section"},
		"pointer encoding":  {mutate(16, 0x57), "pointer encoding"},
		"return column":     {mutate(14, 99), "return address column 99"},
		"CIE pointer":       {mutate(24+4, 0x77), "CIE"},
		"augmentation size": {mutate(15, 0x7f), "data ends"},
	} {
		m := testModule(nil, test.eh)
		if _, ok, err := m.row(0x1001); ok || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: ok %v, error %v; want %q", name, ok, err, test.want)
		}
	}
}

// TestReturnToZero: a return address of 0 found by a table ends the stack like
// an undefined one.
func TestReturnToZero(t *testing.T) {
	fake := newFake(callCode(16), words(7, 0, 0, 0))
	fake.module.Bias = 0x400000 - 0x1000
	hdr, eh := buildFrames(1)
	u := &Unwinder{process: fake}
	m, tables := u.modules.of(fake, fake.module), testModule(hdr, eh)
	m.opened, m.debugOpened = true, true
	m.eh, m.ehStart, m.ehSize, m.table = tables.eh, tables.ehStart, tables.ehSize, tables.table
	var thread image.Thread
	thread.Registers.Set(image.RIP, 0x400001)
	thread.Registers.Set(image.RSP, 0x7ff000000000)
	s := u.Walk(&thread, 10)
	if len(s.Frames) != 1 || s.Stopped != "" || s.Truncated || s.Frames[0].CFA != 0x7ff000000010 {
		t.Errorf("stack %+v, want one frame and its end", s)
	}
}

// TestLimits: only the module with unusable tables is named.
func TestLimits(t *testing.T) {
	u := &Unwinder{process: newFake(callCode(8), words(1, 2, 0x400020, 3))}
	if got := u.Limits(); len(got) != 0 {
		t.Errorf("before any walk: %+v", got)
	}
	var thread image.Thread
	thread.Registers.Set(image.RIP, 0x400015)
	thread.Registers.Set(image.RSP, 0x7ff000000000)
	s := u.Walk(&thread, 10)
	got := u.Limits()
	if len(got) != 1 || got[0].Subject != "fake" || !strings.Contains(got[0].Text, "no ELF header") {
		t.Errorf("limits %+v", got)
	}
	if !strings.Contains(s.Stopped, "no ELF header") {
		t.Errorf("stopped %q, want the reason why there is no table", s.Stopped)
	}
}

// FuzzEHFrame gives hostile sections to the lookup and the interpreter.
func FuzzEHFrame(f *testing.F) {
	hdr, eh := buildFrames(3)
	f.Add(hdr, eh, uint64(0x1001))
	f.Add([]byte(nil), eh, uint64(0x1101))
	f.Add(hdr, append(eh[:len(eh)-12:len(eh)-12], 0x0f, 3, 0x77, 0, 0x06, 0x0b, 0x0a, 0xc3, 0, 0, 0, 0), uint64(0x1201))
	f.Fuzz(func(t *testing.T, hdr, eh []byte, pc uint64) {
		m := testModule(hdr, eh)
		var regs image.Registers
		for n := image.RAX; n <= image.RIP; n++ {
			regs.Set(n, 0x7000+uint64(n)*8)
		}
		if r, ok, _ := m.row(evidence.Addr(pc)); ok {
			stack := stackReader{memory: ramp{}}
			r.apply(&regs, &stack)
		}
		scanSection(&fileArea{title: "fuzz", data: eh}, debugFrame, 0, uint64(len(eh)))
		vetExpression(eh)
		e := expression{code: eh, regs: &regs}
		e.evaluate(&stackReader{memory: ramp{}})
	})
}

// fakeProcess is a process of one stack and one executable mapping, whose
// contents are the fuzzer's.
type fakeProcess struct {
	module *image.Module
	maps   []image.Mapping
	data   [][]byte
}

func (p *fakeProcess) ReadMemory(addr evidence.Addr, b []byte) (int, error) {
	for i := range p.maps {
		if p.maps[i].Contains(addr) {
			n := copy(b, p.data[i][addr-p.maps[i].Start:])
			if n == len(b) {
				return n, nil
			}
			addr += evidence.Addr(n)
			return n, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
		}
	}
	return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
}

func (p *fakeProcess) MappingAt(addr evidence.Addr) *image.Mapping {
	for i := range p.maps {
		if p.maps[i].Contains(addr) {
			return &p.maps[i]
		}
	}
	return nil
}

func (p *fakeProcess) ModuleAt(addr evidence.Addr) *image.Module {
	if p.module.Contains(addr) {
		return p.module
	}
	return nil
}

func (p *fakeProcess) SymbolAt(addr evidence.Addr) (image.Symbol, bool) {
	return image.Symbol{Name: "f", Addr: p.module.Start, Module: p.module}, p.module.Contains(addr)
}

func (p *fakeProcess) SymbolNamed(name string) (image.Symbol, bool) {
	return image.Symbol{Name: name, Addr: p.module.Start, Module: p.module}, name == "f"
}

func (p *fakeProcess) Symbolize(pc evidence.Addr, how image.Lookup) []image.SymbolizedCall {
	return []image.SymbolizedCall{{Site: evidence.Site{PC: pc}}}
}

func newFake(code, stack []byte) *fakeProcess {
	const codeAt, stackAt = 0x400000, 0x7ff000000000
	end := func(start evidence.Addr, b []byte) evidence.Addr { return start + evidence.Addr(len(b)) }
	return &fakeProcess{
		module: &image.Module{Path: "fake", Start: codeAt, End: end(codeAt, code)},
		maps: []image.Mapping{
			{Start: codeAt, End: end(codeAt, code), Perms: "r-x"},
			{Start: stackAt, End: end(stackAt, stack), Perms: "rw-"},
		},
		data: [][]byte{code, stack},
	}
}

func words(list ...uint64) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// callCode has a call instruction before each multiple of 16.
func callCode(n int) []byte {
	return []byte(strings.Repeat(strings.Repeat("\x90", 11)+"\xe8\x00\x00\x00\x00", n))
}

func TestWalkGuesses(t *testing.T) {
	const stackAt = 0x7ff000000000
	for name, test := range map[string]struct {
		pc, rbp uint64
		stack   []byte
		trusts  string
		stopped string
	}{
		"called a null pointer": {0, 0, words(0x400010, 0, 0), "context prologue", "no return address|is not mapped"},
		"frame pointers": {0x400015, stackAt + 16, words(1, 2, stackAt+48, 0x400020, 3, 4, 0, 0x400030),
			"context frame-pointer frame-pointer", "mapped"},
		"scan":               {0x400015, 0, words(1, 2, 0x400020, 3, 0x400031, 0x400040), "context scan scan", "mapped"},
		"circular":           {0x400015, stackAt + 16, words(1, 2, stackAt+16, 0x400020), "context frame-pointer", "mapped"},
		"bad return address": {0, 0, words(0x123456), "context", "no call instruction"},
		"empty stack":        {0x400015, 0, nil, "context", "is not mapped"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &Unwinder{process: newFake(callCode(8), test.stack)}
			var thread image.Thread
			thread.Registers.Set(image.RIP, test.pc)
			thread.Registers.Set(image.RSP, stackAt)
			thread.Registers.Set(image.RBP, test.rbp)
			s := u.Walk(&thread, 50)
			var trusts []string
			for _, f := range s.Frames {
				trusts = append(trusts, string(f.Trust))
			}
			if got := strings.Join(trusts, " "); got != test.trusts {
				t.Errorf("trusts %q, want %q (stopped: %s)", got, test.trusts, s.Stopped)
			}
			matches := false
			for part := range strings.SplitSeq(test.stopped, "|") {
				matches = matches || strings.Contains(s.Stopped, part)
			}
			if !matches {
				t.Errorf("stopped %q, want %q", s.Stopped, test.stopped)
			}
		})
	}
}

// FuzzWalk walks random stacks over random code from random registers: it must
// end within the limit, and say why.
func FuzzWalk(f *testing.F) {
	f.Add(callCode(4), words(1, 2, 0x7ff000000030, 0x400020, 3, 4, 0, 0x400030), uint64(0x400015), uint64(0), uint64(16))
	f.Add([]byte("\x55\x48\x89\xe5\xe8\x00\x00\x00\x00\x90\xc9\xc3"), words(0x400009), uint64(0x400000), uint64(0), uint64(0))
	f.Add(sigreturnCode, words(make([]uint64, 40)...), uint64(0x400000), uint64(0), uint64(8))
	f.Fuzz(func(t *testing.T, code, stack []byte, pc, sp, bp uint64) {
		const stackAt = 0x7ff000000000
		u := &Unwinder{process: newFake(code, stack)}
		var thread image.Thread
		for n := image.RAX; n <= image.R15; n++ {
			thread.Registers.Set(n, stackAt+uint64(n)*8)
		}
		thread.Registers.Set(image.RIP, pc)
		thread.Registers.Set(image.RSP, stackAt+sp)
		thread.Registers.Set(image.RBP, stackAt+bp)
		s := u.Walk(&thread, 1000)
		if len(s.Frames) == 0 || len(s.Frames) != s.Depth {
			t.Fatalf("%d frames, depth %d", len(s.Frames), s.Depth)
		}
		for i := range s.Frames {
			if s.Frames[i].Trust == "" || s.Frames[i].Kind == "" {
				t.Fatalf("frame %d: %s", i, fmt.Sprint(s.Frames[i].Kind, s.Frames[i].Trust))
			}
		}
		if last := s.Frames[len(s.Frames)-1]; s.Stopped == "" && !s.Truncated && last.Trust.Guess() {
			t.Errorf("a walk of guesses ended without a reason at %v", last.PC())
		}
	})
}
