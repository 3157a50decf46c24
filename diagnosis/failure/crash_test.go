package failure_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// crashes are the ends that the fixture table does not have.
var crashes = []struct {
	name, source string
	flags        []string
	kind         evidence.FailureKind
	// sentence must contain this.
	sentence string
}{
	{"seccomp.c", `
#include <stddef.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
int main(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog prog = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) return 1;
    return getppid() == 0;
}`, nil, evidence.BadSystemCall, "getppid (110) is forbidden"},
	{"int3.c", `int main(void) { __asm__("int3"); return 0; }`, nil, evidence.TrapInsn, "int3"},
	{"killed.c", `
#include <signal.h>
#include <unistd.h>
int main(void) { if (fork() == 0) { kill(getppid(), SIGQUIT); _exit(0); } for (;;) pause(); }`,
		nil, evidence.KilledBySignal, "killed by SIGQUIT (SI_USER) in main: sent by process "},
	{"aborted.c", `
#include <signal.h>
#include <unistd.h>
int main(void) { if (fork() == 0) { kill(getppid(), SIGABRT); _exit(0); } for (;;) pause(); }`,
		nil, evidence.KilledBySignal, "killed by SIGABRT"},
	{"own.c", `
#include <signal.h>
#include <unistd.h>
int main(void) { kill(getpid(), SIGSEGV); return 0; }`, nil, evidence.KilledBySignal, "to itself"},
	{"handler.c", `
#include <signal.h>
#include <stdlib.h>
static int *volatile p;
static void on_fault(int s) { abort(); }
int main(void) { signal(SIGSEGV, on_fault); *p = 1; return 0; }`, nil, evidence.NullPointer, "null pointer write in main"},
	{"float.c", `
#define _GNU_SOURCE
#include <fenv.h>
static volatile double zero;
int main(void) { feenableexcept(FE_DIVBYZERO); return 1.0 / zero > 0; }`,
		[]string{"-lm"}, evidence.ArithmeticError, "floating-point division by zero"},
	{"text.c", `
#include <string.h>
struct node { long value; struct node *next; };
int main(void) {
    struct node n;
    memcpy(&n.next, "kitty\0\0", 8);
    return n.next->value;
}`, []string{"-w"}, evidence.WildPointer, `the text "kitty"`},
	{"smashed_return.c", `
#include <string.h>
__attribute__((noinline)) static void copy(const char *s) { char b[8]; strcpy(b, s); __asm__ volatile("" :: "r"(b) : "memory"); }
int main(void) { copy("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"); return 0; }`,
		[]string{"-w", "-O0", "-fno-stack-protector", "-U_FORTIFY_SOURCE"}, evidence.NonCanonical, `return to a place that is no address in copy: the return address is 0x4141414141414141`},
	{"free_middle.c", `
#include <stdlib.h>
int main(void) { char *p = malloc(100); free(p + 16); return 0; }`, []string{"-w"}, evidence.HeapCorruption, "free(): invalid"},
	{"bad_alloc.cc", `#include <new>
int main() { throw std::bad_alloc(); }`, nil, evidence.CxxTerminate, `uncaught std::bad_alloc in main`},
	{"filesystem.cc", `#include <filesystem>
int main() { return std::filesystem::file_size("/nonexistent/file") == 1; }`, []string{"-std=c++17"}, evidence.CxxTerminate,
		`filesystem error: cannot get file size: No such file or directory [/nonexistent/file]`},
	{"system.cc", `#include <system_error>
int main() { throw std::system_error(2, std::generic_category(), "open"); }`, nil, evidence.CxxTerminate, `uncaught std::system_error in main: "open: No such file or directory"`},
	{"literal.cc", `int main() { throw "plain words"; }`, nil, evidence.CxxTerminate, `uncaught char const* in main: "plain words"`},
	{"string.cc", `#include <string>
int main() { throw std::string("a string that is longer than its small buffer"); }`, nil, evidence.CxxTerminate, `"a string that is longer than its small buffer"`},
	{"negative.cc", `int main() { throw -42L; }`, nil, evidence.CxxTerminate, `uncaught long in main: "-42"`},
	{"second_base.cc", `#include <stdexcept>
struct Coded { virtual ~Coded() {} long code = 7; };
struct Both : Coded, std::runtime_error { Both() : std::runtime_error("both bases") {} };
int main() { throw Both(); }`, nil, evidence.CxxTerminate, `uncaught Both in main: "both bases"`},
	{"own_what.cc", `#include <exception>
#include <string>
struct Own : std::exception { std::string text = "member text"; const char *what() const noexcept override { return text.c_str(); } };
int main() { throw Own(); }`, []string{"-O2"}, evidence.CxxTerminate, `uncaught Own in main: "member text"`},
	{"rethrown.cc", `#include <exception>
#include <stdexcept>
int main() { std::exception_ptr p = std::make_exception_ptr(std::logic_error("kept")); std::rethrow_exception(p); }`,
		nil, evidence.CxxTerminate, `uncaught std::logic_error in main: "kept"`},
	{"joinable.cc", `#include <thread>
#include <unistd.h>
int main() { std::thread t([] { for (;;) pause(); }); }`, []string{"-pthread"}, evidence.CxxTerminate, "joinable std::thread was destroyed"},
	{"divided_again.c", `
#include <signal.h>
static volatile int zero;
static void on_fault(int sig) { signal(sig, SIG_DFL); raise(sig); }
int main(int argc, char **argv) { signal(SIGFPE, on_fault); return 1000 * argc / zero; }`, nil, evidence.DivisionByZero, "in main"},
	{"jumped_again.c", `
#include <signal.h>
#include <unistd.h>
static char room[65536];
static void on_fault(int sig) { signal(sig, SIG_DFL); kill(getpid(), sig); }
int main(void)
{
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	((void (*)(void))0x123456789)();
	return 0;
}`, []string{"-w"}, evidence.WildPointer, "0x123456789"},
	{"sent.c", `
#include <signal.h>
#include <unistd.h>
int main(void) { return kill(getpid(), SIGSEGV); }`, nil, evidence.KilledBySignal, "the process sent SIGSEGV to itself"},
	{"sent_after_a_fault.c", `
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
static sigjmp_buf back;
static int *volatile none;
static void on_fault(int sig) { siglongjmp(back, sig); }
int main(void)
{
	signal(SIGSEGV, on_fault);
	if (!sigsetjmp(back, 1))
		return *none;
	signal(SIGSEGV, SIG_DFL);
	return kill(getpid(), SIGSEGV);
}`, nil, evidence.KilledBySignal, "the process sent SIGSEGV to itself"},
	{"inactive.cc", `#include <exception>
int main() { std::terminate(); }`, nil, evidence.CxxTerminate, "terminate called without an active exception"},
	{"noexcept.cc", `#include <stdexcept>
__attribute__((noinline)) static void fail() { throw std::runtime_error("inner"); }
__attribute__((noinline)) static void quiet() noexcept { fail(); }
int main() { quiet(); }`, nil, evidence.CxxTerminate, `std::runtime_error left a noexcept function`},
	{"stripped.cc", `#include <stdexcept>
int main() { throw std::range_error("no names"); }`, []string{"-s"}, evidence.CxxTerminate, `uncaught std::range_error in stripped+`},
	{"index.cc", `#include <vector>
int main(int argc, char **) { std::vector<int> v(3); return v[argc + 5]; }`, []string{"-D_GLIBCXX_ASSERTIONS", "-O0"}, evidence.AssertionFailure, " in main"},
}

