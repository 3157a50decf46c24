package analysis

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
)

// refusing is a Confiner that fails for replays.
type refusing struct {
	err   error
	views []View
}

func (r *refusing) Confine(_ context.Context, _ *exec.Cmd, v View) (func(), error) {
	r.views = append(r.views, v)
	if len(v.Recordings) > 0 {
		return nil, r.err
	}
	return func() {}, nil
}

// Where the files or the machine cannot be confined, a recording is not replayed, and its core is
// read. Of the machine that is told.
func TestConfinement(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		err     error
		reasons string
		free    bool
	}{
		{errors.New("a file is missing"), "a file is missing; then ", false},
		{&UnsupportedError{"no namespaces"}, "replays cannot be confined here: analysis: no namespaces; then ", true},
	} {
		r := &refusing{err: x.err}
		a, err := Open(Options{Version: "v1", Command: []string{"/bin/false"}, Confine: r, Scratch: func() (string, func(), error) { return t.TempDir(), func() {}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		found, err := a.Analyse(t.Context(), Failure{Kind: corpus.KindRecording, Dir: dir, Needed: []string{dir}, Time: time.Minute, Memory: 1 << 30})
		a.Close()
		if err != nil || found.Diagnosed || !strings.HasPrefix(found.Reason, x.reasons) {
			t.Errorf("%+v, %v", found, err)
		}
		if len(r.views) != 2 || len(r.views[0].Recordings) != 1 || len(r.views[1].Recordings) != 0 {
			t.Errorf("%+v", r.views)
		}
		if confined, why := a.Confinement(); confined == x.free || (why != "") != x.free {
			t.Errorf("%v, %q", confined, why)
		}
	}
}
