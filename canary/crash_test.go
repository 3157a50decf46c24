package canary_test

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/image/x86/heights"
	"diagnose/internal/crashtest"
)

// check reads the failing thread of a crash and checks its stack.
func check(t *testing.T, exe string, args ...string) []evidence.Finding {
	t.Helper()
	core := crashtest.Core(t, exe, crashtest.Run{Args: args, Env: []string{"LIBC_FATAL_STDERR_=1"}})
	p, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	thread := &p.Threads[max(p.Failing, 0)]
	s := canary.Stack{FSBase: thread.Registers.FSBase, Random: evidence.Addr(p.Auxv[25]), Thread: thread.Ref} // AT_RANDOM
	for _, f := range unwind.New(p).Walk(thread, 100).Frames {
		s.Frames = append(s.Frames, frame(t, p, thread, &f))
	}
	list, err := canary.CheckStack(p, s)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func frame(t *testing.T, p *image.Process, thread *image.Thread, u *unwind.Frame) canary.Frame {
	f := canary.Frame{Registers: u.Registers, CFA: u.CFA, Lookup: u.Lookup, Trust: u.Trust}
	m := p.ModuleAt(u.PC())
	if m == nil {
		return f
	}
	pc := m.LinkAddr(u.PC())
	if u.Lookup == image.ReturnAddress {
		pc--
	}
	if symbol, ok := p.SymbolAt(m.Addr(pc)); ok {
		f.Function = symbol.Name
	}
	info, err := m.Debug()
	if err != nil {
		t.Fatal(err)
	}
	if info == nil {
		return f
	}
	function, err := info.FunctionAt(pc)
	if err != nil {
		t.Fatal(err)
	}
	if function == nil {
		return f
	}
	for _, r := range function.Ranges {
		code := make([]byte, r[1]-r[0])
		if _, err := p.ReadMemory(m.Addr(r[0]), code); err != nil {
			t.Fatal(err)
		}
		f.Code = append(f.Code, heights.Code{Addr: m.Addr(r[0]), Bytes: code})
	}
	f.Buffers = buffers(t, info, pc, &value.Frame{Process: p, Thread: thread, Module: m, Registers: u.Registers, CFA: u.CFA, Lookup: u.Lookup})
	return f
}

func buffers(t *testing.T, info *debuginfo.Info, pc uint64, f *value.Frame) (list []canary.Buffer) {
	calls, err := info.CallsAt(pc)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		variables, err := info.VariablesAt(call, pc)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variables {
			if v.Type == nil || v.Type.Kind() != debuginfo.KindArray || v.Type.Size() <= 0 {
				continue
			}
			if loc, err := value.Lives(f, v); err == nil && loc.InMemory {
				list = append(list, canary.Buffer{Name: v.Name, Type: v.Type.Name(), Addr: loc.Addr, Size: uint64(v.Type.Size())})
			}
		}
	}
	return list
}

func TestRealStacks(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		for _, level := range []string{"-O0", "-O2"} {
			t.Run(compiler+level, func(t *testing.T) {
				t.Parallel()
				exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/smash.c", Compiler: compiler,
					Flags: []string{level, "-fstack-protector-strong", "-fno-inline"}})
				for _, test := range []struct{ args, function, buffer string }{
					{"smash", "handle", "buf (char [32])"},
					{"early", "handle", "buf (char [32])"},
					{"deep", "handle", "buf (char [32])"},
					{"smash variable", "variable", "fixed (char [16])"},
					{"early variable", "variable", "fixed (char [16])"},
					{"healthy", "", ""},
					{"healthy variable", "", ""},
				} {
					name := fmt.Sprintf("%s %s %s", compiler, level, test.args)
					list := check(t, exe, strings.Fields(test.args)...)
					if test.function == "" {
						if len(list) != 0 {
							t.Errorf("%s: a whole stack: %+v", name, list)
						}
						continue
					}
					if len(list) != 1 || !strings.Contains(list[0].Summary, "the stack guard of "+test.function) {
						t.Errorf("%s: %d findings %+v", name, len(list), list)
						continue
					}
					if !strings.Contains(list[0].Summary, test.buffer) {
						t.Errorf("%s: summary %q does not name %s", name, list[0].Summary, test.buffer)
					}
				}
			})
		}
	}
}