func TestCrashes(t *testing.T) {
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exe := crashtest.Compile(t, crashtest.Program{Source: c.name, Text: c.source, Flags: c.flags})
			d := diagnose(t, crashtest.Core(t, exe, crashtest.Run{}), exe)
			f := d.failure
			t.Logf("%s | %s | %+v | %v", f.Sentence, f.Message, f.Exception, d.limits)
			if f.Kind != c.kind || !strings.Contains(f.Sentence, c.sentence) {
				t.Errorf("kind %s, sentence %q; want %s, %q", f.Kind, f.Sentence, c.kind, c.sentence)
			}
			if len(d.findings) != 0 {
				t.Errorf("findings %+v", d.findings)
			}
		})
	}
}

// A rwlock and a mutex in a cycle of two threads, in a struct.
const lockCycle = `
#include <pthread.h>
static struct { long pad; pthread_mutex_t lock; pthread_rwlock_t table[2]; } shared = {
    0, PTHREAD_MUTEX_INITIALIZER, {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER}};
static pthread_barrier_t both;
static void *writer(void *arg) {
    pthread_rwlock_wrlock(&shared.table[1]);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&shared.lock);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&t, 0, writer, 0);
    pthread_mutex_lock(&shared.lock);
    pthread_barrier_wait(&both);
    pthread_rwlock_rdlock(&shared.table[1]);
    return 0;
}`

