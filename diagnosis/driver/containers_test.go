package driver_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// containerCase is a function of testdata/containers/use.cc and what the report has to tell of it.
type containerCase struct {
	name   string
	misuse evidence.ContainerMisuse
	// containers are the program's expressions for the container; an empty one: it need not be known, as there are two.
	containers []string
	size       uint64
	index      int64
	// guarded: it runs with the agent, which keeps freed memory from reuse; the call that freed it is known. free is the
	// member function that freed it.
	guarded bool
	free    string
}

var containerCases = []containerCase{
	{name: "vector_index", misuse: evidence.MisuseIndex, containers: []string{"s.cells"}, size: 5000, index: 900000003},
	{name: "vector_write", misuse: evidence.MisuseIndex, containers: []string{"samples"}, size: 3000, index: 90000000},
	{name: "vector_front", misuse: evidence.MisuseEmpty, containers: []string{"line", "none"}},
	{name: "vector_at", misuse: evidence.MisuseIndex, containers: []string{"parts", "vectors.few"}, size: 5, index: 12},
	{name: "vector_stale", misuse: evidence.MisuseStale, containers: []string{"parts", "vectors.few"}, size: 9},
	{name: "vector_stale", misuse: evidence.MisuseStale, containers: []string{"parts", "vectors.few"}, size: 9, guarded: true, free: "push_back"},
	{name: "string_index", misuse: evidence.MisuseIndex, containers: []string{"text"}, size: 57, index: 80000000},
	{name: "wide_index", misuse: evidence.MisuseIndex, containers: []string{"text", "wide"}, size: 4, index: 80000000},
	{name: "deque_end", misuse: evidence.MisuseEnd, containers: []string{"line", "deques.line"}, size: 5},
	{name: "list_front", misuse: evidence.MisuseEmpty, containers: []string{"line", "empty"}},
	{name: "list_end", misuse: evidence.MisuseEnd, containers: []string{"line", "lists.line"}, size: 5},
	{name: "list_stale", misuse: evidence.MisuseStale, containers: []string{"line", "lists.line", ""}, size: 4, guarded: true, free: "erase"},
	{name: "set_end", misuse: evidence.MisuseEnd, containers: []string{"parts", "sets.parts"}, size: 5},
	{name: "set_stale", misuse: evidence.MisuseStale, containers: []string{"parts", "sets.parts"}, guarded: true, free: "clear"},
	{name: "map_end", misuse: evidence.MisuseEnd, containers: []string{"parts", "maps.parts"}, size: 5},
	{name: "map_stale", misuse: evidence.MisuseStale, containers: []string{"parts", "maps.parts"}, size: 4, guarded: true, free: "erase"},
	{name: "hash_end", misuse: evidence.MisuseEnd, containers: []string{"parts", "hash"}, size: 5},
	{name: "hash_set_end", misuse: evidence.MisuseEnd, containers: []string{"numbers"}, size: 5},
	{name: "hash_stale", misuse: evidence.MisuseStale, containers: []string{"parts", "hash"}, size: 4, guarded: true, free: "erase"},
}

// otherCases are functions that fail by a pointer of their own, next to containers.
var otherCases = []string{"walked", "member_after"}

// containerBuild is a way to compile the program.
type containerBuild struct {
	name, compiler string
	flags          []string
	// quick: it is taken without DIAGNOSE_MATRIX=full; told is how many cases are told at least.
	quick bool
	told  int
}

var containerBuilds = []containerBuild{
	{"libstdc++, gcc -O0", "g++", []string{"-O0"}, true, 19},
	{"libstdc++, gcc -O1", "g++", []string{"-O1"}, false, 17},
	{"libstdc++, gcc -O2", "g++", []string{"-O2"}, true, 14},
	{"libstdc++, clang -O0", "clang++", []string{"-O0"}, false, 17},
	{"libstdc++, clang -O1", "clang++", []string{"-O1"}, false, 10},
	{"libstdc++, clang -O2", "clang++", []string{"-O2"}, false, 12},
	{"libc++, clang -O0", "clang++", []string{"-O0", "-stdlib=libc++"}, true, 19},
	{"libc++, clang -O1", "clang++", []string{"-O1", "-stdlib=libc++"}, false, 10},
	{"libc++, clang -O2", "clang++", []string{"-O2", "-stdlib=libc++"}, false, 12},
	{"assertions, gcc -O0", "g++", []string{"-O0", "-D_GLIBCXX_ASSERTIONS"}, true, 19},
	{"assertions, gcc -O2", "g++", []string{"-O2", "-D_GLIBCXX_ASSERTIONS"}, false, 10},
}

// containerTable is the table of docs/containers.md, which DIAGNOSE_CONTAINERS names, with a row for each build.
type containerTable struct{ rows []string }

