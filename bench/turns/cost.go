package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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
	{name: "sort", setup: "seq 400000 | rev > data", argv: []string{"sort", "--parallel=4", "-S", "100M", "DIR/data", "-o", "DIR/sorted"}},
	{name: "pigz", setup: "seq 2000000 > data", argv: []string{"pigz", "-p4", "-kf", "DIR/data"}},
	{name: "xz", setup: "seq 600000 > data", argv: []string{"xz", "-T4", "--block-size=512KiB", "-1", "-kf", "DIR/data"}},
	{name: "ffmpeg", argv: []string{"ffmpeg", "-nostdin", "-v", "error", "-filter_threads", "4", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-t", "4",
		"-c:v", "mpeg4", "-threads", "4", "-y", "DIR/out.mp4"}},
	{name: "x264", setup: "ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240:rate=25 -t 2 -pix_fmt yuv420p -y clip.y4m",
		argv: []string{"x264", "--quiet", "--threads", "4", "--preset", "veryfast", "-o", "DIR/out.264", "DIR/clip.y4m"}},
	{name: "python3", setup: `cat > work.py <<'PY'
import threading
def work(n):
    h = n
    for i in range(1500000): h = (h * 31 + i) % 1000003
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
PY`, argv: []string{"python3", "DIR/work.py"}},
}

// costLimit is for one run or replay.
const costLimit = 2 * time.Minute

// costs prints what turns cost, and how long replays take.
func (s *settings) costs(ctx context.Context, m *meter) error {
	runs := cmp.Or(s.runs, 5)
	fmt.Fprintf(report, "| Program | Rounds | One processor, s | Recorded in turns | Replayed |\n| --- | ---: | ---: | ---: | ---: |\n")
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
		single, _ := load.Summary(c.single)
		recorded, recordedSpread := load.Summary(c.recorded)
		replayed, replayedSpread := load.Summary(c.replayed)
		fmt.Fprintf(report, "| %s | %d | %.2f | %.2f ± %.2f | %.2f ± %.2f |\n", p.name, runs, single, recorded, recordedSpread, replayed, replayedSpread)
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

// cost is, of each round: the seconds on one processor; of those, how many times as long the recording took;
// and of this, how many times as long the replay.
type cost struct {
	single, recorded, replayed []float64
}

func (m *meter) cost(ctx context.Context, argv []string, runs int) (c cost, err error) {
	for range runs {
		single, err := m.onOneProcessor(ctx, argv)
		if err != nil {
			return c, err
		}
		recorded, replayed, err := m.recordAndReplay(ctx, argv)
		if err != nil {
			return c, err
		}
		c.single = append(c.single, single.Seconds())
		c.recorded = append(c.recorded, recorded.Seconds()/single.Seconds())
		c.replayed = append(c.replayed, replayed.Seconds()/recorded.Seconds())
	}
	return c, nil
}

func (m *meter) onOneProcessor(ctx context.Context, argv []string) (time.Duration, error) {
	limit, cancel := context.WithTimeout(ctx, costLimit)
	defer cancel()
	started := time.Now()
	err := exec.CommandContext(limit, "taskset", append([]string{"-c", "0"}, argv...)...).Run()
	return time.Since(started), err
}

func (m *meter) recordAndReplay(ctx context.Context, argv []string) (recorded, replayed time.Duration, err error) {
	limit, cancel := context.WithTimeout(ctx, 2*costLimit)
	defer cancel()
	defer os.RemoveAll(m.out)
	started := time.Now()
	r, err := recorder.Run(limit, recorder.Options{Path: argv[0], Args: argv, Environ: agent.RecordEnvironment(os.Environ(), m.library, nil),
		Library: m.library, Output: m.out, All: true, Turns: &record.Turns{Seed: rand.Uint64()}})
	recorded = time.Since(started)
	if err != nil {
		return 0, 0, err
	}
	if r.Failed {
		return 0, 0, fmt.Errorf("it failed: %s", r.Why)
	}
	rec, err := record.Open(r.Dir)
	if err != nil {
		return 0, 0, err
	}
	defer rec.Close()
	started = time.Now()
	_, err = replay.Run(limit, rec, replay.PlainRequest{})
	return recorded, time.Since(started), err
}
