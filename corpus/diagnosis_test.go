package corpus

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/evidence/signature"
)

// diagnosed writes a diagnosis as a nightly run would.
func diagnosed(t testing.TB, c *Corpus, id, version, cause, stack string) {
	t.Helper()
	if err := c.Claim(t.Context(), id, version); err != nil {
		t.Fatal(err)
	}
	r := Result{Diagnosis: Diagnosis{Version: version, Diagnosed: true, Kind: "heap-overflow", Proof: "proved", Summary: cause + " is to blame", Started: start, Took: time.Second},
		Signature: signature.Restore([]string{stack}, []string{cause}), Report: []byte(`{"case":"` + cause + `"}`)}
	if err := c.Finish(t.Context(), id, r); err != nil {
		t.Fatal(err)
	}
}

func TestDiagnoses(t *testing.T) {
	c := create(t)
	id := add(t, c, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	diagnosed(t, c, id, "v1", "one", "stack")
	if err := c.Claim(t.Context(), id, "v1"); !errors.Is(err, ErrTaken) {
		t.Errorf("diagnosed twice: %v", err)
	}
	if err := c.Finish(t.Context(), id, Result{}); !errors.Is(err, ErrTaken) {
		t.Errorf("a result without a claim: %v", err)
	}
	diagnosed(t, c, id, "v2", "two", "stack")
	e, err := c.Find(t.Context(), id)
	if err != nil || e.Diagnosis == nil || e.Diagnosis.Version != "v2" || e.Diagnosis.Summary != "two is to blame" || !e.Diagnosis.Diagnosed {
		t.Fatalf("%+v, %v", e.Diagnosis, err)
	}
	if text, err := c.Report(t.Context(), id); err != nil || string(text) != `{"case":"two"}` {
		t.Errorf("%s, %v", text, err)
	}
	if list, err := c.Diagnoses(t.Context(), id); err != nil || len(list) != 2 || list[0].Version != "v1" || list[0].Took != time.Second {
		t.Errorf("%+v, %v", list, err)
	}
	if lines, err := c.Lines(t.Context(), e.Diagnosis.Cause); err != nil || !slices.Equal(lines, []string{"two"}) {
		t.Errorf("%q, %v", lines, err)
	}
	// A diagnosis without a report is tried again on request.
	if err := c.Claim(t.Context(), id, "v3"); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v3", Reason: "it took too long"}}); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Undiagnosed(t.Context(), "v3"); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if n, err := c.Forget(t.Context(), "v3"); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if list, err := c.Undiagnosed(t.Context(), "v3"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	// Nothing is written for an entry that was removed meanwhile.
	if err := c.Claim(t.Context(), id, "v3"); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v3"}}); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
}

// A claim ends with the process that made it, however it ends.
func TestClaimsEndWithTheirProcess(t *testing.T) {
	one := create(t)
	two := opened(t, one.Dir)
	id := add(t, one, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	if err := one.Claim(t.Context(), id, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := two.Claim(t.Context(), id, "v1"); !errors.Is(err, ErrTaken) {
		t.Fatalf("%v", err)
	}
	if set, err := two.Claimed(t.Context()); err != nil || !set[id] {
		t.Errorf("%v, %v", set, err)
	}
	one.owner.file.Close() // as the kernel does at the process's end
	if set, err := two.Claimed(t.Context()); err != nil || set[id] {
		t.Errorf("%v, %v", set, err)
	}
	if err := two.Claim(t.Context(), id, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := one.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v1"}}); !errors.Is(err, ErrTaken) {
		t.Errorf("two results: %v", err)
	}
	if err := two.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if set, err := two.Claimed(t.Context()); err != nil || len(set) != 0 {
		t.Errorf("%v, %v", set, err)
	}
}
