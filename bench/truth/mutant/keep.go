package mutant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

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
	// Unsignalled is what threads wait for in vain, where the bug is a signal that was taken out; empty: it is another.
	Unsignalled string `json:"unsignalled,omitempty"`
	// Unset is the variable of the function, or the member, that has no value, where the bug is an initialisation that was taken out. nil: it is
	// another bug.
	Unset *Unset `json:"unset,omitempty"`
	// Unjoined is where the bug took out the wait for a thread's end, with the function: what that function does after it may come too early.
	// nil: it is another bug.
	Unjoined *sanitizer.Place `json:"unjoined,omitempty"`
	// Operators is the state of the code that said so: store.ReadOperators.
	Operators string `json:"operators,omitempty"`
}

// Unset is a variable of a function, or a member, without a value.
type Unset struct {
	Name     string `json:"name"`
	Function string `json:"function"`
}

// Accept takes from a mutant what answers its operator accepts, as the code that makes bugs has it now. It reports whether others were accepted
// before.
func (a *Answer) Accept(m *Mutant, operators string) (changed bool) {
	now := *a
	now.File, now.Root, now.Objects, now.Unsignalled, now.Operators = m.File, m.Bug.Root, m.Bug.Objects, m.Bug.Unsignalled, operators
	if now.Unjoined = nil; m.Bug.Unjoined {
		now.Unjoined = &sanitizer.Place{File: m.File, Line: m.Bug.Line, Function: m.Bug.Function}
	}
	if now.Unset = nil; m.Bug.Unset != "" {
		now.Unset = &Unset{Name: m.Bug.Unset, Function: m.Bug.Function}
	}
	changed = now.File != a.File || !slices.Equal(now.Root, a.Root) || !slices.Equal(now.Objects, a.Objects) || now.Unsignalled != a.Unsignalled ||
		!reflect.DeepEqual(now.Unjoined, a.Unjoined) || !reflect.DeepEqual(now.Unset, a.Unset)
	*a = now
	return changed
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
	// DefinedChecked says that MemorySanitizer was asked, or could not be.
	DefinedChecked bool `json:"defined_checked,omitempty"`
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
	// Hang is for threads and signals alone: all threads sleep for ever.
	Hang Failure = "hang"
	// endless is no failure that a run shows.
	endless Failure = "endless"
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
	Endless     Drop = "does not end"
	OriginalToo Drop = "the original has the same violation"
)

// Choose is the mutant of a seed, which may be of no use.
func (w *Workshop) Choose(seed uint64) (*Mutant, error) {
	return Choose(ID{w.src.Name, w.src.Version, seed}, w.sites, tree.Plain)
}

// mostTried is how many of the inputs that reach a bug are tried; of programs of threads or
// signals, which run several times on each, fewer.
const (
	mostTried           = 8
	mostTriedConcurrent = 3
)

// Make builds a mutant and tries it. It is nil if it is of no use, for the reason that Drop
// gives. The program is copied to the path. The build with the sanitizer is tried first:
// most mutants that it has nothing against do not fail at all.
func (w *Workshop) Make(ctx context.Context, m *Mutant, program string) (_ *Kept, _ Drop, err error) {
	plain := w.plain[m.Level]
	defer func() { err = errors.Join(err, plain.Restore(), w.checked.Restore()) }()
	if err := w.change(ctx, w.checked, m); err != nil {
		return nil, NotCompiled, ignoreBuild(err)
	}
	t := &trial{Workshop: w, plain: plain, kept: &Kept{Mutant: *m}}
	t.kept.Answer.Accept(m, "")
	t.inputs, t.rest, t.kept.Passing = w.reaching(m)
	if drop, err := t.suspect(ctx); err != nil || drop != "" {
		return nil, drop, err
	}
	if err := w.change(ctx, plain, m); err != nil {
		return nil, NotCompiled, ignoreBuild(err)
	}
	if drop, err := t.runPlain(ctx); err != nil || drop != "" {
		return nil, drop, err
	}
	if drop, err := t.compare(ctx); err != nil || drop != "" {
		return nil, drop, err
	}
	if err := w.Undefined(ctx, m, t.kept); err != nil {
		return nil, "", err
	}
	t.kept.Original, t.kept.Program = plain.Original(), program
	return t.kept, "", copyProgram(plain.Executable(), program)
}

// change puts a bug into a tree.
func (w *Workshop) change(ctx context.Context, t *tree.Tree, m *Mutant) error {
	text, err := os.ReadFile(filepath.Join(w.src.Dir, m.File))
	if err != nil {
		return fmt.Errorf("mutant: %w", err)
	}
	return t.Change(ctx, m.File, m.Bug.Apply(text))
}

func ignoreBuild(err error) error {
	var build *tree.BuildError
	if errors.As(err, &build) {
		return nil
	}
	return err
}

