package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"diagnose/bench/truth/page"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// writePage writes the results of all mutants of the list, of whatever commit they are. What is not kept here, as it was judged on
// another machine, is taken from the page as it is.
func (b *bench) writePage() error {
	path := b.options.path(b.options.page)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	earlier, err := page.ReadEarlier(string(old))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var results []store.Result
	held := 0
	for _, e := range b.list {
		if e.HoldOut() {
			held++
		}
		for _, way := range ways.All {
			r, err := b.store.LoadResult(e.ID, way)
			if err != nil {
				return err
			}
			if r == nil {
				r = earlier.Of(e.ID, way)
			}
			if r != nil {
				results = append(results, *r)
			}
		}
	}
	var text bytes.Buffer
	if err := page.Write(&text, results, len(b.list), held, earlier); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
