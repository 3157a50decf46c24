package failure

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/siginfo"

	"golang.org/x/sys/unix"
)

func signal(s unix.Signal, code int, addr evidence.Addr) evidence.Signal {
	return evidence.Signal{Number: int(s), Code: code, Addr: addr, HasAddr: addr != 0}
}

var (
	load      = []byte{0x8b, 0x40, 0x08}             // mov eax, [rax+8]
	store     = []byte{0x89, 0x10}                   // mov [rax], edx
	loadIndex = []byte{0x8b, 0x04, 0x88}             // mov eax, [rax+rcx*4]
	loadFar   = []byte{0x8b, 0x80, 0x28, 0x23, 0, 0} // mov eax, [rax+0x2328]
	divECX    = []byte{0xf7, 0xf9}                   // idiv ecx
	ud2       = []byte{0x0f, 0x0b}
	pushRBX   = []byte{0x53}
	ret       = []byte{0xc3}
	movaps    = []byte{0x0f, 0x28, 0x00} // movaps xmm0, [rax]
	hlt       = []byte{0xf4}
	callRAX   = []byte{0xff, 0xd0}
	loadSum   = []byte{0x8b, 0x04, 0x08}                // mov eax, [rax+rcx]
	loadFixed = []byte{0x8b, 0x04, 0x25, 0, 0x20, 0, 0} // mov eax, [0x2000]
	loadFirst = []byte{0x8b, 0x04, 0x25, 0x10, 0, 0, 0} // mov eax, [0x10]
	addStore  = []byte{0x01, 0x10}                      // add [rax], edx
	moveWords = []byte{0x48, 0xa5}                      // movsq
	callCell  = []byte{0xff, 0x10}                      // call [rax]
)

type regs = map[image.Register]uint64

