package failure

import (
	"encoding/binary"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"

	"golang.org/x/sys/unix"
)

func TestKindOfMessage(t *testing.T) {
	tests := map[string]evidence.FailureKind{
		"": "",
		"*** stack smashing detected ***: terminated":                                       evidence.StackSmashing,
		"*** Error in `./prog': free(): invalid pointer: 0x00005649323ff030 ***":            evidence.HeapCorruption,
		"*** buffer overflow detected ***: terminated":                                      evidence.FortifyFailure,
		"*** %n in writable segment detected ***":                                           evidence.FortifyFailure,
		"free(): invalid pointer":                                                           evidence.HeapCorruption,
		"double free or corruption (!prev)":                                                 evidence.HeapCorruption,
		"corrupted size vs. prev_size":                                                      evidence.HeapCorruption,
		"munmap_chunk(): invalid pointer":                                                   evidence.HeapCorruption,
		"prog: malloc.c:2617: sysmalloc: Assertion `(old_top == initial_top (av))' failed.": evidence.HeapCorruption,
		"Fatal glibc error: malloc assertion failure in sysmalloc: old_size":                evidence.HeapCorruption,
		"prog: a.c:3: f: Assertion `n > 0' failed.":                                         evidence.AssertionFailure,
		"The futex facility returned an unexpected error code.":                             "",
	}
	for message, want := range tests {
		if got := kindOfMessage(message); got != want {
			t.Errorf("%q is %q, want %q", message, got, want)
		}
	}
}

func TestCondition(t *testing.T) {
	for message, want := range map[string]string{
		"": "",
		"prog: a.c:3: f: Assertion `n > 0' failed.":       "n > 0",
		"prog: a.c:3: f: Assertion `c != '\\'' failed.":   `c != '\'`,
		"v.h:3: f: Assertion 'n < size()' failed.":        "n < size()",
		"prog: a.c:3: f: Assertion `cut off by the limit": "cut off by the limit",
		"free(): invalid pointer":                         "",
	} {
		if got := condition(message); got != want {
			t.Errorf("%q has the condition %q, want %q", message, got, want)
		}
	}
}

// TestRefusedPointer: old messages of malloc name the pointer, and say whether free refused it.
func TestRefusedPointer(t *testing.T) {
	const old = "*** Error in `./prog': free(): invalid pointer: 0x00005649323ff030 ***"
	if at, ok := RefusedPointer(old); !ok || at != 0x5649323ff030 || !RefusedByFree(old) {
		t.Errorf("%v, %v", at, ok)
	}
	for _, message := range []string{"free(): invalid pointer", "*** Error in `./prog': free(): invalid pointer: 0x ***", ""} {
		if at, ok := RefusedPointer(message); ok {
			t.Errorf("%q: %v", message, at)
		}
	}
	if RefusedByFree("malloc(): invalid size (unsorted)") || !RefusedByFree("double free or corruption (!prev)") {
		t.Error("which messages are free's")
	}
}

func TestAbortMessage(t *testing.T) {
	f := newFake(nil)
	f.symbols = []image.Symbol{{Name: "__abort_msg", Addr: dataAt, Size: 8}}
	j := f.judge(evidence.Signal{Number: int(unix.SIGABRT), Code: siTkill}, nil)
	if text, ok := j.abortMessage(); ok || len(j.limits.list) != 0 {
		t.Errorf("a null __abort_msg gives %q, limits %v", text, j.limits.list)
	}
	f.put64(dataAt, dataAt+0x100)
	f.put(dataAt+0x104, []byte("free(): invalid pointer\n\x00"))
	if text, ok := j.abortMessage(); !ok || text != "free(): invalid pointer" {
		t.Errorf("message %q", text)
	}
	f.put64(dataAt, 0x1234)
	if text, ok := j.abortMessage(); ok || len(j.limits.list) != 1 {
		t.Errorf("an unreadable message gives %q, limits %v", text, j.limits.list)
	}
}

