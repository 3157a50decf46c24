package nightly_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"diagnose/corpus"
)

// resumed is what came of nights that were killed, over failures that a night of
// another version had diagnosed.
type resumed struct {
	kills, failures int
	// twice were diagnosed again by a later night; elsewhere are in another cluster than
	// before.
	twice, elsewhere []string
}

func (r *resumed) String() string {
	return fmt.Sprintf("Nights of another version over the same corpus were killed %d times, at random, and continued by the next one: "+
		"of %d failures, %d were diagnosed twice, and %d came into another cluster.", r.kills, r.failures, len(r.twice), len(r.elsewhere))
}

// killed begins and kills the given number of nights, and lets one more run to its end. took is the
// duration of a night that is not killed.
func killed(t *testing.T, store *corpus.Corpus, exe string, kills int, took time.Duration) *resumed {
	t.Helper()
	before := diagnoses(t, store)
	r := &resumed{failures: len(before)}
	random := rand.New(rand.NewPCG(5, 5))
	written := map[string]time.Time{} // when what earlier nights wrote was begun
	for ended := false; !ended; {
		wait := time.Hour
		if r.kills < kills {
			wait = time.Duration(random.Int64N(int64(took) / int64(kills)))
		}
		if ended = !killedNight(t, exe, store.Dir, wait); !ended {
			r.kills++
		}
		for id, d := range diagnoses(t, store) {
			if d.Version == before[id].Version {
				if ended {
					t.Errorf("%s was not diagnosed again", id)
				}
				continue
			}
			if at, known := written[id]; known && !at.Equal(d.Started) {
				r.twice = append(r.twice, id)
			}
			written[id] = d.Started
			if first := before[id]; ended && d.Cluster() != first.Cluster() {
				r.elsewhere = append(r.elsewhere, fmt.Sprintf("%s (%s, before: %s)", id, d.Summary, first.Summary))
			}
		}
	}
	return r
}

// killedNight reports whether a night had to be killed after so long.
func killedNight(t *testing.T, exe, dir string, wait time.Duration) bool {
	t.Helper()
	cmd := exec.Command(exe, "nightly", "--corpus", dir, "--jobs", "2")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		const foundNew = 4
		var status *exec.ExitError
		if err != nil && (!errors.As(err, &status) || status.ExitCode() != foundNew) {
			t.Fatalf("%v: %s", err, said.String())
		}
		return false
	case <-time.After(wait):
		cmd.Process.Kill()
		<-ended
		return true
	}
}

func diagnoses(t *testing.T, store *corpus.Corpus) map[string]corpus.Diagnosis {
	t.Helper()
	entries, err := store.List(t.Context(), corpus.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]corpus.Diagnosis{}
	for _, e := range entries {
		if !e.Passed && e.Diagnosis != nil {
			list[e.ID] = *e.Diagnosis
		}
	}
	return list
}
