package main

import (
	"bytes"
	"os"

	"diagnose/bench/truth/page"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// writePage writes the results of all mutants of the list, of whatever commit they are.
func (b *bench) writePage() error {
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
			if r != nil {
				results = append(results, *r)
			}
		}
	}
	var text bytes.Buffer
	if err := page.Write(&text, results, len(b.list), held); err != nil {
		return err
	}
	return os.WriteFile(b.options.path(b.options.page), text.Bytes(), 0o644)
}
