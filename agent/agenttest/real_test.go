package agenttest_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
	"diagnose/quarantine"
)

// library is the agent, built from its sources.
func library(t testing.TB) string {
	t.Helper()
	path, err := agent.Library(t.Context())
	if unsupported := (*agent.UnsupportedError)(nil); errors.As(err, &unsupported) {
		t.Skip(unsupported)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// judged is a process whose heap was judged.
type judged struct {
	heap       *agent.Heap
	canary     *canary.HeapResult
	quarantine *quarantine.Result
	totals     *agent.Totals
}

func judge(t testing.TB, p *image.Process) judged {
	t.Helper()
	h, err := agent.Open(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	return judged{h, canary.CheckHeap(h, canary.HeapOptions{}), quarantine.Check(h, quarantine.Options{}), h.Summarize(0)}
}

// many runs testdata/many.c and returns its core and the addresses of the
// objects that it damaged: one overflown, one freed, a large one.
func many(t testing.TB, objects, mean int) (core string, over, freed, large evidence.Addr) {
	t.Helper()
	lib := library(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/many.c", Flags: []string{"-O1"}})
	out := filepath.Join(t.TempDir(), "out")
	script := fmt.Sprintf("LD_PRELOAD=%s exec %s %d %d > %s", lib, exe, objects, mean, out)
	crashtest.NeedKernelCores(t)
	core = crashtest.Core(t, "/bin/sh", crashtest.Run{Args: []string{"-c", script}, Limit: 5 * 60e9})
	said, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(said), "0x%x 0x%x 0x%x", &over, &freed, &large); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	return core, over, freed, large
}

func openCore(t testing.TB, path string) *image.Process {
	t.Helper()
	p, err := image.OpenCore(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestRealCore(t *testing.T) {
	const objects = 100000
	core, over, freed, large := many(t, objects, 300)
	j := judge(t, openCore(t, core))
	if len(j.canary.Damages) != 2 || len(j.canary.Limits) != 0 {
		t.Fatalf("got %+v", j.canary)
	}
	d := j.canary.Damages[0]
	if d.Object.Addr != over || d.Object.Size != 100 || d.Side != canary.Behind || d.Gap != 3 || d.Damage.Text != "X" || d.Damage.Reaches {
		t.Errorf("got %+v", d)
	}
	d = j.canary.Damages[1]
	if d.Object.Addr != large || d.Object.Size != 200001 || !d.Object.Large || d.Side != canary.Before || d.Damage.Offset != -2 || d.Damage.Text != "Z" {
		t.Errorf("got %+v", d)
	}
	if len(j.quarantine.Damages) != 1 || len(j.quarantine.Limits) != 0 {
		t.Fatalf("got %+v", j.quarantine)
	}
	q := j.quarantine.Damages[0]
	if q.Object.Addr != freed || q.Object.Size != 200 || q.Damage.Offset != 16 || q.Damage.Text != "Y" || !q.Object.Freed.Known() {
		t.Errorf("got %+v", q)
	}
	for name, call := range map[string]agent.Call{"allocation": q.Object.Allocated, "free": q.Object.Freed} {
		pcs, err := j.heap.Site(call.Site)
		if err != nil || len(pcs) == 0 {
			t.Errorf("%s at %v, %v", name, pcs, err)
		}
		if th, err := j.heap.Thread(call.Thread); err != nil || th.TID == 0 || th.Ended {
			t.Errorf("%s by %+v, %v", name, th, err)
		}
	}
	totals := j.totals
	if totals.Gaps.Count != 0 || totals.Live != totals.Allocations-totals.Frees || totals.Live < objects/2 || totals.Live != j.canary.Checked {
		t.Errorf("got %+v, %d canaries checked", totals, j.canary.Checked)
	}
	if n := totals.Quarantined + totals.Reusable; n == 0 || j.quarantine.Checked != n {
		t.Errorf("%d freed objects, %d checked", n, j.quarantine.Checked)
	}
}

// A process stopped at any moment, in the middle of whatever call, shows no
// damage: that is what the order of the agent's stores is for.
func TestStoppedAnywhere(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/busy.c", Flags: []string{"-O2", "-pthread"}})
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library(t))
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	stderr := func() string {
		text, err := os.ReadFile(said.Name())
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "running\n" {
		t.Fatalf("%q, %v, %s", line, err, stderr())
	}
	var frees uint64
	var busy int
	for range 40 {
		p, err := image.OpenLive(cmd.Process.Pid, image.Options{})
		if err != nil {
			t.Fatal(err, stderr())
		}
		j := judge(t, p)
		if len(j.canary.Damages)+len(j.quarantine.Damages) != 0 {
			t.Errorf("damaged: %+v %+v", j.canary.Damages, j.quarantine.Damages)
		}
		if len(j.canary.Limits)+len(j.quarantine.Limits) != 0 {
			t.Errorf("limits: %+v %+v", j.canary.Limits, j.quarantine.Limits)
		}
		if j.totals.Frees < frees || j.canary.Checked == 0 {
			t.Errorf("%d frees after %d, %d canaries", j.totals.Frees, frees, j.canary.Checked)
		}
		frees = j.totals.Frees
		busy += busyHeaps(t, p, j.heap)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if frees == 0 || busy == 0 || strings.Contains(stderr(), "diagnose") {
		t.Errorf("%d frees, %d calls were interrupted, %s", frees, busy, stderr())
	}
}

// busyHeaps counts the threads that were stopped in a call.
func busyHeaps(t *testing.T, p *image.Process, h *agent.Heap) (n int) {
	for i := range h.Root().Heaps.Used {
		var raw agent.RawHeap
		data := make([]byte, binary.Size(raw))
		if _, err := p.ReadMemory(evidence.Addr(h.Root().Heaps.Start+i*uint64(len(data))), data); err != nil {
			t.Fatal(err)
		}
		if _, err := binary.Decode(data, binary.LittleEndian, &raw); err != nil {
			t.Fatal(err)
		}
		if raw.Busy != 0 {
			n++
		}
	}
	t.Logf("%d threads were in a call", n)
	return n
}