func (w *containerTable) write(t *testing.T) {
	path := os.Getenv("DIAGNOSE_CONTAINERS")
	if path == "" {
		return
	}
	const begin, end = "<!-- table -->\n", "<!-- end -->\n"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no place for the table", path)
	}
	names := make([]string, len(containerCases))
	for i := range containerCases {
		names[i] = containerCases[i].title()
	}
	table := "| | " + strings.Join(names, " | ") + " |\n|" + strings.Repeat(" --- |", len(names)+1) + "\n"
	if err := os.WriteFile(path, []byte(head+begin+table+strings.Join(w.rows, "")+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *containerCase) title() string {
	if c.guarded {
		return c.name + ", agent"
	}
	return c.name
}

// TestContainers: the use of an element that a container does not have is told with the container, or nothing is. The
// twins, which fail by another pointer in the same function, have no such finding.
func TestContainers(t *testing.T) {
	var table containerTable
	for _, b := range containerBuilds {
		if !b.quick && !crashtest.FullMatrix() {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			exe := b.compile(t)
			told, row := 0, "| "+b.name
			for i := range containerCases {
				word := containerCases[i].check(t, exe)
				if word == "right" || word == "no call" {
					told++
				}
				row += " | " + word
			}
			table.rows = append(table.rows, row+" |\n")
			t.Logf("%d of %d cases are told", told, len(containerCases))
			if told < b.told {
				t.Errorf("%d cases are told, want %d", told, b.told)
			}
			for _, name := range otherCases {
				if u := containerUseIn(t, exe, nil, name); u != nil {
					t.Errorf("%s: %+v", name, u)
				}
			}
		})
	}
	if crashtest.FullMatrix() {
		table.write(t)
	}
}

func (b *containerBuild) compile(t *testing.T) string {
	if slices.Contains(b.flags, "-stdlib=libc++") {
		if out, err := exec.Command(b.compiler, "-stdlib=libc++", "-x", "c++", "-E", "-include", "vector", "/dev/null").CombinedOutput(); err != nil {
			t.Skipf("libc++ is not installed: %s", out)
		}
	}
	return crashtest.Compile(t, crashtest.Program{Source: "testdata/containers/use.cc", Compiler: b.compiler, Flags: append([]string{"-w"}, b.flags...)})
}

// check runs a case and its twin, and returns the word for the table: right; "no call" where the agent's record of the
// free has too few frames to name the call; weak where nothing is told; "no failure" where the compiler made a program
// that does not fail.
func (c *containerCase) check(t *testing.T, exe string) string {
	var env []string
	if c.guarded {
		env = underAgent(t, "")
	}
	if u := containerUseIn(t, exe, env, c.name, "good"); u != nil {
		t.Errorf("the twin of %s: %+v", c.title(), u)
	}
	run := exec.Command(exe, c.name)
	run.Env = append(os.Environ(), env...)
	if run.Run() == nil {
		return "no failure"
	}
	u := containerUseIn(t, exe, env, c.name)
	if u == nil {
		t.Logf("%s is not told", c.title())
		return "weak"
	}
	if err := c.compare(u); err != nil {
		t.Errorf("%s: %v", c.title(), err)
		return "wrong"
	}
	if c.free != "" && u.Invalidated == nil {
		return "no call"
	}
	return "right"
}

func (c *containerCase) compare(u *evidence.ContainerUse) error {
	if u.Misuse == c.misuse && u.Container == nil && slices.Contains(c.containers, "") {
		return c.compareCall(u)
	}
	if u.Misuse != c.misuse || u.Container == nil || !slices.Contains(c.containers, u.Container.Name) || u.Container.Size != c.size {
		return fmt.Errorf("%s of %+v, want %s of one of %v, size %d", u.Misuse, u.Container, c.misuse, c.containers, c.size)
	}
	if c.misuse == evidence.MisuseIndex && *u.Index != c.index {
		return fmt.Errorf("index %d, want %d", *u.Index, c.index)
	}
	return c.compareCall(u)
}

func (c *containerCase) compareCall(u *evidence.ContainerUse) error {
	if c.free == "" || u.Invalidated == nil {
		return nil
	}
	if i := u.Invalidated; !strings.Contains(i.Function, c.free) || i.Site == nil || i.Site.Line == 0 {
		return fmt.Errorf("freed by %+v, want %s", u.Invalidated, c.free)
	}
	return nil
}

// containerUseIn crashes a program and returns the use of a container that its report tells; nil: it tells none.
func containerUseIn(t *testing.T, exe string, env []string, args ...string) *evidence.ContainerUse {
	t.Helper()
	c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: args, Env: env})})
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Container != nil {
			if f.Proof != evidence.Inferred {
				t.Errorf("%s is %s", f.Summary, f.Proof)
			}
			return f.Container
		}
	}
	return nil
}
