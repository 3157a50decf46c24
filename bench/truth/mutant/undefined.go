package mutant

import (
	"context"
	"errors"
	"slices"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/sanitizer"
	"diagnose/bench/truth/tree"
)

// Undefined asks MemorySanitizer, where the other sanitizers see no violation. What it reports at the same place of the original as
// well is no answer: it does not know everything that libraries store. A package that it cannot build has none. A kept
// mutant that was read from a file lacks the change of the text, but m has it.
func (w *Workshop) Undefined(ctx context.Context, m *Mutant, k *Kept) (err error) {
	if k.Answered() {
		return nil
	}
	k.DefinedChecked = true
	t, err := w.definedTree(ctx)
	if err != nil {
		return ignoreBuild(err)
	}
	_, ofOriginal, err := w.report(ctx, t.Original(), k.Run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Restore()) }()
	if err := w.change(ctx, t, m); err != nil {
		return ignoreBuild(err)
	}
	_, ofMutant, err := w.report(ctx, t.Executable(), k.Run)
	if err != nil {
		return err
	}
	known := sanitizer.ReadAll(ofOriginal, t.Top)
	for _, v := range sanitizer.ReadAll(ofMutant, t.Top) {
		if !slices.ContainsFunc(known, func(o *sanitizer.Violation) bool { return o.Accesses[0] == v.Accesses[0] }) {
			k.Answer.Violation = v
			break
		}
	}
	return nil
}

// Again asks all sanitizers about a mutant that was kept before they were all asked.
func (w *Workshop) Again(ctx context.Context, m *Mutant, k *Kept) (err error) {
	defer func() { err = errors.Join(err, w.checked.Restore()) }()
	if err := w.change(ctx, w.checked, m); err != nil {
		return ignoreBuild(err)
	}
	if _, k.Answer.Violation, err = w.check(ctx, w.checked, w.checked.Executable(), k.Run); err != nil {
		return err
	}
	return w.Undefined(ctx, m, k)
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
