package main

import (
	"context"
	"os"
	"path/filepath"

	"diagnose/bench/truth/ways"
)

// buildTool builds the diagnose that is measured, once for each state of its code.
func (b *bench) buildTool(ctx context.Context) error {
	path, err := filepath.Abs(filepath.Join(b.options.cache, "tool", b.code.Hash, "diagnose"))
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	b.tool = ways.Tool{Path: path, Cache: cache, Limit: b.options.limit}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	b.progress.note("building diagnose")
	return ways.Build(ctx, b.options.root, path)
}
