package inject

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each case is the body of a function, an operator, and the body after it; every mutation of
// the operator is listed, in order.
func TestOperators(t *testing.T) {
	for _, test := range []struct {
		operator, body string
		want           []string
		root           []int // of the first one
	}{
		{"loop-bound", "for (int i = 0; i < n; i++) a[i] = 0;", []string{"for (int i = 0; i <= n; i++) a[i] = 0;"}, []int{2}},
		{"loop-bound", "while (p && i < n)\n i++;", []string{"while (p && i <= n)\n i++;"}, []int{2}},
		{"loop-bound", "if (i < n) i++;", nil, nil},
		{"allocation-size", "char *s = malloc(strlen(t) + 1);", []string{"char *s = malloc(strlen(t));"}, nil},
		{"allocation-size", "s = malloc(n * sizeof *s);", []string{"s = malloc((n * sizeof *s) - 1);"}, nil},
		{"truncated-size", "s = malloc(n);", []string{"s = malloc((unsigned char)(n));"}, nil},
		{"copy-length", "memcpy(a, b, n);", []string{"memcpy(a, b, (n) + 1);"}, nil},
		{"length-check", "int x;\nif (n > sizeof b)\n return -1;\nmemcpy(b, a, n);", []string{"int x;\n;\n\nmemcpy(b, a, n);"}, []int{3, 4, 5}},
		{"length-check", "if (n > 3) n = 3;", nil, nil},
		{"null-check", "if (!p) { puts(q); return; }\np->x = 1;", []string{";\np->x = 1;"}, []int{2, 3}},
		{"null-check", "if (p == NULL) return 1; else n++;", nil, nil},
		{"early-free", "n += p->x;\nputs(q);\nfree(p);", []string{"free(p); n += p->x;\nputs(q);\n;"}, []int{2, 4}},
		{"second-free", "free(p);\nn++;\nreturn n;", []string{"free(p);\nn++; free(p);\nreturn n;"}, []int{3}},
		{"initialisation", "int x = 0, y;\nn += x;", []string{"int x, y;\nn += x;"}, []int{2, 3}},
		{"initialisation", "static int x = 0;", nil, nil},
		{"second-free", "free(p);\nfor (;;) {\nn++;\n}\nreturn n;", []string{"free(p);\nfor (;;) {\nn++;\n} free(p);\nreturn n;"}, []int{3, 5}},
		{"length-check", "x++;\nif (n > 3)\n return -1;\nputs(p);\nb[n] = 1;\nn++;", []string{"x++;\n;\n\nputs(p);\nb[n] = 1;\nn++;"}, []int{3, 4, 6}},
		{"member-initialisation", "p->x = 0;\nputs(p->s);\nn += p->x;\nmemset(p, 0, 4);",
			[]string{";\nputs(p->s);\nn += p->x;\nmemset(p, 0, 4);", "p->x = 0;\nputs(p->s);\nn += p->x;\n;"}, []int{2, 4}},
		{"stack-address", "static char buf[8];\nreturn buf;", []string{"char buf[8];\nreturn buf;"}, []int{2}},
		{"stack-address", "static char buf[8];\nreturn 0;", nil, nil},
		{"index", "a[i] = 0;", []string{"a[(i) + 1] = 0;", "a[(i) - 1] = 0;"}, nil},
		{"pointer-increment", "for (; *s; s++)\n n++;", []string{"for (; *s; s += 2)\n n++;", "for (; *s; s++)\n n += 2;"}, nil},
		{"swapped-arguments", "memset(p, n, q);", []string{"memset(n, p, q);", "memset(p, q, n);"}, nil},
		{"wrong-struct", "p = malloc(sizeof *p);\nq = malloc(sizeof(*q));", []string{"p = malloc(sizeof p);\nq = malloc(sizeof(*q));", "p = malloc(sizeof *p);\nq = malloc(sizeof(q));"}, nil},
		{"terminator", "s[n] = '\\0';", []string{";"}, []int{2}},
		{"lock-pair", "pthread_mutex_lock(&m);\nn++;\npthread_mutex_unlock(&m);", []string{";\nn++;\n;"}, []int{2, 3, 4}},
		{"cut-section", "lock(m);\nn++;\nx++;\nunlock(m);", []string{"lock(m);\nn++;\nunlock(m); lock(m); x++;\nunlock(m);"}, []int{2, 3, 4, 5}},
		{"lock-pair", "safe_mutex_lock(&m);\nn++;\nsafe_mutex_unlock(&m);", []string{";\nn++;\n;"}, nil},
		{"lock-pair", "pthread_rwlock_wrlock(&m);\nn++;\npthread_rwlock_unlock(&m);", []string{";\nn++;\n;"}, nil},
		{"lock-pair", "mutex_lock(&m);\nn++;\nmutex_trylock(&m);", nil, nil},
		{"lock-order", "lock(a);\nlock(b);", []string{"lock(b);\nlock(a);"}, nil},
		{"while-to-if", "while (!x)\n pthread_cond_wait(&c, &m);", []string{"if (!x)\n pthread_cond_wait(&c, &m);"}, []int{2, 3}},
		{"lost-signal", "x = 1;\npthread_cond_signal(&c);", []string{"x = 1;\n;"}, nil},
		{"join", "pthread_join(t, NULL);", []string{";"}, nil},
		{"early-flag", "p->data = q;\np->ready = 1;", []string{"p->ready = 1; p->data = q;\n;"}, []int{2, 3}},
		{"plain-counter", "n = __sync_add_and_fetch(&x, 2);\natomic_fetch_sub(&y, 1);",
			[]string{"n = (*(&x) = *(&x) + (2));\natomic_fetch_sub(&y, 1);", "n = __sync_add_and_fetch(&x, 2);\n((*(&y) = *(&y) - (1)) + (1));"}, nil},
		{"allocation-size", "p = calloc(n, sizeof *p);\nq = js_malloc(J, n);\ndealloc(n);", []string{"p = calloc((n) - 1, sizeof *p);\nq = js_malloc(J, n);\ndealloc(n);", "p = calloc(n, sizeof *p);\nq = js_malloc(J, (n) - 1);\ndealloc(n);"}, nil},
		{"second-free", "js_free(J, p->x);\nreturn n;", []string{"js_free(J, p->x); js_free(J, p->x);\nreturn n;"}, nil},
		{"lock-pair", "possess(m);\nn++;\nrelease(m);", []string{";\nn++;\n;"}, nil},
		{"lock-pair", "lock(m);\nif (n) { unlock(m); return 0; }\nunlock(m);", []string{";\nif (n) { ; return 0; }\n;"}, nil},
		{"lost-signal", "s->x = 1;\ns->y = 2;\nsafe_cond_signal(s->c);", []string{"s->x = 1;\ns->y = 2;\n;"}, []int{4}},
		{"lock-pair", "sched_lock();\nn++;\nsched_unlock();", []string{";\nn++;\n;"}, nil},
		{"blind-wait", "while (!x)\n pthread_cond_wait(&c, &m);", []string{"if (1)\n pthread_cond_wait(&c, &m);"}, []int{2, 3}},
		{"last-user", "if (--p->users == 0)\n free(p);", []string{"if ((--p->users == 0, 1))\n free(p);"}, []int{2, 3}},
		{"last-user", "if (p->users == 0)\n free(p);", nil, nil},
		{"early-flag", "n = 2;\nstate = DONE;\np = q;\np = NULL;", []string{"state = DONE; n = 2;\n;\np = q;\np = NULL;"}, nil},
		{"lock-pair", "sigprocmask(SIG_BLOCK, &s, &o);\nn++;\nsigprocmask(SIG_SETMASK, &o, NULL);", []string{";\nn++;\n;"}, []int{2, 3, 4}},
		{"delayed-block", "sigprocmask(SIG_BLOCK, &s, &o);\nn++;\nx++;\nsigprocmask(SIG_SETMASK, &o, NULL);", []string{";\nn++; sigprocmask(SIG_BLOCK, &s, &o);\nx++;\nsigprocmask(SIG_SETMASK, &o, NULL);"}, nil},
		{"handler-mask", "sigaddset(&a.sa_mask, SIGALRM);\nsigaddset(&s, SIGALRM);", []string{";\nsigaddset(&s, SIGALRM);"}, nil},
		{"unblocked-wait", "while (!n)\n sigsuspend(&o);", []string{"while (!n)\n { sigprocmask(SIG_SETMASK, &o, 0); pause(); }"}, nil},
	} {
		source := "char *f(void) {\n" + test.body + "\n}\n"
		found, err := Find("x.c", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var root []int
		for _, m := range found {
			if m.Operator != test.operator {
				continue
			}
			if len(got) == 0 {
				root = m.Root
			}
			body, _ := strings.CutPrefix(string(m.Apply([]byte(source))), "char *f(void) {\n")
			got = append(got, strings.TrimSuffix(body, "\n}\n"))
			if m.Function != "f" || m.Line < 2 || len(m.Objects) == 0 && m.Operator != "loop-bound" {
				t.Errorf("%s of %q: %+v", test.operator, test.body, m)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s of %q:\n got %q\nwant %q", test.operator, test.body, got, test.want)
		}
		if test.root != nil && !slices.Equal(root, test.root) {
			t.Errorf("%s of %q: root %v, want %v", test.operator, test.body, root, test.root)
		}
	}
}

// The operators of C++ alone.
func TestOperatorsOfCPlusPlus(t *testing.T) {
	for _, test := range []struct{ operator, body, want string }{
		{"second-free", "delete p;\nn++;", "delete p;\nn++; delete p;"},
		{"scoped-lock", "std::lock_guard<std::mutex> guard(m);\nn++;", ";\nn++;"},
		{"lock-pair", "m.lock();\nn++;\nm.unlock();", ";\nn++;\n;"},
		{"lost-signal", "n = 1;\nready.notify_one();", "n = 1;\n;"},
		{"join", "t.join();", ";"},
		{"plain-counter", "users.fetch_sub(1);", "(users.store(users.load() - (1)), users.load() + (1));"},
	} {
		source := "void f() {\n" + test.body + "\n}\n"
		found, err := Find("x.cpp", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range found {
			if m.Operator == test.operator {
				got = append(got, string(m.Apply([]byte(source))))
			}
		}
		if want := "void f() {\n" + test.want + "\n}\n"; !slices.Equal(got, []string{want}) {
			t.Errorf("%s of %q:\n got %q\nwant %q", test.operator, test.body, got, want)
		}
	}
}

// A removed check matters where its body is executed.
func TestEffect(t *testing.T) {
	found, err := Find("x.c", []byte("int f(int n) {\nif (n > 3)\n\treturn 0;\na[n] = 0;\nreturn 1;\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		want := []int{4}
		if m.Operator == "length-check" {
			want = []int{3}
		}
		if !slices.Equal(m.Effect, want) {
			t.Errorf("%s has effect in %v, want %v", m.Operator, m.Effect, want)
		}
	}
}

// Every mutant of a real program of one file compiles or is refused by the compiler, and has
// as many lines as the original.
func TestMutantsOfAProgram(t *testing.T) {
	source := []byte(`#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int total;
static void *work(void *p) {
	int *list = p, sum = 0;
	for (int i = 0; i < 8; i++)
		sum += list[i];
	pthread_mutex_lock(&m);
	total += sum;
	pthread_mutex_unlock(&m);
	return NULL;
}
int main(void) {
	int *list = malloc(8 * sizeof *list);
	pthread_t t;
	if (list == NULL)
		return 1;
	memset(list, 0, 8 * sizeof *list);
	pthread_create(&t, NULL, work, list);
	work(list);
	pthread_join(t, NULL);
	printf("%d\n", total);
	free(list);
	return 0;
}
`)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	found, err := Find("x.c", source)
	if err != nil {
		t.Fatal(err)
	}
	compiled, seen := 0, map[string]bool{}
	for _, m := range found {
		mutant := m.Apply(source)
		if bytes.Equal(mutant, source) || bytes.Count(mutant, []byte("\n")) != bytes.Count(source, []byte("\n")) {
			t.Errorf("%s at %d: not a mutant of the same lines", m.Operator, m.Line)
		}
		if seen[string(mutant)] {
			t.Errorf("%s at %d: twice", m.Operator, m.Line)
		}
		seen[string(mutant)] = true
		cmd := exec.CommandContext(t.Context(), cc, "-w", "-fsyntax-only", "-x", "c", "-")
		cmd.Stdin = bytes.NewReader(mutant)
		if cmd.Run() == nil {
			compiled++
		}
	}
	if len(found) < 12 || compiled < len(found)*3/4 {
		t.Errorf("%d mutants, %d compile", len(found), compiled)
	}
}