// reaching are inputs that reach a bug, from all parts of the list, the rest of those that do,
// and the number of the others: on those the mutant is the original.
func (w *Workshop) reaching(m *Mutant) (some, rest []*original, others int) {
	var all []*original
	for i := range w.originals {
		if o := &w.originals[i]; reaches(o.Covered[m.File], &m.Bug) {
			all = append(all, o)
		} else {
			others++
		}
	}
	n := min(mostTried, len(all))
	if w.src.Concurrent() {
		n = min(mostTriedConcurrent, len(all))
	}
	for i, o := range all {
		if len(some) < n && i == len(some)*len(all)/n {
			some = append(some, o)
		} else {
			rest = append(rest, o)
		}
	}
	return some, rest, others
}

// trial is how a mutant is tried.
type trial struct {
	*Workshop
	plain *tree.Tree
	kept  *Kept
	// inputs are those that are run; the first one is the most suspicious. The rest are run
	// only until the mutant behaves like the original on one.
	inputs, rest []*original
}

// suspect runs the build with the sanitizer until it has something against the mutant.
func (t *trial) suspect(ctx context.Context) (Drop, error) {
	for i, o := range t.inputs {
		r, violation, err := t.check(ctx, t.checked, t.checked.Executable(), o.Run)
		if err != nil {
			return "", err
		}
		if violation == nil && r.TimedOut && !t.src.Concurrent() {
			return Endless, nil
		}
		if violation != nil || !well(r) {
			t.kept.Answer.Violation, t.kept.Run = violation, o.Run
			t.inputs[0], t.inputs[i] = t.inputs[i], t.inputs[0]
			return "", nil
		}
	}
	return NoEffect, nil
}

// runPlain runs the plain program. Of the inputs that it fails on, one on which a signal ends it
// comes first; if there is none, the failure is what the sanitizer reports.
func (t *trial) runPlain(ctx context.Context) (Drop, error) {
	k := t.kept
	suspected := k.Run
	for _, o := range t.inputs {
		failure, same, err := t.fails(ctx, t.plain, o, k.Level)
		switch {
		case err != nil:
			return "", err
		case failure == endless:
			return Endless, nil
		case failure != "" && k.Failure != Signal && failure != k.Failure:
			k.Failure, k.Run = failure, o.Run
		}
		if same {
			k.Passing++
		}
		if k.Passing > 0 && (k.Failure == Signal || k.Failure != "" && t.src.Concurrent()) {
			break
		}
	}
	switch {
	case k.Failure == "" && k.Answer.Violation == nil:
		return NoEffect, nil
	case k.Failure == "":
		k.Failure = Silent
	case !reflect.DeepEqual(k.Run, suspected):
		_, violation, err := t.check(ctx, t.checked, t.checked.Executable(), k.Run)
		if err != nil {
			return "", err
		}
		k.Answer.Violation = violation
	}
	return t.pass(ctx)
}

// pass drops a mutant that behaves like the original on no input.
func (t *trial) pass(ctx context.Context) (Drop, error) {
	for _, o := range t.rest {
		if t.kept.Passing > 0 {
			break
		}
		_, same, err := t.fails(ctx, t.plain, o, t.kept.Level)
		if err != nil {
			return "", err
		}
		if same {
			t.kept.Passing++
		}
	}
	if t.kept.Passing == 0 {
		return AlwaysFails, nil
	}
	return "", nil
}

// compare looks for the violation in the original too, whose threads may have a race that
// few runs show. Such a violation is no answer.
func (t *trial) compare(ctx context.Context) (Drop, error) {
	answer := &t.kept.Answer
	if answer.Violation == nil || !t.src.Concurrent() {
		return "", nil
	}
	for range attempts / 2 {
		_, violation, err := t.check(ctx, t.checked, t.checked.Original(), t.kept.Run)
		if err != nil {
			return "", err
		}
		if violation == nil || !reflect.DeepEqual(violation.Accesses, answer.Violation.Accesses) {
			continue
		}
		answer.Violation = nil
		if t.kept.Failure == Silent {
			return OriginalToo, nil
		}
		break
	}
	return "", nil
}

// fails runs the plain mutant: how it fails, and whether it writes what the original does. A
// program of threads or signals is run several times; it is the same if one run was.
func (w *Workshop) fails(ctx context.Context, t *tree.Tree, o *original, level string) (failure Failure, same bool, err error) {
	times := 1
	if w.src.Concurrent() {
		times = attempts / 2
	}
	for range times {
		r, err := w.runProgram(ctx, t.Executable(), o.Run)
		if err != nil {
			return "", false, err
		}
		failure = failureOf(r, w.src.Concurrent())
		same = same || failure == "" && bytes.Equal(digest(r.Stdout), o.Outputs[level])
		if failure != "" {
			return failure, same && w.src.Concurrent(), nil
		}
	}
	return "", same, nil
}

func failureOf(r *limit.Result, threads bool) Failure {
	switch {
	case r.Asleep && threads:
		return Hang
	case r.TimedOut || r.Asleep:
		return endless
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
