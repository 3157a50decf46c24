package corpus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Hundreds of changes at once in one process wait for each other, and none fails.
func TestManyChanges(t *testing.T) {
	c, err := Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	core := filepath.Join(t.TempDir(), "core")
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16] = 4 // ET_CORE
	const entries, each = 4, 100
	var group sync.WaitGroup
	for i := range entries {
		if err := os.WriteFile(core, fmt.Append(head, i), 0o600); err != nil {
			t.Fatal(err)
		}
		added, err := c.Add(t.Context(), core, AddOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range each {
			group.Go(func() {
				if err := c.Claim(t.Context(), added.ID, "v1"); err != nil && !errors.Is(err, ErrTaken) {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
}
