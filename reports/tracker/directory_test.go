package tracker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "issues")
	now := time.Now()
	d := &directory{path: dir, now: func() time.Time { return now }}
	r := testReport()
	upsert(t, &directory{path: dir, dry: true, now: d.now}, r, Opened)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("a dry run makes something")
	}
	path := upsert(t, d, r, Opened).URL
	for _, name := range []string{issueName, attachmentName, stateName} {
		if text, err := os.ReadFile(filepath.Join(path, name)); err != nil || len(text) == 0 || strings.Contains(string(text), "hunter2") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	upsert(t, d, r, Commented)
	upsert(t, d, r, Quiet)
	now = now.Add(24 * time.Hour)
	upsert(t, &directory{path: dir, dry: true, now: d.now}, r, Commented)
	upsert(t, d, r, Commented)
	state := filepath.Join(path, stateName)
	os.WriteFile(state, []byte("closed\n"), 0o600)
	upsert(t, d, r, LeftClosed)
	r.BackSince = func(closed time.Time) string {
		if time.Since(closed) > time.Minute {
			t.Errorf("closed at %v", closed)
		}
		return "e7"
	}
	upsert(t, d, r, Reopened)
	now = now.Add(24 * time.Hour)
	os.WriteFile(state, []byte("closed"), 0o600)
	upsert(t, d, r, Reopened)
	upsert(t, d, r, Quiet)
	if list, err := os.ReadDir(filepath.Join(path, commentsName)); err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
	os.WriteFile(state, []byte("what"), 0o600)
	if _, err := d.Upsert(context.Background(), r); kindOf(err) != Down {
		t.Errorf("%v", err)
	}
}

// Of many hosts that run at the same time one opens the issue, and one comments.
func TestDirectoryManyHosts(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []Action{Opened, Commented} {
		var group sync.WaitGroup
		var mu sync.Mutex
		count := map[Action]int{}
		for range 16 {
			group.Go(func() {
				d := &directory{path: dir, now: time.Now}
				var got bool
				var err error
				if want == Opened { // none of them saw an issue
					got, err = d.open(testReport(), filepath.Join(dir, testDigest))
				} else {
					got, err = create(d.comment(filepath.Join(dir, testDigest)), []byte("x"))
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if got {
					count[want]++
				}
			})
		}
		group.Wait()
		if count[want] != 1 {
			t.Errorf("%d hosts: %s", count[want], want)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v is left, %v", list, err)
	}
}
