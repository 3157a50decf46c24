package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// SourceKind says what the process was read from.
type SourceKind string

// The sources of a Case.
const (
	SourceCore SourceKind = "core"
	SourceLive SourceKind = "live"
)

// Program is what ran.
type Program struct {
	Source SourceKind `json:"source"`
	// Path is the core file's path; empty for a live process.
	Path string `json:"path,omitempty"`
	// Exe is the executable, BuildID its build-id, Command the kernel's short name of the process
	// and Args its command line, with secrets redacted by the reports.
	Exe     string `json:"exe,omitempty"`
	BuildID string `json:"build_id,omitempty"`
	Command string `json:"command,omitempty"`
	Args    string `json:"args,omitempty"`
	// PID is the process's id; 0 when it is not known.
	PID int `json:"pid,omitempty"`
	// Threads counts the threads found.
	Threads int `json:"threads"`
}

// Module is an object mapped into the process.
type Module struct {
	// Path is as the process had it mapped, BuildID in lower-case hexadecimal.
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
	Start   Addr   `json:"start"`
	End     Addr   `json:"end"`
	// Symbols says what names were found for it: "dwarf", "symtab", "dynsym",
	// "minidebuginfo", "none"; DebugFile the separate file they came from, if any.
	Symbols   string `json:"symbols"`
	DebugFile string `json:"debug_file,omitempty"`
}

// Goroutine is a goroutine of a Go program.
type Goroutine struct {
	// ID is the runtime's number of it, Status its state ("waiting").
	ID     int64  `json:"id"`
	Status string `json:"status"`
	// Wait is the runtime's wait reason.
	Wait string `json:"wait,omitempty"`
	// TID is the thread running it, 0 when none is; Failing marks the goroutine
	// that failed.
	TID     int   `json:"tid,omitempty"`
	Failing bool  `json:"failing,omitempty"`
	Stack   Stack `json:"stack"`
}

// Timing is how long a stage took; reports print it only when asked.
type Timing struct {
	Stage    string        `json:"stage"`
	Duration time.Duration `json:"nanoseconds"`
}

// Case is all that is known of one failure.
type Case struct {
	Program Program `json:"program"`
	Failure Failure `json:"failure"`
	// Severity is how dangerous the failure may be; nil if nothing is known that it follows from.
	Severity *Severity `json:"severity,omitempty"`
	// Suppression is that of the user's file that fits the failure; nil: none does.
	Suppression *Suppression  `json:"suppression,omitempty"`
	Findings    []Finding     `json:"findings,omitempty"`
	Stacks      []ThreadGroup `json:"stacks"`
	// Python are the frames of Python code of the threads in Stacks.
	Python []PythonStack `json:"python,omitempty"`
	// Goroutines of a Go program, the failing one first.
	Goroutines []Goroutine `json:"goroutines,omitempty"`
	Scan       *Scan       `json:"scan,omitempty"`
	// Races are those that Go's race detector reported, in the files that the user named.
	Races []DataRace `json:"races,omitempty"`
	// Run is the processes of the recorded run that failed; nil where that is only the one
	// that was started.
	Run *Run `json:"run,omitempty"`
	// Ending is what a program wrote and tried before it ended itself; nil unless a
	// recording tells it.
	Ending *Ending `json:"ending,omitempty"`
	// Diagnosis is what recordings of the run tell; nil if there is none.
	Diagnosis *Diagnosis `json:"diagnosis,omitempty"`
	// Next is the step that would tell more, where there is no recording; nil: none is known.
	Next *Next `json:"next,omitempty"`
	// Registers of the failing thread.
	Registers []Register `json:"registers,omitempty"`
	Modules   []Module   `json:"modules,omitempty"`
	// Sources are the lines around the places of causes and findings, one Source a
	// file, whose File is as in the places' Site and whose Lines have gaps. Text of
	// files that could not be read is missing.
	Sources []Source `json:"sources,omitempty"`
	Limits  []Limit  `json:"limits,omitempty"`
	// Refused are system calls that the recorder of the failing run refused.
	Refused []RefusedCall `json:"refused_calls,omitempty"`
	Timings []Timing      `json:"-"`
}

// SourceLine returns the text of a line of Sources; false if it is not there.
func (c *Case) SourceLine(file string, number int) (string, bool) {
	for i := range c.Sources {
		if c.Sources[i].File != file {
			continue
		}
		lines := c.Sources[i].Lines
		if j, found := slices.BinarySearchFunc(lines, number, func(l SourceLine, n int) int { return cmp.Compare(l.Number, n) }); found {
			return lines[j].Text, true
		}
	}
	return "", false
}

// Check reports the first contradiction in c, so that a stage's mistake is
// found where it was made and not in a reader's report.
func (c *Case) Check() error {
	if c.Failure.Kind == "" || c.Failure.Sentence == "" {
		return fmt.Errorf("case has no failure kind or no sentence")
	}
	if !c.Failure.Proof.Valid() {
		return fmt.Errorf("failure %q: unknown proof level %q", c.Failure.Kind, c.Failure.Proof)
	}
	if err := c.Failure.check(); err != nil {
		return err
	}
	for i := range c.Findings {
		if err := c.Findings[i].Check(); err != nil {
			return err
		}
	}
	for i := range c.Python {
		if err := c.Python[i].check(); err != nil {
			return err
		}
	}
	for i := range c.Races {
		if err := c.Races[i].check(); err != nil {
			return err
		}
	}
	failing := 0
	for i := range c.Stacks {
		if c.Stacks[i].Failing {
			failing++
		}
		if err := c.Stacks[i].check(); err != nil {
			return err
		}
	}
	if failing > 1 {
		return fmt.Errorf("%d thread groups are marked as failing", failing)
	}
	for i := range c.Refused {
		if err := c.Refused[i].check(); err != nil {
			return err
		}
	}
	if c.Diagnosis != nil {
		if err := c.Diagnosis.Check(); err != nil {
			return err
		}
	}
	if c.Ending != nil {
		if err := c.Ending.check(); err != nil {
			return err
		}
	}
	if err := c.Severity.check(); err != nil {
		return err
	}
	if err := c.Next.check(); err != nil {
		return err
	}
	return c.checkSteps()
}

func (c *Case) checkSteps() error {
	steps := c.Failure.Origin
	if check := c.Failure.Check; check != nil {
		if !check.Proof.Valid() || check.Relation == "" {
			return fmt.Errorf("the check has the relation %q and the proof level %q", check.Relation, check.Proof)
		}
		steps = slices.Concat(steps, check.Left.Origin, check.Right.Origin)
	}
	for i, step := range steps {
		if step.Text == "" || !step.Proof.Valid() {
			return fmt.Errorf("origin step %d (%s) has no text or no proof level", i, step.Kind)
		}
	}
	if c.Scan == nil {
		return nil
	}
	for _, s := range c.Scan.Suspects {
		if !s.Access.Valid() || !s.Proof.Valid() {
			return fmt.Errorf("suspect %s: access %q, proof %q", s.Name, s.Access, s.Proof)
		}
	}
	return nil
}

func (g *ThreadGroup) check() error {
	if len(g.Threads) == 0 {
		return fmt.Errorf("a thread group without a thread")
	}
	for i, f := range g.Stack.Frames {
		if f.Kind == "" || f.Trust == "" {
			return fmt.Errorf("thread %d, frame %d: no kind or no trust", g.Threads[0].TID, i)
		}
	}
	return nil
}
