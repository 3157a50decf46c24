package mutant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/sanitizer"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/tree"
)

// Answer is what a diagnosis may say.
type Answer struct {
	// Violation is the first violation on the failing input; nil: the sanitizer sees none.
	Violation *sanitizer.Violation `json:"violation,omitempty"`
	// Root are the lines of the bug in File, Objects the variables that it is about.
	File    string   `json:"file"`
	Root    []int    `json:"root"`
	Objects []string `json:"objects,omitempty"`
}

// Kept is a mutant that fails on an input.
type Kept struct {
	Mutant
	Answer Answer `json:"answer"`
	// Run is the input that it fails on. Passing counts those on which it behaves like the
	// original.
	Run     source.Run `json:"run"`
	Passing int        `json:"passing"`
	// Failure is how the plain program fails; only the sanitizer notices if it is Silent.
	Failure Failure `json:"failure"`
	// Original is the path of the program without the bug, Program that with it.
	Original string `json:"original"`
	Program  string `json:"program"`
}

// Failure is how a plain run fails.
type Failure string

// The failures.
const (
	Signal Failure = "signal"
	Status Failure = "status"
	Silent Failure = "silent"
	// Hang is for threads alone: a loop without end is no failure that a run shows.
	Hang Failure = "hang"
)

// attempts is how many runs a failure of threads may need.
const attempts = 20

// Attempts is how many runs the failure may need.
func (k *Kept) Attempts() int {
	if k.Class() == inject.Concurrency {
		return attempts
	}
	return 1
}

// Drop says why a mutant is of no use.
type Drop string

// The reasons.
const (
	NotCompiled Drop = "does not compile"
	NoEffect    Drop = "does not fail"
	AlwaysFails Drop = "fails on every input"
)

// Choose is the mutant of a seed, which may be of no use.
func (w *Workshop) Choose(seed uint64) (*Mutant, error) {
	return Choose(ID{w.src.Name, w.src.Version, seed}, w.sites, tree.Plain)
}

// Make builds a mutant and tries it. It is nil if it is of no use, for the reason that Drop
// gives. The program is copied to the path.
func (w *Workshop) Make(ctx context.Context, m *Mutant, program string) (_ *Kept, _ Drop, err error) {
	text, err := os.ReadFile(filepath.Join(w.src.Dir, m.File))
	if err != nil {
		return nil, "", fmt.Errorf("mutant: %w", err)
	}
	mutated := m.Bug.Apply(text)
	plain := w.plain[m.Level]
	defer func() { err = errors.Join(err, plain.Restore(), w.checked.Restore()) }()
	for _, t := range []*tree.Tree{plain, w.checked} {
		if err := t.Change(ctx, m.File, mutated); err != nil {
			return nil, NotCompiled, ignoreBuild(err)
		}
	}
	k, drop, err := w.try(ctx, m, plain)
	if err != nil || drop != "" {
		return nil, drop, err
	}
	k.Original, k.Program = plain.Original(), program
	return k, "", copyProgram(plain.Executable(), program)
}

func ignoreBuild(err error) error {
	var build *tree.BuildError
	if errors.As(err, &build) {
		return nil
	}
	return err
}

// try runs a mutant on every input. Of the inputs that it fails on, one on which the plain
// program fails too comes first; if there is none, the sanitizer looks at every input.
func (w *Workshop) try(ctx context.Context, m *Mutant, plain *tree.Tree) (*Kept, Drop, error) {
	k := &Kept{Mutant: *m, Answer: Answer{File: m.File, Root: m.Bug.Root, Objects: m.Bug.Objects}}
	same := make([]bool, len(w.originals))
	for i := range w.originals {
		failure, equal, err := w.fails(ctx, plain, &w.originals[i], m.Level)
		if err != nil {
			return nil, "", err
		}
		same[i] = equal
		if failure != "" && k.Failure != Signal && failure != k.Failure {
			k.Failure, k.Run = failure, w.originals[i].Run
		}
	}
	if err := w.violate(ctx, k, same); err != nil {
		return nil, "", err
	}
	for _, equal := range same {
		if equal {
			k.Passing++
		}
	}
	switch {
	case k.Failure == "":
		return nil, NoEffect, nil
	case k.Passing == 0:
		return nil, AlwaysFails, nil
	}
	return k, "", nil
}

// violate looks for the first violation on the failing input, or on all if there is none.
// same says on which inputs the plain program behaves like the original.
func (w *Workshop) violate(ctx context.Context, k *Kept, same []bool) error {
	if k.Failure != "" {
		_, violation, err := w.check(ctx, w.checked.Executable(), k.Run)
		k.Answer.Violation = violation
		return err
	}
	for i, o := range w.originals {
		_, violation, err := w.check(ctx, w.checked.Executable(), o.Run)
		if err != nil {
			return err
		}
		if violation != nil {
			k.Failure, k.Run, k.Answer.Violation = Silent, o.Run, violation
			same[i] = false
			return nil
		}
	}
	return nil
}

// fails runs the plain mutant: how it fails, and whether it writes what the original does.
// A program with threads is run several times; it is the same if one run was.
func (w *Workshop) fails(ctx context.Context, t *tree.Tree, o *original, level string) (failure Failure, same bool, err error) {
	times := 1
	if w.src.Threads {
		times = attempts / 2
	}
	for range times {
		r, err := w.run(ctx, t.Executable(), o.Run)
		if err != nil {
			return "", false, err
		}
		failure = failureOf(r, w.src.Threads)
		same = same || failure == "" && bytes.Equal(digest(r.Stdout), o.Outputs[level])
		if failure != "" {
			return failure, same && w.src.Threads, nil
		}
	}
	return "", same, nil
}

func failureOf(r *limit.Result, threads bool) Failure {
	switch {
	case r.TimedOut && threads && r.Used < runLimit/2:
		return Hang
	case r.TimedOut:
		return ""
	case r.Signal != 0:
		return Signal
	case r.Status != 0:
		return Status
	}
	return ""
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("mutant: %w", err)
	}
	if err := limit.Empty(filepath.Dir(to)); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// Class is what kind of bug it is.
func (k *Kept) Class() inject.Class { return k.Bug.Class }