func TestKinds(t *testing.T) {
	tests := []struct {
		name   string
		code   []byte
		sig    evidence.Signal
		regs   regs
		want   evidence.FailureKind
		access evidence.AccessKind
		addr   evidence.Addr
		proof  evidence.Proof
	}{
		{"null member", load, segv(segvMapErr, 8), nil, evidence.NullPointer, evidence.Read, 8, evidence.FromCore},
		{"small number", load, segv(segvMapErr, 0x1008), regs{image.RAX: 0x1000}, evidence.NearNullPointer, evidence.Read, 0x1008, evidence.FromCore},
		{"small base", load, segv(segvMapErr, 0x18), regs{image.RAX: 0x10}, evidence.NearNullPointer, evidence.Read, 0x18, evidence.FromCore},
		{"far member", loadFar, segv(segvMapErr, 0x2328), nil, evidence.NullPointer, evidence.Read, 0x2328, evidence.FromCore},
		{"null store", store, segv(segvMapErr, 0), nil, evidence.NullPointer, evidence.Write, 0, evidence.FromCore},
		{"null array", loadIndex, segv(segvMapErr, 0x4000000), regs{image.RCX: 0x1000000}, evidence.NullPointer, evidence.Read, 0x4000000, evidence.Inferred},
		{"non-canonical", load, segv(siginfo.Kernel, 0), regs{image.RAX: 0x4141414141414141}, evidence.NonCanonical, evidence.Read, 0x4141414141414149, evidence.FromCore},
		{"wild", load, segv(segvMapErr, 0x123456780008), regs{image.RAX: 0x123456780000}, evidence.WildPointer, evidence.Read, 0x123456780008, evidence.Inferred},
		{"kernel half", load, segv(segvMapErr, ^evidence.Addr(0)-7), regs{image.RAX: ^uint64(15)}, evidence.WildPointer, evidence.Read, ^evidence.Addr(0) - 7, evidence.Inferred},
		{"unmapped", load, segv(segvMapErr, dataAt+0x2008), regs{image.RAX: dataAt + 0x2000}, evidence.UnmappedAddress, evidence.Read, dataAt + 0x2008, evidence.FromCore},
		{"read-only", store, segv(segvAccErr, constAt), regs{image.RAX: constAt}, evidence.WriteToReadOnly, evidence.Write, constAt, evidence.FromCore},
		{"protected", store, segv(segvAccErr, guardAt), regs{image.RAX: guardAt, image.RSP: stackAt + 0x1800, image.RDX: 1}, evidence.ProtectedPage, evidence.Write, guardAt, evidence.FromCore},
		{"write, perhaps read-only", store, segv(segvAccErr, maybeAt), regs{image.RAX: maybeAt}, evidence.ProtectedPage, evidence.Write, maybeAt, evidence.Inferred},
		{"read, so not read-only", load, segv(segvAccErr, maybeAt+8), regs{image.RAX: maybeAt}, evidence.ProtectedPage, evidence.Read, maybeAt + 8, evidence.FromCore},
		{"execute, perhaps data", nil, segv(segvAccErr, maybeAt), regs{image.RIP: maybeAt}, evidence.ProtectedPage, evidence.Execute, maybeAt, evidence.Inferred},
		{"execute data", nil, segv(segvAccErr, dataAt), regs{image.RIP: dataAt}, evidence.ExecuteOfData, evidence.Execute, dataAt, evidence.FromCore},
		{"call null", nil, segv(segvMapErr, 0), regs{image.RIP: 0}, evidence.NullPointer, evidence.Execute, 0, evidence.FromCore},
		{"jump wild", nil, segv(segvMapErr, 0x234567890000), regs{image.RIP: 0x234567890000}, evidence.WildPointer, evidence.Execute, 0x234567890000, evidence.Inferred},
		{"call text", callRAX, segv(siginfo.Kernel, 0), regs{image.RAX: 0x4242424242424242}, evidence.NonCanonical, evidence.Execute, 0x4242424242424242, evidence.FromCore},
		{"push overflow", pushRBX, segv(segvAccErr, stackAt-8), regs{image.RSP: stackAt}, evidence.StackOverflow, evidence.Write, stackAt - 8, evidence.FromCore},
		{"misaligned", movaps, segv(siginfo.Kernel, 0), regs{image.RAX: dataAt + 4}, evidence.UnknownFailure, evidence.Read, dataAt + 4, evidence.Inferred},
		{"privileged", hlt, segv(siginfo.Kernel, 0), nil, evidence.IllegalInsn, "", 0, evidence.FromCore},
		{"fixed address", loadFixed, segv(segvMapErr, 0x2000), nil, evidence.NearNullPointer, evidence.Read, 0x2000, evidence.FromCore},
		{"fixed address in the first page", loadFirst, segv(segvMapErr, 0x10), nil, evidence.NullPointer, evidence.Read, 0x10, evidence.FromCore},
		{"index without base", []byte{0x8b, 0x04, 0x8d, 0, 0, 0, 0}, segv(segvMapErr, 0x4000000), regs{image.RCX: 0x1000000}, evidence.WildPointer, evidence.Read, 0x4000000, evidence.Inferred},
		{"sum with zero", loadSum, segv(segvMapErr, 0x4000000), regs{image.RCX: 0x4000000}, evidence.WildPointer, evidence.Read, 0x4000000, evidence.Inferred},
		{"text near mappings", load, segv(segvMapErr, 0x555555556161), regs{image.RAX: 0x555555556159}, evidence.UnmappedAddress, evidence.Read, 0x555555556161, evidence.FromCore},
		{"mapped since", store, segv(segvMapErr, constAt), regs{image.RAX: constAt}, evidence.UnmappedAddress, evidence.Write, constAt, evidence.FromCore},
		{"permitted since", load, segv(segvAccErr, constAt+8), regs{image.RAX: constAt}, evidence.ProtectedPage, evidence.Read, constAt + 8, evidence.FromCore},
		{"read-only, read and written", addStore, segv(segvAccErr, constAt), regs{image.RAX: constAt}, evidence.WriteToReadOnly, evidence.Write, constAt, evidence.FromCore},
		{"last bytes non-canonical", load, segv(siginfo.Kernel, 0), regs{image.RAX: 0x7ffffffffff6}, evidence.NonCanonical, evidence.Read, 0x7ffffffffffe, evidence.FromCore},
		{"call of an address", callRAX, segv(siginfo.Kernel, 0), regs{image.RAX: codeAt + 0x100}, evidence.UnknownFailure, "", 0, evidence.FromCore},
		{"aligned", movaps, segv(siginfo.Kernel, 0), regs{image.RAX: dataAt + 16}, evidence.UnknownFailure, "", 0, evidence.FromCore},
		{"jump small", nil, segv(segvMapErr, 0x41), regs{image.RIP: 0x41}, evidence.NearNullPointer, evidence.Execute, 0x41, evidence.FromCore},
		{"execute mapped since", nil, segv(segvMapErr, dataAt), regs{image.RIP: dataAt}, evidence.UnmappedAddress, evidence.Execute, dataAt, evidence.FromCore},
		{"execute protected", nil, segv(segvAccErr, guardAt), regs{image.RIP: guardAt}, evidence.ProtectedPage, evidence.Execute, guardAt, evidence.FromCore},
		{"sent", load, segv(0, 0), nil, evidence.KilledBySignal, "", 0, evidence.FromCore},
		{"bus", load, signal(unix.SIGBUS, busAdrErr, dataAt+8), regs{image.RAX: dataAt}, evidence.BusError, evidence.Read, dataAt + 8, evidence.FromCore},
		{"divide by zero", divECX, signal(unix.SIGFPE, fpeIntDiv, codeAt), nil, evidence.DivisionByZero, "", 0, evidence.FromCore},
		{"divide overflow", divECX, signal(unix.SIGFPE, fpeIntDiv, codeAt), regs{image.RCX: 0xffffffff}, evidence.DivisionOverflow, "", 0, evidence.FromCore},
		{"no division", load, signal(unix.SIGFPE, fpeIntDiv, codeAt), nil, evidence.DivisionByZero, "", 0, evidence.Inferred},
		{"float", load, signal(unix.SIGFPE, 7, codeAt), nil, evidence.ArithmeticError, "", 0, evidence.FromCore},
		{"ud2", ud2, signal(unix.SIGILL, 2, codeAt), nil, evidence.TrapInsn, "", 0, evidence.FromCore},
		{"illegal", []byte{0x06}, signal(unix.SIGILL, 2, codeAt), nil, evidence.IllegalInsn, "", 0, evidence.FromCore},
		{"int3", []byte{0xcc}, signal(unix.SIGTRAP, siginfo.Kernel, 0), regs{image.RIP: codeAt + 1}, evidence.TrapInsn, "", 0, evidence.FromCore},
		{"seccomp", load, signal(unix.SIGSYS, sysSeccomp, codeAt), regs{image.RAX: 59}, evidence.BadSystemCall, "", 0, evidence.FromCore},
		{"quit", load, signal(unix.SIGQUIT, 0, 0), nil, evidence.KilledBySignal, "", 0, evidence.FromCore},
		{"stopped", load, signal(unix.SIGSTOP, 0, 0), nil, evidence.NoFailure, "", 0, evidence.FromCore},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := newFake(test.code).judge(test.sig, test.regs)
			f := j.classify()
			Describe(&f, Names{})
			if f.Kind != test.want || f.Proof != test.proof {
				t.Errorf("kind %s (%s), want %s (%s)", f.Kind, f.Proof, test.want, test.proof)
			}
			checkFault(t, f.Fault, test.access, test.addr)
			if !strings.Contains(f.Sentence, " in work") && !strings.Contains(f.Sentence, " in main") && f.Kind != evidence.NoFailure {
				t.Errorf("sentence %q names no function", f.Sentence)
			}
			t.Log(f.Sentence)
		})
	}
}

