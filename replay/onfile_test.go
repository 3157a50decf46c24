package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// saved writes a checkpoint to a file.
func saved(t *testing.T, x *replay.Checkpoint) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := x.Save(f); err != nil {
		t.Fatalf("at %v: %v", x.Moment, err)
	}
	return f
}

func loaded(t *testing.T, ctx context.Context, rec *record.Recording, f *os.File) *replay.Checkpoint {
	t.Helper()
	x, err := replay.LoadCheckpoint(ctx, rec, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// TestCheckpointFiles continues replays from checkpoints that were in files, after those and their processes are gone: twice from each, and
// from checkpoints that such a replay leaves, which are in files, too. All end as recorded, each byte of memory included.
func TestCheckpointFiles(t *testing.T) {
	for _, name := range []string{"basic/wait", "basic/compute", "faults/in_handler", "faults/many", "sync/mutex", "sync/cond", "sync/sem",
		"sync/deadlock", "syscalls/pipes", "syscalls/server", "syscalls/futexes", "threads/join", "threads/main_leaves",
		"threads/fails_unbegun", "threads/timer_thread", "signals/altstack", "signals/frame", "signals/strings", "signals/threads"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
			if err != nil {
				t.Fatal(err)
			}
			rec := open(t, p.Record(t).Dir)
			moments := someMoments(t, rec, 4)
			list := checkpointsAt(t, rec, nil, moments...)
			if len(list) == 0 {
				t.Fatal("no thread was in the program after any of the events")
			}
			var files []*os.File
			for _, x := range list {
				files = append(files, saved(t, x))
				x.Close()
			}
			rec = open(t, rec.Dir)
			for _, f := range files {
				x := loaded(t, t.Context(), rec, f)
				continues(t, rec, x)
				continues(t, rec, x)
			}
			for _, x := range checkpointsAt(t, rec, loaded(t, t.Context(), rec, files[0]), moments[len(moments)-1]) {
				continues(t, rec, loaded(t, t.Context(), rec, saved(t, x)))
			}
		})
	}
}

// diagnosed makes the replays of a diagnosis that uses a Store, and returns the sights at the moments.
func diagnosed(t *testing.T, dir string, store *replay.Store, moments []evidence.Moment) (seen []sight, counts replay.ReplayCounts) {
	t.Helper()
	rec := open(t, dir)
	ctx, kept := replay.KeepCheckpoints(replay.UseStore(t.Context(), store), replay.MostKept)
	defer kept.Close()
	for _, at := range moments {
		seen = append(seen, look(t, ctx, rec, at))
	}
	return seen, kept.Counts()
}

func storeIn(t *testing.T, dir, version string) *replay.Store {
	t.Helper()
	s, err := replay.OpenStore(dir, version)
	if err != nil {
		t.Fatal(err)
	}
	return s.WithoutLeast()
}

// recordedMoments records a program and returns three moments near its end, the last one first.
func recordedMoments(t *testing.T, name string) (dir string, moments []evidence.Moment) {
	t.Helper()
	p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, p.Record(t).Dir)
	moments = someMoments(t, rec, 20)
	moments = moments[len(moments)-4 : len(moments)-1]
	slices.Reverse(moments)
	return rec.Dir, moments
}

// TestStore: the replays of a second diagnosis begin at the checkpoints of the first one, and show the same. Those of another version
// of the tool do not, nor those of another recording.
func TestStore(t *testing.T) {
	for _, name := range []string{"basic/wait", "sync/mutex", "signals/threads"} {
		t.Run(name, func(t *testing.T) {
			recording, moments := recordedMoments(t, name)
			dir := filepath.Join(t.TempDir(), "store")
			first, counts := diagnosed(t, recording, storeIn(t, dir, "1"), moments)
			if counts.Whole == 0 || counts.Loaded != 0 {
				t.Fatalf("the first diagnosis: %+v", counts)
			}
			second, counts := diagnosed(t, recording, storeIn(t, dir, "1"), moments)
			if counts.Whole != 0 || counts.Loaded == 0 {
				t.Errorf("the second diagnosis: %+v", counts)
			}
			if !slices.Equal(first, second) {
				t.Errorf("from files %+v\nfrom the start %+v", second, first)
			}
			if _, counts = diagnosed(t, recording, storeIn(t, dir, "2"), moments); counts.Loaded != 0 || counts.Whole == 0 {
				t.Errorf("another version: %+v", counts)
			}
			other, moments := recordedMoments(t, name)
			if _, counts = diagnosed(t, other, storeIn(t, dir, "1"), moments); counts.Loaded != 0 || counts.Whole == 0 {
				t.Errorf("another recording: %+v", counts)
			}
		})
	}
}

