package main

import (
	"context"
	"os"
	"time"

	"diagnose/corpus"
	"diagnose/fleet/engine"
	"diagnose/fleet/share"
)

// pullPause is the time between two looks at an engine.
const pullPause = 30 * time.Second

// pulls reports whether the corpus is filled from an engine.
func (f *serveFlags) pulls() bool {
	return f.engine.options.URL != "" || os.Getenv("DIAGNOSE_ENGINE") != ""
}

// follow pulls what an engine has into the corpus until ctx ends. An error is told once; the next look
// tries again.
func follow(ctx context.Context, e *engine.Engine, store *corpus.Corpus, tell func(string)) {
	told := map[string]bool{}
	for {
		done, err := share.Pull(ctx, e, store, share.PullOptions{})
		lines := done.Failed
		if err != nil {
			lines = append(lines, err.Error())
		}
		for _, line := range lines {
			if ctx.Err() == nil && !told[line] {
				if len(told) >= 1000 { // an entry that is damaged stays so
					clear(told)
				}
				told[line] = true
				tell("the engine: " + line)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pullPause):
		}
	}
}
