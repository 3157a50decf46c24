package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"diagnose/replay/record/eventlog"
)

func TestTimingIsKept(t *testing.T) {
	r := &Recording{Dir: t.TempDir()}
	if got, err := r.Timing(); got != "" || err != nil {
		t.Fatalf("without a file: %q, %v", got, err)
	}
	for _, want := range []Timing{TimingLazy, TimingEager} {
		if err := r.SetTiming(want); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Timing(); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if entries, err := os.ReadDir(r.Dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v, want only the one", len(entries), err)
	}
	for _, text := range []string{"", "lazy", "late\n", "lazy\nlazy\n"} {
		if err := os.WriteFile(filepath.Join(r.Dir, TimingName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *eventlog.CorruptError
		if _, err := r.Timing(); !errors.As(err, &corrupt) {
			t.Errorf("%q: %v, want a *CorruptError", text, err)
		}
	}
}
