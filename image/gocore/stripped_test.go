package gocore

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/gotable"
	"diagnose/image/unwind"
	"diagnose/internal/crashtest"
)

const strippedCrasher = `package main

import (
	"os"
	"sync"
	"time"
)

type code int

type pair struct{ a, b int }

type failure struct{ code int }

func (failure) Error() string { return "disk full" }

//go:noinline
func deref(p *int) int { return *p }

func small(p *int) int { return deref(p) + 1 }

//go:noinline
func check(ok bool, what any) {
	if !ok {
		panic(what)
	}
}

func main() {
	for range 3 {
		go func() { select {} }()
	}
	time.Sleep(20 * time.Millisecond)
	switch os.Args[1] {
	case "nil":
		small(nil)
	case "goroutine":
		done := make(chan bool)
		go func() { small(nil); done <- true }()
		<-done
	case "string":
		check(false, "out of cheese")
	case "code":
		check(false, code(-42))
	case "float":
		check(false, 2.5)
	case "pair":
		check(false, pair{1, 2})
	case "error":
		check(false, failure{7})
	case "asleep":
		var mu sync.Mutex
		mu.Lock()
		mu.Lock()
	case "unlock":
		var mu sync.Mutex
		mu.Unlock()
	case "quit":
		time.Sleep(time.Minute)
	}
}
`

