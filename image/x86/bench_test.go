package x86

import (
	"debug/elf"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
)

// libcText returns the machine code of the C library that is installed, and
// the address it is linked at.
func libcText(tb testing.TB) (code []byte, addr uint64, path string) {
	tb.Helper()
	out, err := exec.Command("gcc", "-print-file-name=libc.so.6").Output()
	path = strings.TrimSpace(string(out))
	if err != nil || path == "libc.so.6" {
		path = "/lib/x86_64-linux-gnu/libc.so.6"
	}
	f, err := elf.Open(path)
	if err != nil {
		tb.Skipf("not supported here: no C library to read: %v", err)
	}
	defer func() { _ = f.Close() }()
	s := f.Section(".text")
	if s == nil {
		tb.Fatalf("%s has no .text", path)
	}
	code, err = s.Data()
	if err != nil {
		tb.Fatal(err)
	}
	return code, s.Addr, path
}

// BenchmarkFunction decodes a stretch of the C library; the metric is the
// time of one instruction.
func BenchmarkFunction(b *testing.B) {
	code, addr, _ := libcText(b)
	code = code[:min(len(code), 20_000)]
	b.ReportAllocs()
	count := 0
	for b.Loop() {
		insts, _ := Function(code, addr)
		count += len(insts)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count), "ns/inst")
}

func BenchmarkFunctionRandom(b *testing.B) {
	code := make([]byte, 20_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range code {
		code[i] = byte(r.Uint32())
	}
	for b.Loop() {
		Function(code, 0x1000)
	}
}

// BenchmarkText formats what BenchmarkFunction decodes.
func BenchmarkText(b *testing.B) {
	code, addr, _ := libcText(b)
	insts, _ := Function(code[:min(len(code), 20_000)], addr)
	count := 0
	for b.Loop() {
		for i := range insts {
			count += len(insts[i].Text())
		}
	}
}
