package driver_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

const leaking = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
struct item { struct item *next; char text[4000]; };
static struct item *list;
static void keep(const char *text)
{
	struct item *i = malloc(sizeof *i);
	i->next = list;
	strcpy(i->text, text);
	list = i;
}
static void *large(size_t n)
{
	return realloc(malloc(100), n);
}
int main(int argc, char **argv)
{
	struct rlimit limit = { 100 << 20, 100 << 20 };
	setrlimit(RLIMIT_AS, &limit);
	int survived = !large((size_t)1 << 46);
#ifdef HANDLED
	char *pieces[100];
	for (int i = 0; i < 100; i++)
		pieces[i] = malloc(16 + i);
	printf("%d %p\n", survived, (void *)pieces[argc]);
	*(volatile int *)(long)(argc - 1) = 1;
#else
	printf("%d\n", survived);
	for (;;)
		keep("leak");
#endif
}
`

const filling = `
#include <map>
#include <string>
#include <sys/resource.h>
int main()
{
	struct rlimit limit = { 100 << 20, 100 << 20 };
	setrlimit(RLIMIT_AS, &limit);
	std::map<int, std::string> cache;
	for (int i = 0;; i++)
		cache[i] = std::string(5000, 'x');
}
`

// TestOutOfMemory: if an allocation failed shortly before, the report says what the memory is used
// for.
func TestOutOfMemory(t *testing.T) {
	for _, x := range []struct {
		name   string
		p      crashtest.Program
		kind   evidence.FailureKind
		failed string // of the summary; empty: no summary
		site   string // of the largest site
	}{
		{"leak", crashtest.Program{Source: "leak.c", Text: leaking, Flags: []string{"-O0", "-w"}}, evidence.NullPointer, "an allocation of 4008 bytes failed in keep at leak.c:", "in keep at leak.c:"},
		{"leak optimised", crashtest.Program{Source: "leak.c", Text: leaking, Compiler: "clang", Flags: []string{"-O2", "-w"}}, evidence.NullPointer, "an allocation of 4008 bytes failed", "leak.c:"},
		{"handled long before", crashtest.Program{Source: "leak.c", Text: leaking, Flags: []string{"-O0", "-w", "-DHANDLED"}}, evidence.NullPointer, "", ""},
		{"bad_alloc", crashtest.Program{Source: "fill.cc", Text: filling, Flags: []string{"-O1"}}, evidence.CxxTerminate, "an allocation of 5001 bytes failed", "main at fill.cc:"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			exe := crashtest.Compile(t, x.p)
			c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Env: underAgent(t, "")})})
			if c.Failure.Kind != x.kind {
				t.Fatalf("%s", c.Failure.Sentence)
			}
			var found *evidence.Finding
			for i := range c.Findings {
				if c.Findings[i].Kind == evidence.FindingOutOfMemory {
					found = &c.Findings[i]
				}
			}
			if x.failed == "" {
				if found != nil {
					t.Errorf("%+v", found)
				}
				return
			}
			if found == nil || !strings.Contains(found.Summary, "out of memory: "+x.failed) || found.Call == nil || found.Proof != evidence.FromCore {
				t.Fatalf("%+v", found)
			}
			for _, f := range found.Facts {
				if f.Name == "largest 1" && strings.Contains(f.Text, x.site) {
					return
				}
			}
			t.Errorf("the largest site is not that of %s: %+v", x.site, found.Facts)
		})
	}
}
