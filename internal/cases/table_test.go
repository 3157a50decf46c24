package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

const programs = "../testdata/cases"

// way is how the tool gets at a failure.
type way string

const (
	byCore      way = "core"      // a core of the program as it is
	byAgent     way = "agent"     // a core of a run with the agent
	byRecording way = "recording" // a recording of a failing run
	byPassing   way = "passing"   // and one of a passing run
	byHunt      way = "hunt"      // the recordings that hunt makes
	byEndedHang way = "hang"      // a recording of a run that waits until it is interrupted
	silentHunt  way = "silent"    // hunt, which must find nothing
	byReplays   way = "replays"   // replays of one recording, which must be identical
	byTrace     way = "trace"     // a trace, which must not break off
	byRecord    way = "record"    // a recording, which must end
	bySecrets   way = "secrets"   // reports in each format, in which no secret may be left
)

// entry is a program, run in one way.
type entry struct {
	File string `json:"file"`
	Way  way    `json:"way"`
	// Variants are the compiler's options, besides -g. Instrumented: 'diagnose cc' compiles.
	Variants     [][]string `json:"variants"`
	Instrumented bool       `json:"instrumented,omitempty"`
	// Args are the failing run's, PassingArgs those of a passing one; null: the same.
	Args        []string `json:"args,omitempty"`
	PassingArgs []string `json:"passing_args,omitempty"`
	// Tool are further options of the tool's command, Runs how often a failure is tried for.
	Tool []string `json:"tool,omitempty"`
	Runs int      `json:"runs,omitempty"`
	// Quick entries are run by 'make test'.
	Quick bool `json:"quick,omitempty"`
	// Rare: the failure needs what a machine may not do within Runs, which the reason says.
	Rare  string `json:"rare,omitempty"`
	Want  want   `json:"want"`
	Known *known `json:"known,omitempty"`
}

// want are the typed fields of the report. Lists are alternatives; an empty one asks for
// nothing. Places are parts of lines of the program.
type want struct {
	Failure   []evidence.FailureKind `json:"failure,omitempty"`
	FailureAt []string               `json:"failure_at,omitempty"`
	// Frames are functions of the failing thread's stack, in this order, others between them.
	Frames  []string               `json:"frames,omitempty"`
	Finding []evidence.FindingKind `json:"finding,omitempty"`
	// Owner: a finding names a thread that owns the lock.
	Owner bool `json:"owner,omitempty"`
	// Message: the program's last message or failed call is told.
	Message bool `json:"message,omitempty"`

	Cause    []evidence.CauseKind   `json:"cause,omitempty"`
	At       []string               `json:"at,omitempty"`
	Variable []string               `json:"variable,omitempty"`
	Pattern  []evidence.PatternKind `json:"pattern,omitempty"`
	// Via are places of which the story has each.
	Via   []string       `json:"via,omitempty"`
	Least evidence.Proof `json:"least,omitempty"`
	Most  evidence.Proof `json:"most,omitempty"`
	// NoFact are names of what must not be ruled out.
	NoFact []string `json:"no_fact,omitempty"`
	// Process is the program that failed, where a script ran it.
	Process string `json:"process,omitempty"`
}

// known is a case that the tool does not get right.
type known struct {
	// Worst is the worst result, Reason what the tool lacks.
	Worst  result `json:"worst"`
	Reason string `json:"reason"`
	// Sometimes says why a run may be told right all the same; empty: none is.
	Sometimes string `json:"sometimes,omitempty"`
}

func (e *entry) String() string {
	name := e.File + "/" + string(e.Way)
	if len(e.Args) > 0 {
		name += "/" + strings.Join(e.Args, ",")
	}
	return name
}

// entries reads cases.json, and checks that it fits the programs.
func entries(t *testing.T) []entry {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programs, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var list []entry
	if err := d.Decode(&list); err != nil {
		t.Fatalf("cases.json: %v", err)
	}
	for i := range list {
		if err := list[i].check(); err != nil {
			t.Errorf("%s: %v", &list[i], err)
		}
	}
	return list
}

func (e *entry) check() error {
	source, err := os.ReadFile(filepath.Join(programs, e.File))
	if err != nil {
		return err
	}
	for _, place := range slices.Concat(e.Want.At, e.Want.FailureAt, e.Want.Via) {
		if len(linesWith(string(source), place)) == 0 {
			return fmt.Errorf("no line has %q", place)
		}
	}
	if e.Known != nil && (e.Known.Reason == "" || e.Known.Worst <= right || e.Known.Worst >= wrongProved) {
		return fmt.Errorf("a known case has a reason, and a result between right and wrong and proved")
	}
	if len(e.Variants) == 0 {
		return fmt.Errorf("no variant")
	}
	return nil
}

// linesWith are the numbers of the lines that have a text.
func linesWith(source, part string) (numbers []int) {
	for i, line := range strings.Split(source, "\n") {
		if strings.Contains(line, part) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// TestEveryProgram: no program is without an entry, but those that others are made of.
func TestEveryProgram(t *testing.T) {
	parts := []string{"signals/common.h", "hostile/handler2.c", "cases.json"}
	listed := map[string]bool{}
	for _, e := range entries(t) {
		listed[e.File] = true
	}
	err := filepath.WalkDir(programs, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(programs, path)
		if err == nil && !listed[name] && !slices.Contains(parts, name) {
			t.Errorf("cases.json has no entry for %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
