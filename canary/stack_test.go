package canary

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86/heights"
)

// memory is a few ranges of the target's memory.
type memory map[evidence.Addr][]byte

func (m memory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for base, data := range m {
		if addr >= base && uint64(addr-base) < uint64(len(data)) {
			n := copy(p, data[addr-base:])
			if n == len(p) {
				return n, nil
			}
			return n, &image.MemoryError{Addr: addr + evidence.Addr(n), Reason: "is not mapped"}
		}
	}
	return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped"}
}

const (
	codeAt  = evidence.Addr(0x401000)
	fsBase  = evidence.Addr(0x7f0000001000)
	random  = evidence.Addr(0x7ffd00009000)
	stackAt = evidence.Addr(0x7ffd00001000)
	guard   = uint64(0x1122334455667700)
)

// machine is one line of hand-assembled code.
func machine(t testing.TB, lines ...string) []byte {
	t.Helper()
	var code []byte
	for _, line := range lines {
		text, _, _ := strings.Cut(line, ";")
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		code = append(code, b...)
	}
	return code
}

const (
	loadGuard  = "64 48 8b 04 25 28000000 ; mov rax, fs:0x28"
	checkGuard = "64 48 2b 04 25 28000000 ; sub rax, fs:0x28"
)

// optimized is a function as gcc -O2 makes it, with its guard at rsp+0x48.
func optimized(t testing.TB) []byte {
	return machine(t,
		"48 83 ec 58 ; sub rsp, 0x58",        // 0x00
		loadGuard,                            // 0x04
		"48 89 44 24 48 ; mov [rsp+48], rax", // 0x0d
		"31 c0 ; xor eax, eax",               // 0x12
		"e8 00000000 ; call copy",            // 0x14
		"48 8b 44 24 48 ; mov rax, [rsp+48]", // 0x19
		checkGuard,                           // 0x1e
		"75 05 ; jne 0x2e",                   // 0x27
		"48 83 c4 58 ; add rsp, 0x58",        // 0x29
		"c3 ; ret",                           // 0x2d
		"e8 00000000 ; call fail")            // 0x2e
}

// withVariableArray is a function as gcc -O0 makes it, with its guard at rbp-8
// and a variable length array below.
func withVariableArray(t testing.TB) []byte {
	return machine(t,
		"55 ; push rbp",                  // 0x00
		"48 89 e5 ; mov rbp, rsp",        // 0x01
		"48 83 ec 20 ; sub rsp, 0x20",    // 0x04
		loadGuard,                        // 0x08
		"48 89 45 f8 ; mov [rbp-8], rax", // 0x11
		"48 29 fc ; sub rsp, rdi",        // 0x15
		"e8 00000000 ; call copy",        // 0x18
		"48 8b 45 f8 ; mov rax, [rbp-8]", // 0x1d
		checkGuard,                       // 0x21
		"74 05 ; je 0x31",                // 0x2a
		"e8 00000000 ; call fail",        // 0x2c
		"c9 ; leave", "c3 ; ret")         // 0x31
}

// aligned is a function whose prologue rounds the stack pointer down.
func aligned(t testing.TB) []byte {
	return machine(t,
		"55 ; push rbp",                      // 0x00
		"48 89 e5 ; mov rbp, rsp",            // 0x01
		"48 83 e4 e0 ; and rsp, -32",         // 0x04
		"48 83 ec 60 ; sub rsp, 0x60",        // 0x08
		loadGuard,                            // 0x0c
		"48 89 44 24 58 ; mov [rsp+58], rax", // 0x15
		"e8 00000000 ; call copy",            // 0x1a
		"c9 ; leave", "c3 ; ret")             // 0x1f
}

// scene is a stack with the guarded function's frame and its caller.
type scene struct {
	code []byte
	// at is the offset in code of the instruction after the call, sp the
	// frame's stack pointer, cfa its canonical address.
	at      uint64
	sp, cfa evidence.Addr
	// slot is the guard's address and value its contents.
	slot  evidence.Addr
	value uint64
	// inner is the function that the frame called.
	inner string
	// direct is the lookup of an innermost frame.
	direct bool
}

func (s scene) build() (memory, Stack) {
	stack := make([]byte, 0x400)
	binary.LittleEndian.PutUint64(stack[s.slot-stackAt:], s.value)
	callers := []byte{0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0} // nop; nop; nop; call
	m := memory{codeAt: s.code, 0x402000: callers, stackAt: stack,
		fsBase + guardOffset: binary.LittleEndian.AppendUint64(nil, guard)}
	f := Frame{Function: "handle", Code: []heights.Code{{Addr: codeAt, Bytes: s.code}}, CFA: s.cfa, Trust: evidence.TrustCFI,
		Lookup: image.ReturnAddress, Buffers: []Buffer{{"name", "char [24]", s.slot - 0x48, 24}, {"buf", "char [32]", s.slot - 0x28, 32}}}
	f.Registers.Set(image.RIP, uint64(codeAt)+s.at)
	f.Registers.Set(image.RSP, uint64(s.sp))
	outer := Frame{Function: "main", Trust: evidence.TrustCFI, Lookup: image.ReturnAddress, CFA: s.cfa + 0x40}
	outer.Registers.Set(image.RIP, 0x402008)
	outer.Registers.Set(image.RSP, uint64(s.cfa))
	frames := []Frame{{Function: s.inner, Trust: evidence.TrustContext}, f, outer}
	if s.direct {
		frames = frames[1:]
		frames[0].Lookup = image.AtInstruction
		frames[0].Trust = evidence.TrustContext
	}
	return m, Stack{Frames: frames, FSBase: fsBase, Thread: evidence.ThreadRef{Number: 1, TID: 42}}
}

