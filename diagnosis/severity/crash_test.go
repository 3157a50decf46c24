package severity_test

import (
	"context"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// crashes are programs of which the class and the estimate are known.
var crashes = []struct {
	name, source, compiler string
	flags                  []string
	class                  evidence.SeverityClass
	estimate               evidence.Exploitability
}{
	{"read.c", `int main(void) { return *(volatile int *)0x123456789000; }`, "gcc", []string{"-O2"}, evidence.ClassSourceAV, evidence.NotExploitable},
	{"read_null.c", `struct s { int a[9], b; }; int main(int n, char **v) { struct s *volatile p = 0; return p->b; }`, "clang", []string{"-O0"}, evidence.ClassSourceAVNearNull, evidence.NotExploitable},
	{"write.c", `int main(void) { char *volatile p = (char *)0x4141414141414141; p[3] = 1; return 0; }`, "gcc", []string{"-O1"}, evidence.ClassDestAV, evidence.Exploitable},
	{"write_null.c", `int main(void) { int *volatile p = 0; p[3]++; return 0; }`, "clang", []string{"-O2"}, evidence.ClassDestAVNearNull, evidence.ProbablyExploitable},
	// The far member is as near to null as any: no one chose its distance.
	{"far_member.c", `struct s { char a[1 << 20]; int b; }; int main(void) { struct s *volatile p = 0; *(volatile int *)&p->b = 1; return 0; }`, "gcc", []string{"-O2"}, evidence.ClassDestAVNearNull, evidence.ProbablyExploitable},
	{"jump.c", `int main(void) { void (*volatile f)(void) = (void (*)(void))0x123456789000; f(); return 0; }`, "gcc", []string{"-O0"}, evidence.ClassSegFaultOnPC, evidence.Exploitable},
	{"jump_null.c", `int main(void) { void (*volatile f)(void) = 0; f(); return 0; }`, "clang", []string{"-O1"}, evidence.ClassSegFaultOnPCNearNull, evidence.ProbablyExploitable},
	{"call.c", `int main(void) { void (**volatile f)(void) = (void (**)(void))0x123456789000; f[2](); return 1; }`, "gcc", []string{"-O1"}, evidence.ClassCallAV, evidence.Exploitable},
	{"virtual.cc", `struct a { virtual int f(); }; int a::f() { return 1; } int main() { a *volatile p = (a *)0x123456789000; return p->f() + 1; }`, "g++", []string{"-O1"}, evidence.ClassCallAVTainted, evidence.Exploitable},
	{"next_write.c", `int main(void) { int **volatile p = (int **)0x123456789000; **p = 1; return 0; }`, "gcc", []string{"-O2"}, evidence.ClassDestAVTainted, evidence.Exploitable},
	{"return.c", `int main(void) { __asm__ volatile("movabs $0x4141414141414141, %%rax; mov %%rax, (%%rsp); ret" ::: "memory"); return 0; }`, "gcc", nil, evidence.ClassReturnAV, evidence.Exploitable},
	{"ud2.c", `int main(void) { __builtin_trap(); }`, "gcc", nil, evidence.ClassTrapSignal, evidence.NotExploitable},
	{"illegal.c", `int main(void) { __asm__(".byte 0x06"); return 0; }`, "clang", nil, evidence.ClassBadInstruction, evidence.ProbablyExploitable},
	{"abort.c", `#include <stdlib.h>
int main(void) { abort(); }`, "gcc", nil, evidence.ClassAbortSignal, evidence.NotExploitable},
	{"divide.c", `int main(int n, char **v) { volatile int z = 0; return n / z; }`, "gcc", nil, evidence.ClassFPE, evidence.NotExploitable},
	{"heap.c", `#include <stdlib.h>
int main(void) { char *volatile p = malloc(64); char *volatile q = p; free(p); free(q); return 0; }`, "gcc", []string{"-O1"}, evidence.ClassHeapError, evidence.ProbablyExploitable},
	{"recursion.c", `int f(volatile int *p) { volatile int a[99]; a[3] = *p; return f(a) + a[3]; } int main(int n, char **v) { return f(&n); }`, "clang", []string{"-O0"}, evidence.ClassStackOverflow, evidence.NotExploitable},
	{"copy_from.c", `#include <string.h>
char to[64]; int main(void) { const char *volatile from = (char *)0x123456789000; __asm__ volatile("rep movsb" :: "D"(to), "S"(from), "c"(64) : "memory"); return 0; }`, "gcc", nil, evidence.ClassSourceAV, evidence.NotExploitable},
}

func TestCrashes(t *testing.T) {
	crashtest.NeedKernelCores(t)
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: c.name, Text: c.source, Compiler: c.compiler, Flags: append([]string{"-g", "-w"}, c.flags...)})
			found, err := driver.Crash(context.Background(), driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{}), Exe: exe})
			if err != nil {
				t.Fatal(err)
			}
			s := found.Severity
			if s == nil || s.AtFailure != c.class || c.class.Estimate() != c.estimate {
				t.Errorf("%+v, want %s %s", s, c.class, c.estimate)
			}
		})
	}
}

// A signal that was sent from outside, and a program that ends well, have no severity.
func TestNoSeverity(t *testing.T) {
	crashtest.NeedKernelCores(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "killed.c", Flags: []string{"-w"}, Text: `
#include <signal.h>
#include <unistd.h>
int main(void) { if (fork() == 0) { kill(getppid(), SIGSEGV); _exit(0); } for (;;) pause(); }`})
	found, err := driver.Crash(context.Background(), driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{}), Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	if found.Severity != nil {
		t.Errorf("%+v, want none", found.Severity)
	}
}
