package mutant

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/tree"
)

// Undefined asks MemorySanitizer, where the other sanitizers see no violation. What it reports of the original as well, whose
// libraries it does not see through, is no answer. A package that it cannot build has none.
func (w *Workshop) Undefined(ctx context.Context, k *Kept) (err error) {
	if k.Answered() {
		return nil
	}
	k.DefinedChecked = true
	t, err := w.definedTree(ctx)
	if err != nil {
		return ignoreBuild(err)
	}
	if _, violation, err := w.check(ctx, t, t.Original(), k.Run); err != nil || violation != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(w.src.Dir, k.File))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Restore()) }()
	if err := t.Change(ctx, k.File, k.Bug.Apply(text)); err != nil {
		return ignoreBuild(err)
	}
	_, k.Answer.Violation, err = w.check(ctx, t, t.Executable(), k.Run)
	return err
}

// Answered reports whether all sanitizers were asked that may see a violation.
func (k *Kept) Answered() bool {
	return k.Answer.Violation != nil || k.DefinedChecked || k.Class() != inject.Memory
}

// definedTree is the tree with MemorySanitizer, which is built when it is first wanted.
func (w *Workshop) definedTree(ctx context.Context) (*tree.Tree, error) {
	if w.defined == nil && w.definedErr == nil {
		w.defined, w.definedErr = w.build(tree.Defined)
	}
	return w.defined, w.definedErr
}