// text8 is a word of the letters that overran a buffer.
const text8 = uint64(0x4141414141414141)

func smashedOptimized(t testing.TB) scene {
	cfa := stackAt + 0x200
	return scene{code: optimized(t), at: 0x33, sp: cfa - 0x60, cfa: cfa, slot: cfa - 0x60 + 0x48, value: text8, inner: "__stack_chk_fail"}
}

func smashedVariable(t testing.TB) scene {
	cfa := stackAt + 0x200
	return scene{code: withVariableArray(t), at: 0x31, sp: cfa - 0x90, cfa: cfa, slot: cfa - 0x18, value: text8, inner: "__stack_chk_fail"}
}

func smashedAligned(t testing.TB) scene {
	sp := stackAt + 0x100
	return scene{code: aligned(t), at: 0x1f, sp: sp, cfa: sp + 0x88, slot: sp + 0x58, value: text8, inner: "copy"}
}

func TestOverwrittenGuards(t *testing.T) {
	inCopy := smashedOptimized(t)
	inCopy.at, inCopy.inner = 0x19, "copy"
	innermost := inCopy
	innermost.at, innermost.direct = 0x12, true
	variableInCopy := smashedVariable(t)
	variableInCopy.at, variableInCopy.inner = 0x1d, "copy"
	for name, s := range map[string]scene{
		"smashed -O2":                   smashedOptimized(t),
		"smashed with a variable array": smashedVariable(t),
		"not yet checked":               inCopy,
		"innermost frame":               innermost,
		"variable array, not checked":   variableInCopy,
		"realigned":                     smashedAligned(t),
	} {
		t.Run(name, func(t *testing.T) {
			m, stack := s.build()
			list, err := CheckStack(m, stack)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d findings, error %v", len(list), err)
			}
			f := list[0]
			if err := f.Check(); err != nil {
				t.Error(err)
			}
			if f.Addr != s.slot || f.Kind != evidence.FindingStackGuard || f.Proof != evidence.FromCore {
				t.Errorf("got %+v, want the guard at %v", f, s.slot)
			}
			if want := "8 bytes past the end of buf (char [32]), the nearest buffer below it (inferred)"; !strings.Contains(f.Summary, want) {
				t.Errorf("summary %q lacks %q", f.Summary, want)
			}
			if i := slices.IndexFunc(f.Facts, func(f evidence.Fact) bool { return f.Name == "found" }); i < 0 ||
				f.Facts[i].Text != `0x4141414141414141 (bytes 4141414141414141 "AAAAAAAA")` {
				t.Errorf("facts %+v", f.Facts)
			}

			s.value = guard
			m, stack = s.build()
			if list, err := CheckStack(m, stack); err != nil || len(list) != 0 {
				t.Errorf("healthy twin: %+v, error %v", list, err)
			}
		})
	}
}

