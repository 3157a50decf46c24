package probe_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/internal/recordtest"
	"diagnose/probe"
	"diagnose/probe/blocks"
	"diagnose/probe/sandbox"
	"diagnose/replay/record"
)

const testPrograms = "../internal/testdata/probe/"

// code parses debug code.
func code(t *testing.T, name, text string) []*blocks.Source {
	t.Helper()
	s, err := blocks.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return []*blocks.Source{s}
}

func codeFile(t *testing.T, path string) []*blocks.Source {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return code(t, path, string(data))
}

// printed is what the code printed, with a line for each failure.
func printed(log *probe.Log) string {
	var b strings.Builder
	for i := range log.Rows {
		b.WriteString(log.Rows[i].Printed)
		if f := log.Rows[i].Failure; f != nil {
			fmt.Fprintf(&b, "<%d %s:%d %s>\n", f.Kind, filepath.Base(f.File), f.Line, f.Name)
		}
	}
	return b.String()
}

// TestMarkedSource: code in a copy of the source finds the operation that makes a count wrong.
func TestMarkedSource(t *testing.T) {
	marked := testPrograms + "marked/workqueue.c"
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, testPrograms+"workqueue.c", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Code: codeFile(t, marked)})
			want := "after the cancel the count is 61, there are 62 jobs; the operation before left a count of 63 and concerned 2030\n" +
				"91 checks, 12 of them wrong; 69 jobs, 69 of them good, the first is 1000\n"
			if got := printed(log); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	t.Run("fixed", func(t *testing.T) {
		rec := recorded(t, testPrograms+"workqueue.c", "exit 0", "gcc", "-O2", "-DFIXED")
		log := ask(t, rec, probe.Question{Code: codeFile(t, marked)})
		if got := printed(log); got != "91 checks, 0 of them wrong; 69 jobs, 69 of them good, the first is 1000\n" {
			t.Error(got)
		}
	})
}

// TestMarkedCopy: without the marked lines the copy is the program.
func TestMarkedCopy(t *testing.T) {
	data, err := os.ReadFile(testPrograms + "marked/workqueue.c")
	if err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	inside := false
	for line := range strings.Lines(string(data)) {
		switch strings.TrimSpace(line) {
		case blocks.Begin, blocks.End:
			inside = !inside
		default:
			if !inside {
				rest.WriteString(line)
			}
		}
	}
	program, err := os.ReadFile(testPrograms + "workqueue.c")
	if err != nil {
		t.Fatal(err)
	}
	if rest.String() != string(program) {
		t.Error("the copy has other lines than the program")
	}
}

// TestCodeStores: each store to the program is refused, and the replay ends as recorded.
func TestCodeStores(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		at := marked(t, "PUSHED")
		for _, store := range []string{"q->len = 0", "item->name[2]++", "memset(item, 0, sizeof *item)", "pushed = 7", "jobs.head = 0", "snprintf(item->name, 4, \"%d\", 1)", "item = 0",
			"__atomic_fetch_add(&mixed, 1, 5)"} {
			log := ask(t, rec, probe.Question{Code: code(t, "store.c", "static int n;\nat "+at+" {\n n++;\n "+store+";\n puts(\"stored\");\n}")})
			if c := log.Code[0]; c.Failed != items || c.Runs != 0 || c.First == nil || c.First.Kind != sandbox.Store || c.First.Line != 4 || filepath.Base(c.First.File) != "store.c" {
				t.Errorf("%s: %+v, first %+v", store, c, c.First)
			}
		}
	})
}

// TestCodeFails: what code cannot do is an error with its line.
func TestCodeFails(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O1")
	at := marked(t, "PUSHED")
	const most = time.Minute // of all runs together, on a busy machine
	for _, x := range []struct {
		text string
		kind sandbox.FailureKind
		over bool
	}{
		{"*(int *)8 = 1;", sandbox.Store, false},
		{"return (void)*(volatile int *)8;", sandbox.Read, false},
		{"(void)*(volatile long *)0x8000000000000000;", sandbox.Read, false},
		{"printf(\"%s\", (char *)q->len);", sandbox.Read, false},
		{"((void (*)(void))q->head)();", sandbox.Call, false},
		{"fopen(\"/etc/passwd\", \"r\");", sandbox.SystemCall, false},
		{"system(\"true\");", sandbox.SystemCall, false},
		{"volatile int zero = 0; zero = 7 / zero;", sandbox.Signal, false},
		{"abort();", sandbox.Signal, true},
		{"exit(3);", sandbox.Exit, true},
		{"for (;;) ;", sandbox.Time, true},
		{"for (;;) puts(\"more and more and more and more and more and more and more and more\");", sandbox.Output, true},
	} {
		limit := most
		if x.kind == sandbox.Time {
			limit = time.Second
		}
		log := ask(t, rec, probe.Question{CodeLimits: sandbox.Limits{Time: limit, Output: 1 << 20}, Code: code(t, "fails.c", "at "+at+" {\n "+x.text+"\n}")})
		c := log.Code[0]
		if c.First == nil {
			t.Errorf("%s: no failure, %+v", x.text, c)
			continue
		}
		line := 2
		if x.kind == sandbox.Exit || x.kind == sandbox.Output {
			line = 0
		}
		if c.First.Kind != x.kind || c.First.Over != x.over || c.First.Line != line {
			t.Errorf("%s: %+v", x.text, c.First)
		}
		if x.over && (c.Failed != 1 || c.Left != items-1) || !x.over && c.Failed != items {
			t.Errorf("%s: %+v", x.text, c)
		}
	}
}

