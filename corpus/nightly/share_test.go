package nightly

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// many returns failures of a few causes, some of which cannot be diagnosed.
func many(n int) []failure {
	var list []failure
	for i := range n {
		x := failure{what: "ok", cause: fmt.Sprintf("cause%d", i%5)}
		if i%7 == 6 {
			x = failure{what: "refuse"}
		}
		list = append(list, x)
	}
	return list
}

// result returns the part of a summary that does not depend on which run did the work.
func result(s *Summary) string {
	c := *s
	c.Run, c.Since, c.Before = Run{}, time.Time{}, time.Time{}
	text, err := json.Marshal(&c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Two concurrent nights do everything, and nothing twice. Both report the same.
func TestTwoNights(t *testing.T) {
	c, ids := filled(t, many(20)...)
	t.Setenv("NIGHTLY_TEST_SLOW", "1")
	var group sync.WaitGroup
	out := t.TempDir()
	for i := range 2 {
		group.Go(func() {
			if text, err := nightProcess(c.Dir, filepath.Join(out, fmt.Sprint(i))).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
	group.Wait()
	done := analyses(t)
	slices.Sort(done)
	slices.Sort(ids)
	if !slices.Equal(done, ids) {
		t.Errorf("%d analyses of %d failures: %q", len(done), len(ids), done)
	}
	var told [2]string
	for i := range told {
		told[i] = result(readSummary(t, filepath.Join(out, fmt.Sprint(i))))
	}
	if told[0] != told[1] || !strings.Contains(told[0], "cause4 overflows") {
		t.Errorf("%s\n%s", told[0], told[1])
	}
}

func nightProcess(dir, summary string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], summary)
	cmd.Env = append(os.Environ(), "NIGHTLY_TEST_NIGHT="+dir)
	return cmd
}

func readSummary(t testing.TB, name string) *Summary {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var s Summary
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// A night that is killed again and again gets the same result as one that is not: stored
// results are not computed again, and no analysis outlives its night.
func TestKilledNights(t *testing.T) {
	c, ids := filled(t, many(40)...)
	t.Setenv("NIGHTLY_TEST_SLOW", "1")
	out := filepath.Join(t.TempDir(), "summary")
	random := rand.New(rand.NewPCG(7, 7))
	written := map[string]bool{} // diagnosed by the end of an earlier night
	kills, limit := 0, 50
	if testing.Short() {
		limit = 5
	}
	for {
		before := len(analyses(t))
		cmd := nightProcess(c.Dir, out)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// The time of the kill does not matter to the test. The last night is not killed.
		wait := time.Hour
		if kills < limit {
			wait = time.Duration(20+random.IntN(250)) * time.Millisecond
		}
		finished := false
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			finished = true
		case <-time.After(wait):
			cmd.Process.Kill()
			<-ended
			kills++
		}
		for _, id := range analyses(t)[before:] {
			if written[id] {
				t.Errorf("%s was diagnosed again", id)
			}
		}
		for _, id := range ids {
			e, err := c.Find(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			written[id] = e.Diagnosis != nil
		}
		if finished {
			break
		}
	}
	other, _ := filled(t, many(40)...)
	want := summary(t, other, night1(t, options(other)))
	got := readSummary(t, out)
	if a, b := outline(got), outline(want); a != b {
		t.Errorf("after %d kills:\n%s, want\n%s", kills, a, b)
	}
	t.Logf("killed %d times, %d analyses for %d failures", kills, len(analyses(t)), len(ids))
}

// outline leaves out the differences between two corpora: names and times.
func outline(s *Summary) string {
	var b strings.Builder
	for _, list := range [][]Group{s.New, s.Back, s.Known} {
		for _, g := range list {
			fmt.Fprintln(&b, g.Digest, g.Kind, g.Summary, g.Count, g.Recent, g.Stacks)
		}
	}
	fmt.Fprintln(&b, s.Failures, len(s.Undiagnosed), len(s.Partial))
	return b.String()
}
