package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/record/integrity"
)

// TestNoRoom records where there is no room for all data, or soon will be none. The program must
// not notice.
func TestNoRoom(t *testing.T) {
	diagnose := tool(t)
	p, err := recordtest.Read("../internal/testdata/record/faults/busy.c")
	if err != nil {
		t.Fatal(err)
	}
	busy := p.Build(t)
	for _, test := range []struct {
		name, before, while string
		says                string
		replays             bool
	}{
		{name: "files limited", before: "ulimit -f 300", says: "the program passed, which its recording does not reach; to see what there is: diagnose replay ", replays: true},
		{name: "few descriptors", before: "ulimit -n 16", says: "the program passed; to see it again: diagnose replay ", replays: true},
		{name: "fewer descriptors for the program", before: `set -- "$1" sh -c "ulimit -n 24; exec \"$2\" 4 400"`, says: "the program passed; to see it again: diagnose replay ", replays: true},
		{name: "little address space", before: `set -- "$1" sh -c "ulimit -v 300000; exec \"$2\" 4 400"`, says: "the program passed; to see it again: diagnose replay ", replays: true},
		{name: "directory removed", says: "the program passed; ", while: `(while [ ! -e "$1"/.*-running/log ]; do sleep 0.01; done; rm -rf "$1") 2>/dev/null & `},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "recordings")
			script := test.while + test.before + "\n" + `r=$1; shift; "$0" record --all -o "$r" -- "$@"`
			args := []string{"-c", script, diagnose, dir, busy}
			if !strings.HasPrefix(test.before, "set") {
				args = append(args, strconv.Itoa(busyThreads), strconv.Itoa(busyRounds))
			}
			ctx, cancel := context.WithTimeout(t.Context(), faultLimit)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != busyOutput() {
				t.Errorf("the program wrote %q, %v; %s", out, err, stderr.String())
			}
			if !strings.Contains(stderr.String(), "diagnose: "+test.says) {
				t.Errorf("the user is told: %s", stderr.String())
			}
			if !test.replays && strings.Contains(stderr.String(), "diagnose replay") {
				t.Errorf("the user is told: %s", stderr.String())
			}
			if test.replays && replayRest(t, dir, false) == 0 {
				t.Error("no events")
			}
			if test.name == "files limited" {
				checkCut(t, dir)
			}
		})
	}
}

func checkCut(t *testing.T, dir string) {
	t.Helper()
	rec, err := openRest(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if kind := rec.Manifest.Outcome.Kind; kind != record.OutcomeCut {
		t.Fatalf("the recording is %s: there was room", kind)
	}
	checked, err := integrity.Check(t.Context(), rec.Dir)
	if err != nil || len(checked.Problems) == 0 || !checked.Problems[0].Cut {
		t.Errorf("checked: %+v, %v", checked, err)
	}
}

// TestEndsEarly makes the library end its recording for a reason of its own. The user must be told
// the reason, and that the recording does not reach the program's end.
func TestEndsEarly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	var stderr bytes.Buffer
	cmd, in := recordCat(t, dir, &stderr)
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", childOf(childOf(cmd.Process.Pid))), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	stopped := binary.LittleEndian.AppendUint32(nil, agent.LimitPlace)
	if _, err := memory.WriteAt(stopped, int64(agent.EngineControl+unsafe.Offsetof(agent.RawControl{}.Stopped))); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the recording ended early, for a signal arrived in the recorder's own code", "the program passed, which its recording does not reach; "} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("the user is told: %s", stderr.String())
		}
	}
	rec, err := openRest(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if !slices.ContainsFunc(rec.Manifest.Limits, func(l eventlog.Limit) bool { return l.Kind == eventlog.LimitPlace.String() }) {
		t.Errorf("limits: %+v", rec.Manifest.Limits)
	}
}

// TestDiskFull records a failing program onto disks of several sizes. All statements about the
// recordings must be true.
func TestDiskFull(t *testing.T) {
	diagnose := tool(t)
	p, err := recordtest.Read("../internal/testdata/record/faults/many.c")
	if err != nil {
		t.Fatal(err)
	}
	many := p.Build(t)
	said := map[string]int{}
	for _, size := range []string{"64k", "128k", "300k", "400k", "600k", "1m"} {
		dir := t.TempDir()
		if err := unix.Mount("diagnose", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
			t.Skip(&agent.UnsupportedError{What: "mount: " + err.Error()})
		}
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
		recordings := filepath.Join(dir, "recordings")
		cmd := exec.CommandContext(t.Context(), diagnose, "record", "-o", recordings, "--", many, "4", "3000")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.Run()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGABRT {
			t.Errorf("%s: the program ended with %v", size, cmd.ProcessState)
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		last := lines[len(lines)-1]
		list, _ := os.ReadDir(recordings)
		switch {
		case strings.HasPrefix(last, "diagnose: the program died of SIGABRT; nothing was kept"):
			said["nothing"]++
			if len(list) != 0 {
				t.Errorf("%s: there is %v, but %s", size, list, last)
			}
		case strings.HasPrefix(last, "diagnose: the program died of SIGABRT; its recording, ") && strings.HasSuffix(last, "has no events"):
			said["empty"]++
			if rec, err := openRest(recordings, true); err == nil && hasEvents(rec) {
				t.Errorf("%s: there are events, but %s", size, last)
			}
		case strings.HasPrefix(last, "diagnose: the program died of SIGABRT; to see it again: ") && strings.Contains(stderr.String(), "the core of process"):
			said["no core"]++
			if replayRest(t, recordings, true) == 0 {
				t.Errorf("%s: there are no events, but %s", size, last)
			}
		case strings.HasPrefix(last, "diagnose: the program died of SIGABRT, which its recording does not reach; "):
			said["cut"]++
			if replayRest(t, recordings, true) == 0 {
				t.Errorf("%s: there are no events, but %s", size, last)
			}
		default:
			t.Errorf("%s: the user is told: %s", size, stderr.String())
		}
	}
	if len(said) < 2 {
		t.Errorf("of disks that are full sooner and later: %v", said)
	}
}