// TestStoreDamaged: replays are whole if their files are damaged, which are removed, or not the user's alone.
func TestStoreDamaged(t *testing.T) {
	recording, moments := recordedMoments(t, "sync/mutex")
	dir := filepath.Join(t.TempDir(), "store")
	want, _ := diagnosed(t, recording, storeIn(t, dir, "1"), moments)
	files := readAll(t, dir)
	if len(files) == 0 {
		t.Fatal("there is no file")
	}
	cut := func(n func(size int) int) func([]byte) []byte { return func(p []byte) []byte { return p[:n(len(p))] } }
	flip := func(n func(size int) int) func([]byte) []byte {
		return func(p []byte) []byte {
			p = slices.Clone(p)
			p[n(len(p))] ^= 0x10
			return p
		}
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":          cut(func(int) int { return 0 }),
		"cut":            cut(func(size int) int { return size / 2 }),
		"without an end": cut(func(size int) int { return size - 1 }),
		"magic":          flip(func(int) int { return 3 }),
		"page":           flip(func(int) int { return 30000 }),
		"state":          flip(func(size int) int { return size - 1000 }),
		"length":         flip(func(size int) int { return size - 37 }),
		"digest":         flip(func(size int) int { return size - 5 }),
		"longer":         func(p []byte) []byte { return append(slices.Clone(p), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			store := storeIn(t, dir, "1")
			for file, data := range files {
				if err := os.WriteFile(filepath.Join(dir, file), damage(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			seen, counts := diagnosed(t, recording, store, moments)
			if counts.Loaded != 0 || counts.Whole == 0 || !slices.Equal(seen, want) {
				t.Errorf("%+v, seen %+v, want %+v", counts, seen, want)
			}
			for file, data := range readAll(t, dir) {
				if old := files[file]; old != nil && bytes.Equal(data, damage(old)) {
					t.Errorf("%s is still there", file)
				}
			}
		})
	}
	t.Run("readable by others", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		store := storeIn(t, dir, "1")
		for file, data := range files {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.WriteFile(path, data, 0o600), os.Chmod(path, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if _, counts := diagnosed(t, recording, store, moments); counts.Loaded != 0 {
			t.Errorf("%+v", counts)
		}
	})
}

func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range list {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestStoreBounded: the files that were not used for the longest time are removed.
func TestStoreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store := storeIn(t, dir, "1")
	const files = 30
	for i := range files {
		path := filepath.Join(dir, fmt.Sprintf("%02d.checkpoint", i))
		when := time.Unix(int64(1000+i), 0)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	large := filepath.Join(dir, "27.checkpoint")
	when := time.Unix(1027, 0)
	if err := errors.Join(os.Truncate(large, 1<<30), os.Chtimes(large, when, when)); err != nil {
		t.Fatal(err)
	}
	if err := store.Prune(); err != nil {
		t.Fatal(err)
	}
	left := slices.Sorted(maps.Keys(readNames(t, dir)))
	if want := []string{"27.checkpoint", "28.checkpoint", "29.checkpoint"}; !slices.Equal(left[len(left)-3:], want) || len(left) != 24 {
		t.Errorf("%q", left)
	}
	if err := errors.Join(os.Truncate(large, 1<<30+1), os.Chtimes(large, when, when), store.Prune()); err != nil {
		t.Fatal(err)
	}
	if left := slices.Sorted(maps.Keys(readNames(t, dir))); !slices.Equal(left, []string{"28.checkpoint", "29.checkpoint"}) {
		t.Errorf("%q", left)
	}
}

func readNames(t *testing.T, dir string) map[string]bool {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = true
	}
	return names
}

// TestUseful: files are spread over the run where replays began in several parts of it.
func TestUseful(t *testing.T) {
	for _, x := range []struct {
		uses, want [][2]uint64 // positions with the replays that began there
	}{
		{[][2]uint64{{216, 2}, {432, 3}, {519, 2}, {532, 4}, {540, 4}, {541, 4}}, [][2]uint64{{432, 3}, {519, 2}, {216, 2}}},
		{[][2]uint64{{10, 1}, {900, 0}}, [][2]uint64{{10, 1}}},
		{nil, nil},
	} {
		if got := replay.Useful(x.uses); !slices.Equal(got, x.want) {
			t.Errorf("of %v: %v, want %v", x.uses, got, x.want)
		}
	}
}