// A function that returns a member is followed, one that calls is not.
func TestFollow(t *testing.T) {
	tests := []struct {
		name string
		code []byte
		want evidence.Addr
		ok   bool
	}{
		{"member", []byte{0x48, 0x8b, 0x47, 0x08, 0xc3}, 0x1234, true},
		{"constant", []byte{0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3}, codeAt + 0x17, true},
		{"unoptimised", []byte{0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x7d, 0xf8, 0x48, 0x8b, 0x45, 0xf8, 0x48, 0x8b, 0x40, 0x08, 0x5d, 0xc3}, 0x1234, true},
		{"call", []byte{0xe8, 0, 0, 0, 0, 0xc3}, 0, false},
		{"loop", []byte{0xeb, 0xfe}, 0, false},
		{"store", []byte{0x48, 0x89, 0x3f, 0xc3}, 0, false},
		{"nothing", []byte{0xc3}, 0, false},
	}
	for _, test := range tests {
		f := newFake(test.code)
		f.put64(dataAt+8, 0x1234)
		if got, ok := follow(f, codeAt, dataAt); got != test.want || ok != test.ok {
			t.Errorf("%s: %v, %v; want %v, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}

// signalFrame puts the kernel's frame of a handler between abort and work.
func signalFrame(f *fake, trap, code uint64, cr2 evidence.Addr, number, siCode uint32) *judge {
	const at = stackAt + 0x400
	f.put64(at+frameError, code)
	f.put64(at+frameTrap, trap)
	f.put64(at+frameCR2, uint64(cr2))
	var info [24]byte
	binary.LittleEndian.PutUint32(info[0:], number)
	binary.LittleEndian.PutUint32(info[8:], siCode)
	binary.LittleEndian.PutUint64(info[16:], uint64(cr2))
	f.put(at+frameInfo, info[:])
	j := f.judge(evidence.Signal{Number: int(unix.SIGABRT), Code: siTkill}, nil)
	handler := j.stack.frames[1]
	trampoline := unwind.Frame{Kind: evidence.SignalFrame, Trust: evidence.TrustCFI, Registers: handler.Registers}
	trampoline.Registers.Set(image.RSP, at)
	j.stack.frames = append([]unwind.Frame{handler, trampoline}, j.stack.frames...)
	return j
}

func TestFaultBehindHandler(t *testing.T) {
	tests := []struct {
		name           string
		trap, code     uint64
		cr2            evidence.Addr
		number, siCode uint32
		want           evidence.FailureKind
	}{
		{"siginfo", trapPage, 6, 8, 11, segvMapErr, evidence.NullPointer},
		{"no siginfo", trapPage, 6, 8, 0xdead, 0xbeef, evidence.NullPointer},
		{"older fault", trapPage, 6, 0x5000, 0, 0, evidence.Abort},
		{"siginfo of another fault", trapDivide, 0, 8, 11, segvMapErr, evidence.Abort},
		{"asynchronous", trapPage, 0, 0x5000, 10, 0, evidence.Abort},
	}
	for _, test := range tests {
		j := signalFrame(newFake(load), test.trap, test.code, test.cr2, test.number, test.siCode)
		f := j.classify()
		if f.Kind != test.want {
			t.Errorf("%s: %s, want %s", test.name, f.Kind, test.want)
		}
		if test.want == evidence.NullPointer && (f.Site == nil || f.Site.Function != "work" || !strings.Contains(f.Message, "SIGABRT")) {
			t.Errorf("%s: site %+v, message %q", test.name, f.Site, f.Message)
		}
	}
}

// TestDivisionBehindHandler: the record of a thread without any fault has the exception number of a
// division. A signal that arrived at a division does not show that the division failed.
func TestDivisionBehindHandler(t *testing.T) {
	for _, test := range []struct {
		divisor, low, high uint64
		want               evidence.FailureKind
	}{
		{0, 9, 0, evidence.DivisionByZero},
		{3, 9, 0, evidence.Abort},
		{3, 9, 3, evidence.DivisionOverflow}, // div ecx: the quotient has more than 32 bits
		{1 << 32, 9, 0, evidence.DivisionByZero},
	} {
		j := signalFrame(newFake(divECX), trapDivide, 0, 0, 0xdead, 0xbeef)
		code := &j.stack.frames[2].Registers
		code.Set(image.RCX, test.divisor)
		code.Set(image.RAX, test.low)
		code.Set(image.RDX, test.high)
		if got := j.classify().Kind; got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	for _, x := range []struct {
		high, low, divisor uint64
		size               int
		fits               bool
	}{
		{^uint64(0), 1 << 63, ^uint64(0), 8, false}, // the smallest by -1
		{^uint64(0), 1<<63 + 1, ^uint64(0), 8, true},
		{0, 15000000, 9, 8, true},
		{0xffffffff, 0xfffffff0, 3, 4, true},
		{1, 0, 2, 4, false},
		{0xff, 0x80, 0xff, 1, false},
	} {
		d := &evidence.Division{Dividend: number(x.size, true, x.high, x.low).String(), Divisor: number(x.size, true, x.divisor).String(),
			Bits: 8 * x.size, Signed: true}
		if got := fits(d); got != x.fits {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// A handler that raises SIGABRT again does not hide the caller of abort.
func TestAbortBehindHandler(t *testing.T) {
	for _, test := range []struct {
		names []string // the interrupted functions, innermost first
		want  string
	}{
		{[]string{"__pthread_kill_implementation", "__GI_raise", "__GI_abort", "work"}, "work"},
		{[]string{"pthread_kill", "raise", "abort", "work"}, "work"},
		{[]string{"read", "work"}, "handler"}, // it waited when another process sent the signal
	} {
		j := signalFrame(newFake(load), trapPage, 0, 0x5000, 0, 0)
		handler, trampoline, code := j.stack.frames[0], j.stack.frames[1], j.stack.frames[2]
		named := func(frame unwind.Frame, name string) unwind.Frame {
			site := frame.Calls[0].Site
			if site.Function = name; name != "work" && name != "handler" {
				site.Module = "/lib/x86_64-linux-gnu/libc.so.6"
			}
			frame.Calls = []image.SymbolizedCall{{Site: site}}
			return frame
		}
		j.stack.frames = []unwind.Frame{named(code, "raise"), named(handler, "handler"), trampoline}
		for _, name := range test.names {
			j.stack.frames = append(j.stack.frames, named(code, name))
		}
		j.stack.frames[0].Calls[0].Site.Module = "/lib/x86_64-linux-gnu/libc.so.6"
		f := j.classify()
		if f.Kind != evidence.Abort || f.Site == nil || f.Site.Function != test.want {
			t.Errorf("%v: %s in %+v, want %s", test.names, f.Kind, f.Site, test.want)
		}
	}
}
