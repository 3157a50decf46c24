package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
	"diagnose/fleet/work"
	"diagnose/reports"
)

// mostQueued is how many failures a night has in an engine's queue at once.
const mostQueued = 256

// elsewhere is what a night needs that has its failures diagnosed by workers.
type elsewhere struct {
	coordinator *work.Coordinator
	ends        []func()
}

func (x *elsewhere) close() {
	for i := len(x.ends) - 1; i >= 0; i-- {
		x.ends[i]()
	}
}

// openWorkers connects to the engine, or starts one in this process with its workers; nil: the
// night does without.
func (f *nightlyFlags) openWorkers(ctx context.Context, store *corpus.Corpus) (*elsewhere, error) {
	if f.workers == 0 && !f.named() {
		return nil, nil
	}
	x := &elsewhere{}
	e, err := f.openEngine(ctx, store, x)
	if err == nil {
		x.ends = append(x.ends, e.Close)
		x.coordinator, err = work.Coordinate(ctx, e, work.CoordinatorOptions{Version: version(), Scratch: store.Scratch, Patience: time.Duration(f.patience)})
	}
	if err == nil {
		x.ends = append(x.ends, x.coordinator.Close)
		if f.workers > 0 {
			err = f.startWorkers(ctx, e, x)
		}
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// openEngine returns the engine: the named one, or one in this process whose files live as long
// as the night, for the results are in the corpus.
func (f *nightlyFlags) openEngine(ctx context.Context, store *corpus.Corpus, x *elsewhere) (*engine.Engine, error) {
	if f.workers == 0 {
		return f.connect(ctx)
	}
	dir, discard, err := store.Scratch()
	if err != nil {
		return nil, err
	}
	x.ends = append(x.ends, discard)
	server, err := engine.StartEmbedded(ctx, dir)
	if err != nil {
		return nil, err
	}
	x.ends = append(x.ends, server.Close)
	return server.Connect(ctx, "")
}

// startWorkers has this process work, as any night without an engine does: with the rights of its
// user.
func (f *nightlyFlags) startWorkers(ctx context.Context, e *engine.Engine, x *elsewhere) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	shop, err := work.OpenWorkshop(os.TempDir())
	if err != nil {
		return err
	}
	x.ends = append(x.ends, shop.Close)
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		err := work.Work(ctx, e, work.WorkerOptions{Version: version(), Command: []string{exe}, Jobs: f.workers, Dir: shop.Dir})
		if err != nil { // the night goes without workers then, and says so
			fmt.Fprintln(os.Stderr, "diagnose:", reports.Message(err.Error()))
		}
	})
	x.ends = append(x.ends, func() { cancel(); group.Wait() })
	return nil
}

// remote is nightly.Options.Remote; no workers are no such interface, and not one that is nil.
func (x *elsewhere) remote() nightly.Remote {
	if x == nil {
		return nil
	}
	return x.coordinator
}
