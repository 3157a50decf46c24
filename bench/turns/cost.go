package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/bench/load"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// busy is a program with threads that compute. DIR in it is a directory that setup, a bash script, has filled.
type busy struct {
	name, setup string
	argv        []string
}

var busyPrograms = []busy{
	{name: "sort", setup: "seq 1200000 | rev > data", argv: []string{"sort", "--parallel=4", "-S", "100M", "DIR/data", "-o", "DIR/sorted"}},
	{name: "pigz", setup: "seq 4000000 > data", argv: []string{"pigz", "-p4", "-kf", "DIR/data"}},
	{name: "xz", setup: "seq 2000000 > data", argv: []string{"xz", "-T4", "--block-size=512KiB", "-1", "-kf", "DIR/data"}},
	{name: "ffmpeg", argv: []string{"ffmpeg", "-nostdin", "-v", "error", "-filter_threads", "4", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-t", "16",
		"-c:v", "mpeg4", "-threads", "4", "-y", "DIR/out.mp4"}},
	{name: "x264", setup: "ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240:rate=25 -t 8 -pix_fmt yuv420p -y clip.y4m",
		argv: []string{"x264", "--quiet", "--threads", "4", "--preset", "veryfast", "-o", "DIR/out.264", "DIR/clip.y4m"}},
	{name: "python3", setup: `cat > work.py <<'PY'
import threading
def work(n):
    h = n
    for i in range(3000000): h = (h * 31 + i) % 1000003
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
PY`, argv: []string{"python3", "DIR/work.py"}},
}

// costLimit is for one run or replay.
const costLimit = 2 * time.Minute

// The goals: a recording takes at most so many times as long as the program on one processor, and a replay as the recording.
const (
	recordedGoal = 1.15
	replayedGoal = 5
)

// costs prints what turns cost, and how long replays take.
func (s *settings) costs(ctx context.Context, m *meter) error {
	runs := cmp.Or(s.runs, 5)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	os.Setenv("PATH", load.SearchPath) // elsewhere a program may be a script that starts it
	fmt.Fprintf(report, "| Program | Rounds | One processor, s | CPU, s | Recorded in turns | CPU | Goal %.2f | Replayed | Goal %d | Failed replays |\n"+
		"| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | --- | ---: |\n", recordedGoal, replayedGoal)
	var failed []string
	for _, p := range busyPrograms {
		if !s.measures(p.name) {
			continue
		}
		argv, err := p.prepare(ctx, filepath.Join(s.dir, p.name))
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		c, err := m.cost(ctx, argv, runs)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(report, "| %s | %d | %s |\n", p.name, runs, c.row())
		for _, why := range c.failed {
			failed = append(failed, fmt.Sprintf("%s: %v", p.name, why))
		}
	}
	fmt.Fprintln(report)
	for _, text := range failed {
		fmt.Fprintln(report, text)
	}
	return nil
}

// prepare returns the program's arguments.
func (p *busy) prepare(ctx context.Context, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "bash", "-ec", p.setup)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	path, err := exec.LookPath(p.argv[0])
	if err != nil {
		return nil, err
	}
	argv := []string{path}
	for _, a := range p.argv[1:] {
		argv = append(argv, strings.ReplaceAll(a, "DIR", dir))
	}
	return argv, nil
}

// cost is, of each round: the seconds on one processor, and those of the processor; how many times as much the recording took of both;
// and how many times as long as the recording the replay, if it reached the recorded end.
type cost struct {
	single, singleCPU, recorded, recordedCPU, replayed []float64
	// failed says of each other replay why it did not.
	failed []error
}

// row is the table's columns after the number of rounds.
func (c *cost) row() string {
	text := func(values []float64) string {
		median, spread := load.Summary(values)
		return fmt.Sprintf("%.2f ± %.2f", median, spread)
	}
	met := func(values []float64, goal float64) string {
		if median, _ := load.Summary(values); median > goal {
			return "missed"
		}
		return "met"
	}
	single, _ := load.Summary(c.single)
	cpu, _ := load.Summary(c.singleCPU)
	replayed, goal := "-", "missed"
	if len(c.replayed) > 0 {
		replayed = text(c.replayed)
	}
	if len(c.failed) == 0 {
		goal = met(c.replayed, replayedGoal)
	}
	return fmt.Sprintf("%.2f | %.2f | %s | %s | %s | %s | %s | %d", single, cpu, text(c.recorded), text(c.recordedCPU),
		met(c.recorded, recordedGoal), replayed, goal, len(c.failed))
}

