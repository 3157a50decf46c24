package learn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/learn"
	"diagnose/replay/record"
)

// TestMain gives the tests a cache of their own, in which nothing is learned.
func TestMain(m *testing.M) {
	if os.Getenv("XDG_CACHE_HOME") == "" || !strings.Contains(os.Getenv("XDG_CACHE_HOME"), cacheName) {
		dir, err := os.MkdirTemp("", cacheName)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Setenv("XDG_CACHE_HOME", dir)
		defer os.RemoveAll(dir)
	}
	recordtest.Main(m)
}

const cacheName = "learn-cache-"

func read(t *testing.T, name string) *recordtest.Program {
	t.Helper()
	p, err := recordtest.Read("../../internal/testdata/learn/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// replayed replays a recording. done is how many events that did, and failed why it is not identical; nil: it is.
func replayed(t *testing.T, rec *record.Recording) (done uint64, failed error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Sleeping: 2 * time.Second, Computing: 3 * time.Second}, Verify: true})
	if r == nil {
		t.Fatal(err)
	}
	if err == nil && !r.Comparison.Identical() {
		err = errors.New(recordtest.Differences(r))
	}
	return r.Events, err
}

// learned counts the learned accesses that a recording orders.
func learned(rec *record.Recording) (n int) {
	for _, o := range rec.Manifest.Atomics.Objects {
		n += o.Learned
	}
	return n
}

// TestLearning records a queue whose order nothing has, learns from the replay, and expects identical replays of new recordings.
func TestLearning(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, how := range []struct {
		name  string
		clang bool
		flags []string
	}{{"gcc-O0", false, []string{"-O0"}}, {"gcc-O2", false, nil}, {"clang-O2", true, nil}} {
		t.Run(how.name, func(t *testing.T) {
			p := read(t, "ring.c")
			p.Clang, p.Flags = how.clang, how.flags
			rounds := 0
			for identical := 0; identical < 3; {
				rec, _ := p.RecordAtomics(t).Open(t)
				done, failed := replayed(t, rec)
				if failed == nil {
					if identical++; learned(rec) == 0 {
						t.Fatal("a replay was identical, and no learned access is ordered")
					}
					continue
				}
				if rounds++; rounds > 2 {
					t.Fatalf("after %d rounds: %v", rounds-1, failed)
				}
				r, err := learn.Run(t.Context(), rec, done, learn.Options{})
				if err != nil || len(r.Learned) == 0 {
					t.Fatalf("nothing was learned from %v: %+v, %v", failed, r, err)
				}
				for _, s := range r.Learned {
					if !strings.HasPrefix(s.Place, "produce (ring.c:") && !strings.HasPrefix(s.Place, "main (ring.c:") || s.Offset == 0 {
						t.Errorf("an access in %+v was learned", s)
					}
				}
			}
			if rounds == 0 {
				t.Error("no replay diverged")
			}
		})
	}
}

// TestNothingToLearn traces the whole replay of a program whose accesses are all ordered.
func TestNothingToLearn(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, nil} {
		p := read(t, "ordered.c")
		p.Flags = flags
		rec, _ := p.RecordAtomics(t).Open(t)
		done, failed := replayed(t, rec)
		if failed != nil {
			t.Fatal(failed)
		}
		r, err := learn.Run(t.Context(), rec, done, learn.Options{})
		if err != nil || r.Instructions < 10_000 {
			t.Fatalf("%+v, %v", r, err)
		}
		if list := slices.Concat(r.Learned, r.Known, r.Left); len(list) > 0 {
			t.Errorf("accesses without an order: %+v", list)
		}
	}
}