func checkFault(t *testing.T, f *evidence.Fault, access evidence.AccessKind, addr evidence.Addr) {
	t.Helper()
	if access == "" {
		if f != nil {
			t.Errorf("fault %+v, want none", f)
		}
		return
	}
	if f == nil || f.Access != access || f.Addr != addr {
		t.Errorf("fault %+v, want %s at %v", f, access, addr)
	}
}

func TestArrival(t *testing.T) {
	tests := []struct {
		want     evidence.Arrival
		at, back uint64 // the words at and just below the stack pointer
	}{
		{evidence.ArrivedByCall, codeAt + 0x105, 0},
		{evidence.ArrivedByCall, codeAt + 0x105, 0x234567890000},
		{evidence.ArrivedByReturn, codeAt + 0x108, 0x234567890000},
		{evidence.ArrivedByCall, codeAt + 0x207, 0},
		{evidence.ArrivedByReturn, codeAt + 0x305, 0x234567890000},
		{evidence.ArrivedByReturn, codeAt + 0x405, 0x234567890000},
		{evidence.ArrivedByReturn, dataAt + 0x105, 0x234567890000},
		{evidence.ArrivedByReturn, codeAt + 0x505, 0x234567890000},
		{evidence.ArrivedByJump, 0x1234, 0},
	}
	for _, test := range tests {
		f := newFake(nil)
		f.put(codeAt+0x200, []byte{0xff, 0x94, 0xc3, 1, 0, 0, 0}) // call [rbx+rax*8+1]
		f.put(codeAt+0x303, []byte{0xff, 0xe0})                   // jmp rax
		f.put(codeAt+0x402, []byte{0xff, 0xd0})                   // call rax, and one byte more
		f.put(codeAt+0x503, []byte{0xff, 0x18})                   // call far [rax]
		f.put(dataAt+0x103, []byte{0xff, 0xd0})
		f.put64(stackAt+0x1800, test.at)
		f.put64(stackAt+0x17f8, test.back)
		j := f.judge(segv(segvMapErr, 0x234567890000), regs{image.RIP: 0x234567890000})
		if got := j.cpu.arrival(0x234567890000); got != test.want {
			t.Errorf("arrived by %s, want %s", got, test.want)
		}
	}
}