func TestLockCycle(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "locks.c", Text: lockCycle, Flags: []string{"-pthread"}})
	d := diagnose(t, crashtest.Core(t, exe, crashtest.Run{Hang: true}), exe)
	if d.failure.Kind != evidence.Deadlock || len(d.findings) != 1 || len(d.findings[0].Wait) != 2 {
		t.Fatalf("%s, findings %+v", d.failure.Sentence, d.findings)
	}
	t.Log(d.failure.Sentence)
	names := map[evidence.WaitKind]string{}
	for _, w := range d.findings[0].Wait {
		names[w.What] = w.Name
	}
	if names["mutex"] != "shared.lock" || names["rwlock"] != "shared.table[1]" {
		t.Errorf("locks are named %v", names)
	}
}

// Threads that wait as threads do when nothing is wrong: for work, for each
// other's end, for a lock whose holder waits for something without an owner.
const healthy = `
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static sem_t never;
static pthread_barrier_t held;
static void *holder(void *arg) { pthread_mutex_lock(&lock); pthread_barrier_wait(&held); sem_wait(&never); return arg; }
static void *blocked(void *arg) { pthread_barrier_wait(&held); pthread_mutex_lock(&lock); return arg; }
static void *idle(void *arg) { pthread_mutex_lock(&idle_lock); for (;;) pthread_cond_wait(&work, &idle_lock); }
int main(void) {
    pthread_t t[3];
    sem_init(&never, 0, 0);
    pthread_barrier_init(&held, 0, 2);
    pthread_create(&t[0], 0, holder, 0);
    pthread_create(&t[1], 0, blocked, 0);
    pthread_create(&t[2], 0, idle, 0);
    pthread_join(t[1], 0);
    return 0;
}`

func TestHealthyWaits(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "healthy.c", Text: healthy, Flags: []string{"-pthread"}})
	d := diagnose(t, crashtest.Core(t, exe, crashtest.Run{Hang: true}), exe)
	if len(d.findings) != 0 || d.failure.Kind != evidence.KilledBySignal {
		t.Errorf("%s, findings %+v", d.failure.Kind, d.findings)
	}
	all := strings.Join(d.waiting, "\n")
	for _, want := range []string{"waits for mutex 0x", "`lock` held by thread ", "condition variable", "semaphore", "waits for the end of thread "} {
		if !strings.Contains(all, want) {
			t.Errorf("no thread %s:\n%s", want, all)
		}
	}
	t.Log(all)
}

func TestSourceLines(t *testing.T) {
	f := crashtest.Named(t, "null_read")
	site := evidence.Site{File: f.Source, Line: f.Want.Line}
	src := failure.SourceLines(site, 2, failure.SourcePaths{})
	if src == nil || len(src.Lines) != 5 || !src.Lines[2].Failed || src.Lines[2].Number != f.Want.Line || src.Stale {
		t.Fatalf("source %+v", src)
	}
	if src := failure.SourceLines(site, 2, failure.SourcePaths{Object: "/bin/true"}); src == nil || !src.Stale {
		t.Errorf("a source newer than its object is not stale: %+v", src)
	}
	for _, bad := range []evidence.Site{{File: f.Source, Line: 1 << 20}, {File: "/", Line: 1}, {File: "/dev/zero", Line: 1}, {File: "/nonexistent", Line: 3}, {Line: 3}} {
		if src := failure.SourceLines(bad, 2, failure.SourcePaths{}); src != nil {
			t.Errorf("%+v: %+v", bad, src)
		}
	}
	moved := evidence.Site{File: "/build/elsewhere/null_read.c", Line: 2}
	if src := failure.SourceLines(moved, 1, failure.SourcePaths{Dirs: []string{f.Source[:strings.LastIndex(f.Source, "/")]}}); src == nil {
		t.Error("a source that moved is not found by its name")
	}
}