// readStripped makes a core and reads it without DWARF.
func readStripped(t *testing.T, exe, how string) *Result {
	t.Helper()
	crashtest.NeedKernelCores(t)
	core := crashtest.Core(t, exe, crashtest.Run{Args: []string{how}, Env: []string{"GOTRACEBACK=crash"}})
	p, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	r, err := ReadProcess(p, unwind.New(p), Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Goroutines {
		for _, f := range g.Stack.Frames {
			if f.Trust == evidence.TrustScan {
				t.Errorf("goroutine %d has a guessed frame: %+v", g.ID, f)
			}
		}
	}
	return r
}

func TestStripped(t *testing.T) {
	tests := []struct {
		how      string
		kind     evidence.FailureKind
		typ      string
		what     string
		function string
	}{
		{"nil", evidence.GoPanic, "runtime.Error", "runtime error: invalid memory address or nil pointer dereference", "main.deref"},
		{"goroutine", evidence.GoPanic, "runtime.Error", "runtime error: invalid memory address or nil pointer dereference", "main.deref"},
		{"string", evidence.GoPanic, "", "out of cheese", "main.check"},
		{"code", evidence.GoPanic, "main.code", "-42", "main.check"},
		{"float", evidence.GoPanic, "float64", "2.5", "main.check"},
		{"pair", evidence.GoPanic, "main.pair", "", "main.check"},
		{"error", evidence.GoPanic, "", "disk full", "main.check"},
		{"asleep", evidence.Deadlock, "fatal error", "all goroutines are asleep - deadlock!", "main.main"},
		{"unlock", evidence.GoPanic, "fatal error", "sync: unlock of unlocked mutex", "main.main"},
	}
	for name, flags := range map[string][]string{
		"plain": {"-ldflags=-s -w"}, "symbols": {"-ldflags=-w"}, "pie": {"-buildmode=pie", "-ldflags=-s -w"}, "unoptimised": {"-gcflags=-N -l", "-ldflags=-s -w"},
	} {
		exe := buildGo(t, strippedCrasher, "0", flags...)
		for _, test := range tests {
			t.Run(name+"/"+test.how, func(t *testing.T) {
				r := readStripped(t, exe, test.how)
				f := r.Failure
				if f == nil || f.Exception == nil || f.Site == nil {
					t.Fatalf("no failure found: %+v, limits %v", f, r.Limits)
				}
				if f.Kind != test.kind || f.Exception.Type != test.typ || f.Exception.What != test.what || f.Site.Function != test.function {
					t.Errorf("got %s %q %q in %s", f.Kind, f.Exception.Type, f.Exception.What, f.Site.Function)
				}
				if test.what == "" && f.Exception.WhatUnavailable == "" {
					t.Error("a value that is not known is not said to be so")
				}
				if f.Site.Line == 0 || !strings.HasSuffix(f.Site.File, "crasher.go") {
					t.Errorf("site is %+v", f.Site)
				}
				checkParked(t, r)
			})
		}
	}
}

func checkParked(t *testing.T, r *Result) {
	t.Helper()
	parked := 0
	for _, g := range r.Goroutines {
		if n := len(g.Stack.Frames); n == 0 || !strings.HasPrefix(g.Stack.Frames[n-1].Site.Function, "runtime.goexit") {
			t.Errorf("goroutine %d: %s, stopped %q, frames %+v", g.ID, g.Status, g.Stack.Stopped, g.Stack.Frames)
		}
		if g.Wait == "select (no cases)" && strings.HasPrefix(programSite(&g.Stack).Function, "main.main.func1") {
			parked++
		}
	}
	if parked != 3 {
		t.Errorf("%d goroutines wait in an empty select, want 3", parked)
	}
}

// A process that did not fail has goroutines and no failure.
func TestStrippedWithoutFailure(t *testing.T) {
	exe := buildGo(t, strippedCrasher, "0", "-ldflags=-s -w")
	cmd := exec.Command(exe, "quit")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p := waitParked(t, cmd.Process.Pid, exe)
	if p.Failure != nil {
		t.Errorf("a failure was found: %+v", p.Failure)
	}
	checkParked(t, p)
}

// waitParked reads a live process until its goroutines are parked.
func waitParked(t *testing.T, pid int, exe string) *Result {
	t.Helper()
	for range 100 {
		p, err := image.OpenLive(pid, image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadProcess(p, unwind.New(p), Options{Exe: exe})
		p.Close()
		parked := 0
		if err == nil {
			for _, g := range r.Goroutines {
				if g.Wait == "select (no cases)" {
					parked++
				}
			}
		}
		if parked == 3 {
			return r
		}
		runtime.Gosched()
	}
	t.Fatal("the goroutines are never parked")
	return nil
}

// An executable without section headers has the same report.
func TestStrippedWithoutSections(t *testing.T) {
	for name, flags := range map[string][]string{"plain": {"-ldflags=-s -w"}, "pie": {"-buildmode=pie", "-ldflags=-s -w"}} {
		t.Run(name, func(t *testing.T) {
			exe := buildGo(t, strippedCrasher, "0", flags...)
			data, err := os.ReadFile(exe)
			if err != nil {
				t.Fatal(err)
			}
			binary.LittleEndian.PutUint64(data[40:], 0) // e_shoff
			copy(data[58:64], make([]byte, 6))          // e_shentsize, e_shnum, e_shstrndx
			if err := os.WriteFile(exe, data, 0o700); err != nil {
				t.Fatal(err)
			}
			r := readStripped(t, exe, "nil")
			if f := r.Failure; f == nil || f.Site == nil || f.Site.Function != "main.deref" {
				t.Errorf("failure %+v", f)
			}
			checkParked(t, r)
		})
	}
}

const cgoCrasher = `package main

/*
#include <stdlib.h>
extern int goBack(int);
static int __attribute__((noinline)) again(int n) { return goBack(n) + 1; }
static void __attribute__((noinline)) die(int *p) { *p = 1; }
*/
import "C"
import "os"

//export goBack
func goBack(n C.int) C.int { panic("in the callback") }

//go:noinline
func call(how string) {
	if how == "back" {
		C.again(3)
	}
	C.die(nil)
}

func main() {
	for range 3 {
		go func() { select {} }()
	}
	call(os.Args[1])
}
`

// A goroutine that is in C has the frames of C and of Go, and one that C called
// has frames of both before and after those of C.
func TestStrippedCgo(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain": {"-ldflags=-s -w"}, "pie": {"-buildmode=pie", "-ldflags=-s -w"},
		"static": {"-ldflags=-s -w -linkmode=external -extldflags=-static"},
	} {
		exe := buildGo(t, cgoCrasher, "1", flags...)
		for _, how := range []string{"segv", "back"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r := readStripped(t, exe, how)
				g := &r.Goroutines[0]
				if !g.Failing || g.ID != 1 || !calls(&g.Stack, "main.call") || !calls(&g.Stack, "main.main") {
					t.Errorf("goroutine %+v", g)
				}
				if how == "back" && (r.Failure == nil || r.Failure.Exception.What != "in the callback" || !strings.HasSuffix(r.Failure.Site.Function, "goBack")) {
					t.Errorf("failure %+v", r.Failure)
				}
			})
		}
	}
}

