package ways

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"diagnose/bench/truth/source"
)

// tool is a diagnose that is a script.
func tool(t *testing.T, script string) *Tool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "diagnose")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Tool{Path: path, Cache: t.TempDir(), Limit: 20 * time.Second}
}

// recorder makes recordings of the names in the variable NAMES of its text.
func recorder(names string) string {
	return `[ "$1 $2" = "record --output" ] || exit 9
for n in ` + names + `; do mkdir -p "$3/$n"; done
`
}

func TestReproduceRecording(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recording")
	f, err := tool(t, recorder("p-0001-passed p-0002-SIGSEGV")).Reproduce(t.Context(), Recording, Program{Path: "/bin/true"}, dir)
	if err != nil || f == nil || filepath.Base(f.Recording) != "p-0002-SIGSEGV" || len(f.Passing) != 1 || filepath.Base(f.Passing[0]) != "p-0001-passed" {
		t.Fatalf("%+v, %v", f, err)
	}
	if again, err := Recorded(filepath.Dir(dir)); err != nil || !reflect.DeepEqual(again, f) {
		t.Errorf("Recorded finds %+v, %v", again, err)
	}
	if f, err := tool(t, recorder("p-0001-passed")).Reproduce(t.Context(), Recording, Program{Path: "/bin/true"}, dir); err != nil || f != nil {
		t.Errorf("a run that passed: %+v, %v", f, err)
	}
}

func TestReproduceTurns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "turns")
	script := `[ "$4 $5 $6 $7 $8" = "--races=turns --repeat 3 --until-fail --" ] || exit 9
` + recorder("p-0002-SIGSEGV")
	f, err := tool(t, script).Reproduce(t.Context(), Turns, Program{Path: "/bin/true", Attempts: 3}, dir)
	if err != nil || f == nil || filepath.Base(f.Recording) != "p-0002-SIGSEGV" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestReproducePassing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recording")
	p := Program{Path: "/bin/true", Passes: []source.Run{{Args: []string{"a"}}, {Args: []string{"b"}}}}
	script := `if [ "$2" = --all ]; then mkdir -p "$4/p-0001-passed"; else mkdir -p "$3/p-0002-exit-1"; fi`
	f, err := tool(t, script).Reproduce(t.Context(), Passing, p, dir)
	if err != nil || f == nil || filepath.Base(f.Recording) != "p-0002-exit-1" || len(f.Passing) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := tool(t, "exit 0").Reproduce(t.Context(), Passing, p, dir); err != nil || f != nil {
		t.Errorf("it does not fail: %+v, %v", f, err)
	}
}

func TestReproduceAgent(t *testing.T) {
	f, err := tool(t, `[ "$*" = "run -- /bin/true a" ] && : > core`).Reproduce(t.Context(), Agent, Program{Path: "/bin/true", Run: source.Run{Args: []string{"a"}}}, filepath.Join(t.TempDir(), "agent"))
	if err != nil || f == nil || filepath.Base(f.Core) != "core" {
		t.Errorf("%+v, %v", f, err)
	}
}

// Threads may need several runs, of which record does the repeating itself.
func TestAttempts(t *testing.T) {
	p := Program{Path: "/bin/true", Attempts: 4}
	script := `[ "$1" = run ] || exit 9; echo >> ../count; [ $(wc -l < ../count) = 3 ] && : > core`
	if f, err := tool(t, script).Reproduce(t.Context(), Agent, p, filepath.Join(t.TempDir(), "agent")); err != nil || f == nil {
		t.Errorf("%+v, %v", f, err)
	}
	count := filepath.Join(t.TempDir(), "count")
	hang := tool(t, "echo >> "+count+"; exit 152") // 128 and SIGXCPU
	if f, err := hang.Reproduce(t.Context(), Agent, p, filepath.Join(t.TempDir(), "agent")); err != nil || f != nil {
		t.Errorf("a run that hung: %+v, %v", f, err)
	}
	if text, err := os.ReadFile(count); err != nil || string(text) != "\n" {
		t.Errorf("it was run again: %q, %v", text, err)
	}
	c := (&Tool{Path: "diagnose"}).command(Recording, p, "/d")
	if got := strings.Join(c.Args, " "); got != "record --output /d/recordings --repeat 4 --until-fail -- /bin/true" || !c.Interrupt {
		t.Errorf("the command is %s", got)
	}
}

func TestDiagnose(t *testing.T) {
	dir := t.TempDir()
	doc, text, err := tool(t, `for a; do [ "$last" = --output ] && out=$a; last=$a; done
echo '{"schema_version": "2.0", "case": {"failure": {"kind": "abort"}}}' > "$out"`).Diagnose(t.Context(), &Failing{Core: "core"}, dir)
	if err != nil || doc.Case.Failure.Kind != "abort" || !strings.Contains(string(text), "abort") {
		t.Errorf("%+v, %v", doc, err)
	}
	var failed *ToolError
	if _, _, err := tool(t, "echo no core >&2; exit 3").Diagnose(t.Context(), &Failing{Core: "core"}, dir); !errors.As(err, &failed) || failed.Status != 3 || failed.Message != "no core" {
		t.Errorf("the error is %v", err)
	}
	slow := tool(t, "sleep 60")
	slow.Limit = 200 * time.Millisecond
	if _, _, err := slow.Diagnose(t.Context(), &Failing{Recording: "r"}, dir); !errors.As(err, &failed) || !failed.TimedOut {
		t.Errorf("the error is %v", err)
	}
}

func TestArguments(t *testing.T) {
	tool := Tool{Limit: time.Minute}
	got := strings.Join(tool.arguments(&Failing{Recording: "r", Passing: []string{"p", "q"}}, "out"), " ")
	if got != "crash --format json --output out --time 45s --recording r --passing p --passing q" {
		t.Error(got)
	}
}