// A stack that cannot be read tells nothing of how the null pointer was
// reached.
func TestArrivalWithoutStack(t *testing.T) {
	j := newFake(nil).judge(segv(segvMapErr, 0), regs{image.RIP: 0, image.RSP: guardAt + 0x800})
	if got := j.cpu.arrival(0); got != evidence.ArrivedByJump {
		t.Errorf("arrived by %s", got)
	}
}

func TestOperands(t *testing.T) {
	f := newFake(loadIndex)
	f.put(dataAt+8, []byte{0x78, 0x56, 0x34, 0x12})
	j := f.judge(segv(segvMapErr, 0), regs{image.RAX: dataAt, image.RCX: 2})
	got := j.classify().Instruction
	if got == nil || len(got.Operands) < 2 {
		t.Fatalf("instruction %+v", got)
	}
	memory := got.Operands[1]
	if memory.Address == nil || *memory.Address != dataAt+8 || memory.Value.Text != "0x12345678" || len(memory.Registers) != 2 {
		t.Errorf("memory operand %+v", memory)
	}
	j = f.judge(segv(segvMapErr, 0), nil)
	memory = j.classify().Instruction.Operands[1]
	if memory.Value.Text != "" || memory.Value.Unavailable == "" {
		t.Errorf("unreadable operand is shown as %+v", memory.Value)
	}
}

func TestTextIn(t *testing.T) {
	for v, want := range map[uint64]string{
		0x41414141: "AAAA", 0x414141: "", 0x4142: "", 0x0000646c726f7720: " world", 0x7fff12345678: "", 0: "", 0x4100004141414141: "",
	} {
		if got := textIn(v); got != want {
			t.Errorf("%#x spells %q, want %q", v, got, want)
		}
	}
}

