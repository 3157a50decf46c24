package mutant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/sanitizer"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/tree"
)

const (
	// runLimit is how long a plain run may use the processor, slowLimit one with a sanitizer.
	// A busy machine may take wait times as long.
	runLimit  = 3 * time.Second
	slowLimit = 8 * time.Second
	wait      = 5
	// asleep is how long all threads sleep in a run that hangs.
	asleep = 3 * time.Second
	// shortLimit is how long the original may use it: an input that takes longer is not used.
	shortLimit = 400 * time.Millisecond
	// memory bounds plain runs, in MiB.
	memory = 2048
	// mostRuns is how many inputs of a package are used.
	mostRuns = 40
)

// Workshop makes the mutants of one package.
type Workshop struct {
	src   *source.Unpacked
	plain map[string]*tree.Tree
	// checked is the tree with a sanitizer, defined that with MemorySanitizer, or definedErr why there is none; both are nil until it
	// is wanted. build makes a tree.
	checked, defined *tree.Tree
	definedErr       error
	build            func(tree.Variant) (*tree.Tree, error)
	// originals are the inputs on which the original is sound.
	originals []original
	sites     []Site
	// scratch is an empty directory that runs may fill.
	scratch string
}

// original is what the original does on an input.
type original struct {
	Run source.Run
	// Outputs are hashes, by variant.
	Outputs map[string][]byte
	Covered tree.Lines
}

// Folders are the directories of a workshop.
type Folders struct {
	// Build has the trees, Scratch what runs leave; Inputs and Drivers are those of ours.
	Build, Scratch, Inputs, Drivers string
}

// Open builds a package and runs its original. note is told what takes time.
func Open(ctx context.Context, src *source.Unpacked, f Folders, note func(string)) (*Workshop, error) {
	w := &Workshop{src: src, plain: map[string]*tree.Tree{}, scratch: filepath.Join(f.Scratch, src.Name)}
	w.build = func(v tree.Variant) (*tree.Tree, error) {
		note(src.Name + ": building " + v.Name)
		return tree.Open(ctx, src, v, f.Build, f.Drivers)
	}
	for _, v := range tree.Plain {
		t, err := w.build(v)
		if err != nil {
			return nil, err
		}
		w.plain[v.Name] = t
	}
	var err error
	checker := tree.Address
	if src.Threads {
		checker = tree.Thread
	}
	if w.checked, err = w.build(checker); err != nil {
		return nil, err
	}
	covering, err := w.build(tree.Coverage)
	if err != nil {
		return nil, err
	}
	if err := w.originalRuns(ctx, covering, f, note); err != nil {
		return nil, err
	}
	var covered []tree.Lines
	for _, o := range w.originals {
		covered = append(covered, o.Covered)
	}
	w.sites, err = Sites(src, covered)
	return w, err
}

// originalRuns runs the original on every input, unless that was done before.
func (w *Workshop) originalRuns(ctx context.Context, covering *tree.Tree, f Folders, note func(string)) error {
	path := filepath.Join(f.Build, w.src.Name, "originals-"+covering.Description()[:16]+".json")
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &w.originals) == nil {
		return nil
	}
	note(w.src.Name + ": running the original")
	if err := w.chooseRuns(ctx, f.Inputs); err != nil {
		return err
	}
	for i := range w.originals {
		if err := w.cover(ctx, covering, &w.originals[i]); err != nil {
			return err
		}
	}
	text, err := json.Marshal(w.originals)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// Inputs counts the inputs on which the original is sound.
func (w *Workshop) Inputs() int { return len(w.originals) }

// Sites counts the places for bugs.
func (w *Workshop) Sites() int { return len(w.sites) }

// Close leaves every tree as the original.
func (w *Workshop) Close() error {
	for _, t := range []*tree.Tree{w.checked, w.defined, w.plain[tree.Plain0.Name], w.plain[tree.Plain2.Name]} {
		if t == nil {
			continue
		}
		if err := t.Restore(); err != nil {
			return err
		}
	}
	return nil
}

