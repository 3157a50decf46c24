package corpus

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/evidence/signature"
	"diagnose/replay/record"
)

func TestClusters(t *testing.T) {
	c, from := create(t), t.TempDir()
	for i, x := range []struct{ cause, stack string }{{"one", "a"}, {"one", "b"}, {"two", "a"}, {"", "a"}} {
		id := add(t, c, recording(t, filepath.Join(from, fmt.Sprint(i)), i))
		if err := c.Claim(t.Context(), id, "v1"); err != nil {
			t.Fatal(err)
		}
		s := signature.Restore([]string{x.stack}, nil)
		if x.cause != "" {
			s = signature.Restore([]string{x.stack}, []string{x.cause})
		}
		if err := c.Finish(t.Context(), id, Result{Diagnosis: Diagnosis{Version: "v1", Diagnosed: true}, Signature: s}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Clusters(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if g := list[0]; g.Count != 2 || g.Stacks != 2 || !g.ByCause || !slices.Equal(g.Lines, []string{"one"}) || !g.First.Equal(start) || !g.Last.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", g)
	}
}

// A failure of a later build is a regression; one of a build from before the fix is not.
func TestFixedAndBack(t *testing.T) {
	c, from := create(t), t.TempDir()
	build := func(i int, build string) string {
		dir := recording(t, filepath.Join(from, fmt.Sprint(i)), i)
		m, err := record.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Program.BuildID = build
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		id := add(t, c, dir)
		diagnosed(t, c, id, "v1", "one", "stack")
		return id
	}
	cluster := func() Cluster {
		list, err := c.Clusters(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	build(0, "aa")
	digest := cluster().Digest
	if err := c.Fixed(t.Context(), digest, start.Add(10*time.Second), "in 1.4"); err != nil {
		t.Fatal(err)
	}
	build(20, "aa")
	if g := cluster(); g.Back != "" || g.Fixed == nil || g.Note != "in 1.4" {
		t.Errorf("an old build: %+v", g)
	}
	back := build(30, "bb")
	build(40, "bb")
	if g := cluster(); g.Back != back {
		t.Errorf("back since %q, want %q", g.Back, back)
	}
	at := start.Add(time.Hour)
	for range 2 {
		if err := c.Reported(t.Context(), at, []string{digest}, []string{digest}); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Hour) // the first report counts
	}
	if g := cluster(); g.Reported == nil || !g.Reported.Equal(start.Add(time.Hour)) || g.Returned == nil || !g.Returned.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v", g)
	}
	if err := c.Reopened(t.Context(), digest, ""); err != nil {
		t.Fatal(err)
	}
	if g := cluster(); g.Fixed != nil || g.Back != "" || g.Returned != nil {
		t.Errorf("%+v", g)
	}
}