// An uncertain slot must yield nothing, whatever it holds.
func TestSilence(t *testing.T) {
	base := smashedOptimized(t)
	base.inner, base.at = "copy", 0x19
	for name, change := range map[string]func(*scene, *Stack){
		"before the store":        func(s *scene, _ *Stack) { s.at, s.direct = 0x0d, true },
		"at the entry":            func(s *scene, _ *Stack) { s.at, s.direct = 0, true; s.sp = s.cfa - 8 },
		"after the epilogue":      func(s *scene, _ *Stack) { s.at, s.direct = 0x2d, true; s.sp = s.cfa - 8 },
		"stack pointer disagrees": func(s *scene, _ *Stack) { s.sp -= 16 },
		"guessed frame":           func(_ *scene, k *Stack) { k.Frames[1].Trust = evidence.TrustScan },
		"frame of unknown trust":  func(_ *scene, k *Stack) { k.Frames[1].Trust = "" },
		"pc outside the code":     func(s *scene, _ *Stack) { s.at = 0x500 },
		"no code":                 func(_ *scene, k *Stack) { k.Frames[1].Code = nil },
		"unknown stack pointer":   func(_ *scene, k *Stack) { k.Frames[1].Registers.Forget(image.RSP) },
		"unreadable slot":         func(s *scene, k *Stack) { k.Frames[1].Registers.Set(image.RSP, 0x10000); k.Frames[1].CFA = 0x10060 },
		"undecodable bytes":       func(s *scene, _ *Stack) { s.code = append(s.code, 0x06) },
		"call before the store": func(s *scene, _ *Stack) {
			s.code = append(append([]byte{0xe8, 0, 0, 0, 0}, s.code...), 0x90)
			s.at += 5
		},
		"indirect jump before":       func(s *scene, _ *Stack) { s.code = append([]byte{0x74, 2, 0xff, 0xe0}, s.code...); s.at += 4 },
		"branch to elsewhere before": func(s *scene, _ *Stack) { s.code = append([]byte{0x74, 0x7f}, s.code...); s.at += 2 },
		"reached around the store": func(s *scene, _ *Stack) {
			s.code = append([]byte{0x74, 0x19}, s.code...)
			s.at = 2 + 0x1d
			s.direct = true
		},
		"not a store of the guard": func(s *scene, _ *Stack) { s.code = slices.Clone(s.code); s.code[0x0f] = 0x4c }, // mov [rsp+48], ... another register
		"guard loaded and discarded": func(s *scene, _ *Stack) {
			s.code = slices.Replace(slices.Clone(s.code), 0x0d, 0x12, 0x48, 0x31, 0xc0, 0x90, 0x90)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			change(&s, &Stack{Frames: make([]Frame, 3)})
			m, stack := s.build()
			if len(stack.Frames) > 2 {
				change(&s, &stack)
			}
			if list, err := CheckStack(m, stack); err != nil || len(list) != 0 {
				t.Errorf("got %+v, error %v", list, err)
			}
		})
	}
	variable := smashedVariable(t)
	variable.at, variable.inner = 0x1d, "copy"
	m, stack := variable.build()
	stack.Frames[2].Registers.Set(image.RIP, 0x402003) // nothing calls there
	if list, err := CheckStack(m, stack); err != nil || len(list) != 0 {
		t.Errorf("a return address after no call: %+v, error %v", list, err)
	}
}

func TestOnlyTheInnermostFinding(t *testing.T) {
	s := smashedOptimized(t)
	m, stack := s.build()
	stack.Frames = append(stack.Frames, stack.Frames[1])
	if list, err := CheckStack(m, stack); err != nil || len(list) != 1 {
		t.Errorf("got %+v, error %v", list, err)
	}
}

func TestOverwrittenReference(t *testing.T) {
	s := smashedOptimized(t)
	s.value = guard
	m, stack := s.build()
	m[fsBase+guardOffset] = []byte("AAAAAAAA")
	m[random] = binary.LittleEndian.AppendUint64(nil, guard|0x5a)
	stack.Random = random
	list, err := CheckStack(m, stack)
	if err != nil || len(list) != 1 || list[0].Addr != fsBase+guardOffset || !strings.Contains(list[0].Summary, "reference value") {
		t.Errorf("got %+v, error %v", list, err)
	}
}

func TestGuardOverwrittenByZeros(t *testing.T) {
	s := smashedOptimized(t)
	s.value = 0
	m, stack := s.build()
	if list, err := CheckStack(m, stack); err != nil || len(list) != 1 {
		t.Errorf("got %+v, error %v", list, err)
	}
}

// Random bytes that cannot be read are not zero.
func TestUnreadableRandom(t *testing.T) {
	s := smashedOptimized(t)
	s.value = 0
	m, stack := s.build()
	stack.Random = random
	if list, err := CheckStack(m, stack); err != nil || len(list) != 1 || list[0].Addr != s.slot {
		t.Errorf("got %+v, error %v", list, err)
	}
}

func TestUnreadableReference(t *testing.T) {
	m, stack := smashedOptimized(t).build()
	delete(m, fsBase+guardOffset)
	if list, err := CheckStack(m, stack); err == nil || len(list) != 0 {
		t.Errorf("got %+v, error %v", list, err)
	}
}

func FuzzGuard(f *testing.F) {
	for _, s := range []scene{smashedOptimized(f), smashedVariable(f), smashedAligned(f)} {
		f.Add(s.code, s.at, int64(s.sp-stackAt), int64(s.cfa-stackAt), true)
	}
	f.Add(machine(f, "eb fe ; jmp self"), uint64(1), int64(0), int64(16), false)
	f.Add(machine(f, "48 83 ec 08 ; sub rsp, 8", "eb fa ; jmp to it"), uint64(1), int64(0), int64(16), false)
	f.Fuzz(func(t *testing.T, code []byte, at uint64, sp, cfa int64, smashed bool) {
		s := scene{code: code, at: at, sp: stackAt + evidence.Addr(sp), cfa: stackAt + evidence.Addr(cfa), slot: stackAt, value: guard}
		if smashed {
			s.inner = "__stack_chk_fail"
		}
		m, stack := s.build()
		list, err := CheckStack(m, stack)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if err := list[i].Check(); err != nil {
				t.Error(err)
			}
			if found := list[i].Addr; found < s.sp || s.cfa != 0 && found >= s.cfa {
				t.Errorf("a guard at %v outside of the frame %v to %v", found, s.sp, s.cfa)
			}
		}
	})
}