// flatMemory is memory that begins at address 0x1000.
type flatMemory []byte

func (m flatMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr < 0x1000 || uint64(addr-0x1000) >= uint64(len(m)) {
		return 0, errors.New("not mapped")
	}
	n := copy(p, m[addr-0x1000:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// FuzzRuntime reads the runtime's structures from arbitrary memory.
func FuzzRuntime(f *testing.F) {
	seed := make([]byte, 2048)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(seed[at:], v) }
	put(0, 0x1100) // the list, with one goroutine
	put(8, 1)
	put(16, 1)
	put(0x100, 0x1200)
	put(0x200+gStackHigh, 0x1800)
	put(0x200+gStackLow, 0x1700)
	put(0x200+gSelf, 0x1200)
	put(0x200+gPanic, 0x1400)
	put(0x200+layouts[26].id, 1)
	put(0x400, 0x1500)
	put(0x408, 0x1600)
	seed[0x500+23] = kindString
	put(0x600, 0x1000)
	put(0x608, 20)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		all := gotable.Area{Start: 0x1000, End: 0x1000 + evidence.Addr(len(data))}
		s := &stripped{Result: &Result{}, memory: flatMemory(data), layout: layouts[26],
			table: &gotable.Table{Module: gotable.Module{Data: all, BSS: all, Types: all, PointerFree: all}}}
		s.waitReasons()
		s.fatalError(&evidence.Stack{Frames: []evidence.Frame{{Site: evidence.Site{Function: "runtime.throw"}}}})
		list, err := s.records()
		if err != nil {
			return
		}
		for i := range list {
			if e, err := s.panicValue(&list[i]); err == nil && e != nil && e.What == "" && e.WhatUnavailable == "" && e.Type != "" {
				t.Logf("an empty value of type %q", e.Type)
			}
		}
	})
}

// The offsets of the toolchain at hand are those of its DWARF.
func TestLayouts(t *testing.T) {
	f, err := elf.Open(build(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	l, err := layoutOf(runtime.Version())
	if err != nil {
		t.Fatal(err)
	}
	type field struct{ typ, name string }
	saved := fieldOffset(t, data, "runtime.g", "sched")
	for _, test := range []struct {
		field
		want int
	}{
		{field{"runtime.g", "_panic"}, gPanic}, {field{"runtime.g", "m"}, gThread},
		{field{"runtime.g", "atomicstatus"}, l.status}, {field{"runtime.g", "goid"}, l.id}, {field{"runtime.g", "waitreason"}, l.reason},
		{field{"runtime.g", "sig"}, l.signal}, {field{"runtime.g", "sigcode0"}, l.signalCode}, {field{"runtime.g", "sigcode1"}, l.faultAddr},
		{field{"runtime.gobuf", "sp"}, gSavedSP - saved}, {field{"runtime.gobuf", "pc"}, gSavedPC - saved}, {field{"runtime.gobuf", "g"}, gSelf - saved},
		{field{"runtime.gobuf", "bp"}, l.framePointer - saved},
		{field{"runtime.m", "procid"}, l.threadID}, {field{"runtime._panic", "arg"}, l.panicValue},
	} {
		if at := fieldOffset(t, data, test.typ, test.name); at != test.want {
			t.Errorf("%s.%s is at %d, not %d", test.typ, test.name, at, test.want)
		}
	}
}

func fieldOffset(t *testing.T, data *dwarf.Data, structure, name string) int {
	t.Helper()
	r := data.Reader()
	for {
		e, err := r.Next()
		if err != nil || e == nil {
			t.Fatalf("no %s.%s: %v", structure, name, err)
		}
		if e.Tag != dwarf.TagStructType || e.Val(dwarf.AttrName) != structure {
			continue
		}
		typ, err := data.Type(e.Offset)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range typ.(*dwarf.StructType).Field {
			if f.Name == name {
				return int(f.ByteOffset)
			}
		}
	}
}
