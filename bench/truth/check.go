package main

import (
	"context"
	"fmt"
	"os"

	"diagnose/bench/truth/source"
)

// check builds each package and runs its original: what the descriptions are worth here.
func (b *bench) check(ctx context.Context) error {
	failed := 0
	for i := range source.Packages {
		p := &source.Packages[i]
		if !b.wanted(p.Name) || b.timeUp(ctx) {
			continue
		}
		w, err := b.workshop(ctx, p)
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, "truth:", err)
			continue
		}
		fmt.Printf("%s: %d inputs, %d places for bugs in executed lines\n", p.Name, w.Inputs(), w.Sites())
		if err := w.Close(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d packages cannot be used here", failed)
	}
	return nil
}