// TestCodeHits: many runs, with own memory that lives on, leave the replay as it is.
func TestCodeHits(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O2")
	log := ask(t, rec, probe.Question{Code: code(t, "hits.c", `
static unsigned long *numbers, most;
at queue.c:35 {
	static unsigned long hits;
	if (hits == most)
		numbers = realloc(numbers, (most = most * 2 + 64) * sizeof *numbers);
	numbers[hits++] = n;
	if (hits == 120000) {
		unsigned long bad = 0;
		for (unsigned long i = 0; i < hits; i++)
			bad += numbers[i] != i;
		printf("%lu hits, %lu bad, %lu mixed\n", hits, bad, mixed);
	}
}`)})
	if got := printed(log); got != "120000 hits, 0 bad, 119999 mixed\n" {
		t.Errorf("%.200s %+v", got, log.Code[0].First)
	}
	if log.Code[0].Runs != 120000 {
		t.Errorf("%+v", log.Code[0])
	}
}

// TestCodeNames: a name of two places, of the code and of a header stands for the one that is visible at the place.
func TestCodeNames(t *testing.T) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, testPrograms+"names.c", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Code: code(t, "names.c", `
struct own { int n, more; };
static int calls;
static int doubled(int n) { return 2 * n; }
static struct own number(void) { return (struct own){++calls, 40}; }
static int numbered(void) { return number().n; }
static int whole(void) { return total; }
at names.c:16 {
	printf("%d %g %ld %d %d %d %d %d %d %zu\n", numbered(), basename, total->n, total->index, n, doubled(n), total->flag, total->more, total->last, sizeof *total);
}
at names.c:22 {
	int more = (int)n;
	printf("%d %g %lld %s %zu %d\n", numbered(), basename, n, sum, sizeof n, whole() + more);
}
static long pair, pick = LEFT;
at names.c:23 {
	printf("%d\n", total);
}
at names.c:30 {
	struct pair *same = pair;
	enum pick chosen = pick;
	printf("%ld %d %d %zu\n", same->n, chosen == RIGHT, same->more, sizeof(struct pair));
}`)})
			if got, want := printed(log), "1 0 1 2 3 6 3 4 5 16\n2 3 1 678 8 6\n5\n4 1 4 16\n"; got != want {
				t.Errorf("got  %s\nwant %s %+v", got, want, log.Code)
			}
		})
	}
}

// TestCodeRefused: mistakes in code are told with the file and the line of the code, before anything runs.
func TestCodeRefused(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O1")
	at := marked(t, "PUSHED")
	for text, want := range map[string]string{
		"undeclared(1);":  "wrong.c:2:2: error: implicit declaration of function",
		"q->nothing = 1;": "wrong.c:2:3: error:",
		"break;":          "wrong.c:2:2: error:",
	} {
		_, err := probe.Ask(t.Context(), rec, &probe.Question{Code: code(t, "wrong.c", "at "+at+" {\n "+text+"\n}")})
		var refused *sandbox.CompileError
		if !errors.As(err, &refused) || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{"at queue.c:9 { }": "no code begins at that line", "at quee.c:9 { }": "no code of that file"} {
		_, err := probe.Ask(t.Context(), rec, &probe.Question{Code: code(t, "wrong.c", text)})
		var wrong *probe.Error
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, want) || !strings.HasPrefix(wrong.Asked, "wrong.c:1: que") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCodeCXX: members of bases, references, bit fields, and both instances of a template.
func TestCodeCXX(t *testing.T) {
	for _, b := range []struct{ compiler, level string }{{"g++", "-O0"}, {"clang++", "-O0"}} {
		t.Run(b.compiler, func(t *testing.T) {
			rec := recorded(t, testPrograms+"shapes.cc", "SIGABRT", b.compiler, b.level)
			log := ask(t, rec, probe.Question{Code: code(t, "shapes.c", `
at shapes.cc:14 { printf("%d %d %g %d %d %d\n", this->id, by, this->area, this->open, this->sides, this->name != 0); }
at shapes.cc:20 { printf("%zu\n", sizeof v); }`)})
			if got := printed(log); got != "4 3 6 1 4 1\n4\n8\n" {
				t.Errorf("%s %+v", got, log.Code)
			}
		})
	}
}

// TestCodeRust: plain structures of Rust.
func TestCodeRust(t *testing.T) {
	path, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(path, "-g", "-o", exe, testPrograms+"items.rs").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, nil, "", "SIGABRT").Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	log := ask(t, rec, probe.Question{Code: code(t, "items.c", `at items.rs:7 { printf("%g %lu %u %g\n", sum, by, item->key, item->weight); }`)})
	if got := printed(log); got != "0 3 1 2.5\n7.5 3 2 4.5\n" {
		t.Errorf("%s %+v", got, log.Code)
	}
}