func TestSystemCallNames(t *testing.T) {
	for number, want := range map[int64]string{
		0: "read", 59: "execve", 202: "futex", 231: "exit_group", 319: "memfd_create", 334: "rseq",
		424: "pidfd_send_signal", 435: "clone3", 449: "futex_waitv", 400: "system call 400", -1: "system call -1",
	} {
		if got := systemCallName(number); got != want {
			t.Errorf("system call %d is %q, want %q", number, got, want)
		}
	}
}

func TestCycle(t *testing.T) {
	repeat := func(turn []evidence.Addr, n int) []evidence.Addr {
		var out []evidence.Addr
		for range n {
			out = append(out, turn...)
		}
		return out
	}
	var distinct []evidence.Addr
	for i := range evidence.Addr(maxCycle) {
		distinct = append(distinct, 100+i)
	}
	tests := []struct {
		name                 string
		ids                  []evidence.Addr
		start, period, turns int
	}{
		{"self", append(repeat([]evidence.Addr{1}, 50), 9), 0, 1, 50},
		{"pair under a leaf", append([]evidence.Addr{7}, append(repeat([]evidence.Addr{1, 2}, 40), 9)...), 1, 2, 40},
		{"none", []evidence.Addr{1, 2, 3, 4, 5}, 0, 0, 0},
		{"too short", []evidence.Addr{1, 1}, 0, 1, 2},
		{"exactly three turns", []evidence.Addr{1, 2, 1, 2, 1, 2}, 0, 2, 3},
		{"most of the stack is something else", []evidence.Addr{1, 1, 1, 3, 4, 5, 6, 7, 8, 9}, 0, 1, 3},
		{"far apart", append(append([]evidence.Addr{1}, distinct...), 1), 0, maxCycle, 2},
		{"later turns", []evidence.Addr{1, 1, 1, 2, 3, 4, 2, 3, 4, 2, 3, 4}, 3, 3, 3},
	}
	for _, test := range tests {
		start, period, turns := cycle(test.ids)
		if start != test.start || period != test.period || turns != test.turns {
			t.Errorf("%s: start %d, period %d, turns %d; want %d, %d, %d", test.name, start, period, turns, test.start, test.period, test.turns)
		}
	}
}

// After an overwritten return address the stack does not name the function that returned. A frame
// found by a scan is no place of the failure.
func TestGuessedSite(t *testing.T) {
	frames := make([]unwind.Frame, 2)
	stack := &callStack{process: &process{target: &fake{}}, frames: frames}
	for trust, want := range map[evidence.Trust]bool{evidence.TrustScan: true, evidence.TrustPrologue: false} {
		frames[1].Trust = trust
		if got := stack.guessedSite(); got != want {
			t.Errorf("%s: %v, want %v", trust, got, want)
		}
	}
}

// A scan of the stack may find an old return address in a runtime's library, mainly the agent's.
// That is not the source of a jump to nowhere.
func TestGuessInRuntime(t *testing.T) {
	for module, want := range map[string]bool{"/home/me/libdiagnose.so": false, "/bin/program": true} {
		f := newFake(load)
		j := f.judge(segv(segvMapErr, 1), map[image.Register]uint64{image.RIP: 1})
		j.stack.frames[1].Trust, j.stack.frames[1].Calls[0].Site.Module = evidence.TrustScan, module
		j.stack.frames[0].Calls = nil
		j.stack.frames = j.stack.frames[:2]
		got := j.classify()
		if got.Fault == nil || got.Fault.Access != evidence.Execute || got.Arrival == evidence.ArrivedByReturn {
			t.Fatalf("%s: %+v", module, got)
		}
		if (got.Site != nil) != want {
			t.Errorf("%s: site %+v", module, got.Site)
		}
	}
}