// chooseRuns keeps the inputs on which the original of every variant ends well, twice with
// the same output, and the sanitizer reports nothing.
func (w *Workshop) chooseRuns(ctx context.Context, inputs string) error {
	all, err := w.src.Runs(w.src.Dir, inputs)
	if err != nil {
		return err
	}
	step := max(1, (len(all)+mostRuns-1)/mostRuns)
	for i := 0; i < len(all); i += step {
		outputs, sound, err := w.sound(ctx, all[i])
		if err != nil {
			return err
		}
		if sound {
			w.originals = append(w.originals, original{Run: all[i], Outputs: outputs})
		}
	}
	if len(w.originals) < 2 {
		return fmt.Errorf("mutant: %s: the original ends well on %d of %d inputs only", w.src.Name, len(w.originals), len(all))
	}
	return nil
}

// sound runs the original on one input.
func (w *Workshop) sound(ctx context.Context, run source.Run) (outputs map[string][]byte, sound bool, err error) {
	outputs = map[string][]byte{}
	for name, t := range w.plain {
		first, err := w.runProgram(ctx, t.Original(), run)
		if err != nil || !well(first) || first.Used > shortLimit {
			return nil, false, err
		}
		second, err := w.runProgram(ctx, t.Original(), run)
		if err != nil || !well(second) || !bytes.Equal(first.Stdout, second.Stdout) {
			return nil, false, err
		}
		outputs[name] = digest(first.Stdout)
	}
	checked, violation, err := w.check(ctx, w.checked, w.checked.Original(), run)
	return outputs, err == nil && well(checked) && violation == nil, err
}

func digest(output []byte) []byte {
	sum := sha256.Sum256(output)
	return sum[:]
}

func well(r *limit.Result) bool {
	return r.Status == 0 && r.Signal == 0 && !r.TimedOut && !r.Asleep && !r.Cut
}

func (w *Workshop) runProgram(ctx context.Context, program string, run source.Run) (*limit.Result, error) {
	if err := limit.Empty(w.scratch); err != nil {
		return nil, err
	}
	return limit.Run(ctx, limit.Command{Path: program, Args: run.Args, Stdin: run.Stdin, Dir: w.scratch, Processor: runLimit, Time: wait * runLimit, Asleep: asleep, Memory: memory})
}

// check runs a program of a tree with a sanitizer, until the first violation.
func (w *Workshop) check(ctx context.Context, t *tree.Tree, program string, run source.Run) (*limit.Result, *sanitizer.Violation, error) {
	r, text, err := w.report(ctx, program, run)
	if err != nil {
		return nil, nil, err
	}
	return r, sanitizer.Read(text, t.Top), nil
}

// report runs a program with a sanitizer, and returns what that writes.
func (w *Workshop) report(ctx context.Context, program string, run source.Run) (r *limit.Result, text string, err error) {
	if err := limit.Empty(w.scratch); err != nil {
		return nil, "", err
	}
	log := filepath.Join(w.scratch, "sanitizer")
	common := "log_path=" + log + ":exitcode=99:"
	r, err = limit.Run(ctx, limit.Command{
		Path: program, Args: run.Args, Stdin: run.Stdin, Dir: w.scratch, Processor: slowLimit, Time: wait * slowLimit, Asleep: asleep,
		Env: []string{
			"ASAN_OPTIONS=" + common + "detect_leaks=0:detect_stack_use_after_return=1:hard_rss_limit_mb=2048:allocator_may_return_null=1:disable_coredump=1",
			"UBSAN_OPTIONS=" + common + "print_stacktrace=1",
			"MSAN_OPTIONS=" + common + "halt_on_error=0:disable_coredump=1",
			"TSAN_OPTIONS=" + common + "halt_on_error=1:report_signal_unsafe=0",
		},
	})
	if err != nil {
		return nil, "", err
	}
	text, err = limit.Files(log + "*")
	// UndefinedBehaviorSanitizer of gcc writes to standard error, whatever its log_path is.
	return r, text + "\n" + string(r.Stderr), err
}

// cover finds out which lines a run executes.
func (w *Workshop) cover(ctx context.Context, t *tree.Tree, o *original) error {
	if err := t.Forget(); err != nil {
		return err
	}
	if _, err := w.runProgram(ctx, t.Executable(), o.Run); err != nil {
		return err
	}
	var err error
	o.Covered, err = t.Covered(ctx)
	return err
}
