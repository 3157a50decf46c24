package corpus

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestRemoveAndGC(t *testing.T) {
	c, from := create(t), t.TempDir()
	var ids []string
	for i := range 6 {
		ids = append(ids, add(t, c, recording(t, filepath.Join(from, fmt.Sprint(i)), i)))
	}
	if err := c.Remove(t.Context(), ids[0], "nothing"); err == nil {
		t.Error("an entry that is not there was removed")
	}
	if n := len(whole(t, c)); n != 6 {
		t.Errorf("an error removed something: %d entries", n)
	}
	if err := c.Remove(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:5] {
		diagnosed(t, c, id, "v1", "one", "stack")
	}
	// 5 was not diagnosed, 4 is the newest of its cluster, 3 failed too late.
	opts := GCOptions{Before: start.Add(3 * time.Second), Examples: 1, DryRun: true}
	if drop, err := c.GC(t.Context(), opts); err != nil || len(drop) != 2 {
		t.Fatalf("%+v, %v", drop, err)
	}
	if n := len(whole(t, c)); n != 5 {
		t.Errorf("telling what would go left %d entries", n)
	}
	opts.DryRun = false
	if drop, err := c.GC(t.Context(), opts); err != nil || len(drop) != 2 {
		t.Fatalf("%+v, %v", drop, err)
	}
	left := whole(t, c)
	if len(left) != 3 || left[2].ID != ids[3] {
		t.Errorf("%+v", left)
	}
	clusters, err := c.Clusters(t.Context())
	if err != nil || len(clusters) != 1 || clusters[0].Count != 4 {
		t.Errorf("the history lost the dropped entries: %+v, %v", clusters, err)
	}
	// Added again, it exists again, with its diagnosis.
	if got := add(t, c, filepath.Join(from, "1")); got != ids[1] {
		t.Errorf("%s, want %s", got, ids[1])
	}
	if e, err := c.Find(t.Context(), ids[1]); err != nil || e.DroppedAt != nil || e.Diagnosis == nil {
		t.Errorf("%+v, %v", e, err)
	}
	whole(t, c)
}