func (m *meter) cost(ctx context.Context, argv []string, runs int) (c cost, err error) {
	// The first recording looks for system calls in the program's libraries.
	if _, err := m.recordTurns(ctx, argv, false); err != nil {
		return c, err
	}
	for range runs {
		single, err := spent(func() error { return m.onOneProcessor(ctx, argv) })
		if err != nil {
			return c, err
		}
		recorded, err := spent(func() error { _, err := m.recordTurns(ctx, argv, false); return err })
		if err != nil {
			return c, err
		}
		dir, err := m.recordTurns(ctx, argv, true)
		if err != nil {
			return c, err
		}
		replayed, failure, err := replayOnce(ctx, dir)
		os.RemoveAll(m.out)
		if err != nil {
			return c, err
		}
		c.single, c.singleCPU = append(c.single, single.wall), append(c.singleCPU, single.cpu)
		c.recorded, c.recordedCPU = append(c.recorded, recorded.wall/single.wall), append(c.recordedCPU, recorded.cpu/single.cpu)
		if failure != nil {
			c.failed = append(c.failed, failure)
		} else {
			c.replayed = append(c.replayed, replayed/recorded.wall)
		}
	}
	return c, nil
}

// seconds are those of a clock, and those of the processors.
type seconds struct {
	wall, cpu float64
}

// spent measures what a function and the processes that it starts spend.
func spent(on func() error) (seconds, error) {
	reap()
	cpu, started := load.ProcessorTime(), time.Now()
	err := on()
	wall := time.Since(started).Seconds()
	reap()
	return seconds{wall, load.ProcessorTime() - cpu}, err
}

// reap waits until no child is left: the recorder's process outlives a run by a moment, and its processor time counts when it was waited for.
func reap() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (m *meter) onOneProcessor(ctx context.Context, argv []string) error {
	limit, cancel := context.WithTimeout(ctx, costLimit)
	defer cancel()
	return exec.CommandContext(limit, "taskset", append([]string{"-c", "0"}, argv...)...).Run()
}

// recordTurns records the program in turns. A recording that is not kept, as none of a run that passes is, has no core.
func (m *meter) recordTurns(ctx context.Context, argv []string, keep bool) (dir string, err error) {
	limit, cancel := context.WithTimeout(ctx, costLimit)
	defer cancel()
	r, err := recorder.Run(limit, recorder.Options{Path: argv[0], Args: argv, Environ: agent.RecordEnvironment(os.Environ(), m.library, nil),
		Library: m.library, Output: m.out, All: keep, Turns: &record.Turns{Seed: rand.Uint64()}})
	if err == nil && r.Failed {
		err = fmt.Errorf("it failed: %s", r.Why)
	}
	return r.Dir, err
}

// replayOnce returns how long a replay took. The failure says why it did not reach the recorded end.
func replayOnce(ctx context.Context, dir string) (seconds float64, failure, err error) {
	limit, cancel := context.WithTimeout(ctx, costLimit)
	defer cancel()
	rec, err := record.Open(dir)
	if err != nil {
		return 0, nil, err
	}
	defer rec.Close()
	started := time.Now()
	result, err := replay.Run(limit, rec, replay.PlainRequest{})
	switch {
	case ctx.Err() != nil:
		return 0, nil, ctx.Err()
	case err != nil && (result != nil || limit.Err() != nil):
		return 0, err, nil
	case err != nil:
		return 0, nil, err
	case result.End != replay.EndExit || result.Events != result.Total:
		return 0, fmt.Errorf("it ended otherwise: %v, after %d of %d events", result.End, result.Events, result.Total), nil
	}
	return time.Since(started).Seconds(), nil, nil
}
