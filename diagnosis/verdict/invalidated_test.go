package verdict_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// The call of a container's function that freed what an iterator points to is told, with the program's place, with
// both libraries. An object that the program itself deletes was freed by no container.
func TestInvalidated(t *testing.T) {
	const source = `
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <vector>
struct entry { const char *name; long number; };
int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	std::vector<entry> table;
	std::list<entry> queue;
	std::map<int, entry> index;
	for (int i = 0; i < 3; i++) {
		table.push_back({"entry", i}), queue.push_back({"entry", i}), index[i] = {"entry", i};
	}
	std::vector<entry>::iterator row = table.begin();
	std::list<entry>::iterator job = queue.begin();
	std::map<int, entry>::iterator found = index.find(1);
	if (!strcmp(what, "vector"))
		table.reserve(table.capacity() + 1); // the elements move
	if (!strcmp(what, "list"))
		queue.pop_front();
	if (!strcmp(what, "map"))
		index.clear();
	if (!strcmp(what, "own")) {
		entry *e = new entry{"entry", 1};
		delete e;
		return e->name[0];
	}
	return row->name[0] + job->name[0] + found->second.name[0];
}
`
	for _, b := range []struct{ name, compiler, library, level string }{
		{"libstdc++", "g++", "", "-O0"}, {"libstdc++", "g++", "", "-O2"}, {"libc++", "clang++", "-stdlib=libc++", "-O1"},
	} {
		t.Run(b.name+b.level, func(t *testing.T) {
			flags := []string{b.level, "-w"}
			if b.library != "" {
				if err := exec.Command(b.compiler, b.library, "-x", "c++", "-E", "-include", "vector", "/dev/null").Run(); err != nil {
					t.Skip("libc++ is not installed")
				}
				flags = append(flags, b.library)
			}
			exe := crashtest.Compile(t, crashtest.Program{Source: "entries.cc", Text: source, Compiler: b.compiler, Flags: flags})
			for what, want := range map[string]string{"vector": "std::vector<entry ::reserve", "list": "std::list<entry ::pop_front",
				"map": "std::map<int, entry ::clear", "own": ""} {
				recorded := recordtest.RecordProgram(t, exe, []string{what}, "", "SIGSEGV")
				result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{recorded.Dir}, Replays: 1})
				if err != nil {
					t.Fatal(err)
				}
				checkInvalidated(t, what, want, result.Diagnosis.Causes)
			}
		})
	}
}

// checkInvalidated takes the start of the class, a space and the end of the function: default arguments are between.
func checkInvalidated(t *testing.T, what, want string, causes []evidence.Cause) {
	t.Helper()
	class, function := want, ""
	if k := strings.LastIndex(want, " "); k > 0 {
		class, function = want[:k], want[k+1:]
	}
	if len(causes) == 0 {
		t.Errorf("%s: no cause", what)
		return
	}
	i := causes[0].Invalidated
	switch {
	case want == "" && i == nil:
	case want == "" || i == nil || !strings.HasPrefix(i.Function, class) || !strings.HasSuffix(i.Function, function) || i.Site == nil || i.Site.Line == 0:
		t.Errorf("%s: %q, freed by %+v, want %q", what, causes[0].Summary, i, want)
	case !strings.HasPrefix(causes[0].Summary, class):
		t.Errorf("%s: %q", what, causes[0].Summary)
	}
	if slices.ContainsFunc(causes[0].Story, func(s evidence.CauseStep) bool { return s.Text == "" }) {
		t.Errorf("%s: a step without words", what)
	}
}
