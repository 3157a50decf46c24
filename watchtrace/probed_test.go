package watchtrace_test

import (
	"path/filepath"
	"testing"

	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/staticscan"
)

// TestProbedReplays: with code at all instructions that may access variables, a
// replay reaches the same end, byte by byte: with signals between them, faults,
// jumps out of handlers, and many threads.
func TestProbedReplays(t *testing.T) {
	for _, name := range []string{"signals/frame", "signals/altstack", "signals/jump_out", "faults/abort_threads", "faults/abort_repeats",
		"faults/in_handler", "faults/overflow", "threads/storm", "threads/families", "threads/cancel"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("..", "internal", "testdata", "record", name+".c"))
			if err != nil {
				t.Fatal(err)
			}
			r := p.Record(t)
			rec, err := record.Open(r.Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			core, err := image.OpenCore(filepath.Join(r.Dir, record.CoreName), image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer core.Close()
			plain, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			watches, ranges := staticWords(core)
			const most = 1000
			list, _ := staticscan.Accessors(core, ranges, most)
			result, err := replay.Run(t.Context(), rec, replay.WatchRequest{Common: replay.Common{Timing: plain.Timing}, Watching: replay.Watching{Backend: replay.BackendProbe, Watches: watches, Probes: list}, Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 || len(result.Unprobed) > 0 {
				t.Errorf("of %d instructions %v were not probed", len(list), result.Unprobed)
			}
			if plain.Comparison.Identical() && !result.Comparison.Identical() {
				t.Errorf("after %d accesses:\n%s", result.Hits, recordtest.Differences(result))
			}
		})
	}
}

// staticWords are the first words of the program's variables.
func staticWords(core *image.Process) (watches []replay.Watch, ranges []staticscan.Range) {
	const most, word = 64, 8
	s := core.Exe.Object.Section(".bss")
	at := core.Exe.Addr(s.Addr) &^ (word - 1)
	for ; at < core.Exe.Addr(s.Addr+s.Size) && len(watches) < most; at += word {
		watches = append(watches, replay.Watch{Addr: at, Size: word})
		ranges = append(ranges, staticscan.Range{Addr: at, Size: word})
	}
	return watches, ranges
}
