package explore

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// runner runs one schedule after another.
type runner struct {
	options   *HuntOptions
	processor int
	files     []*os.File // the program's standard streams
	hunter    *recorder.Hunter
}

// mostOutput is how many bytes of a program's output are examined.
const mostOutput = 4 << 20

func newRunner(o *HuntOptions, number int) (*runner, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("explore: %w", err)
	}
	r := &runner{options: o, processor: processor(number), files: []*os.File{null, null, null}}
	if o.FailIf != nil {
		if err := r.keepOutput(); err != nil {
			return nil, err
		}
	}
	run := o.Record
	run.All, run.Prepared, run.Signals = true, nil, nil
	r.hunter = recorder.NewHunter(run, r.files)
	return r, nil
}

// keepOutput redirects the program's output to memory.
func (r *runner) keepOutput() error {
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("explore: memory for the program's output: %w", err)
	}
	out := os.NewFile(uintptr(fd), "output")
	r.files[1], r.files[2] = out, out
	return nil
}

// close ends the process that waits for the next run.
func (r *runner) close() {
	r.hunter.Close()
	r.files[0].Close()
	if r.options.FailIf != nil {
		r.files[1].Close()
	}
}

// processor returns the n-th processor that this process may use; -1 if there are fewer. One
// thread at a time runs, or its tracer, and each runs where the previous one ran.
func processor(n int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || n >= set.Count() {
		return -1
	}
	for i := 0; ; i++ {
		if !set.IsSet(i) {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
}

// ran is the result of a run.
type ran struct {
	seed    uint64
	hunted  *record.Hunted
	failure *Failure
	hung    bool   // it did not end in time
	dir     string // its recording's
	took    time.Duration
}

// runSchedule makes a run and keeps only its result.
func (r *runner) runSchedule(ctx context.Context, h *record.Hunt) (*ran, error) {
	h.Quiet = true
	return r.make(ctx, h)
}

// record makes a run and keeps its recording.
func (r *runner) record(ctx context.Context, h *record.Hunt) (*ran, error) {
	h.Quiet = false
	return r.make(ctx, h)
}

func (r *runner) make(ctx context.Context, h *record.Hunt) (*ran, error) {
	limit, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	h.Processor = r.processor
	if err := r.files[1].Truncate(0); err == nil {
		r.files[1].Seek(0, io.SeekStart)
	}
	started := time.Now()
	result, err := r.hunter.Run(limit, h)
	if err != nil {
		return nil, err
	}
	x := &ran{hunted: result.Hunted, dir: result.Dir, took: time.Since(started)}
	killed := result.Status.Signaled() && result.Status.Signal() == unix.SIGKILL
	if killed && result.Outcome.Stuck == "" && limit.Err() != nil {
		x.hung = true
		return x, nil
	}
	x.failure, err = r.failure(&result)
	return x, err
}

// failure describes how a run failed; nil: it did not.
func (r *runner) failure(result *recorder.Result) (*Failure, error) {
	f := &Failure{Kind: result.Outcome.Kind, Signal: result.Outcome.Signal, Status: result.Outcome.Status, Stuck: result.Outcome.Stuck,
		Heap: result.Outcome.Evidence != "", Text: result.Why}
	if result.Failed {
		f.Child = f.Kind == record.OutcomePassed && !f.Heap
		return f, nil
	}
	if r.options.FailIf == nil {
		return nil, nil
	}
	text, err := r.output()
	if err != nil {
		return nil, err
	}
	line := r.options.FailIf.Find(text)
	if line == nil {
		return nil, nil
	}
	f.Output, f.Text = true, fmt.Sprintf("the program wrote %q", line)
	return f, nil
}

func (r *runner) output() ([]byte, error) {
	text, err := io.ReadAll(io.NewSectionReader(r.files[1], 0, mostOutput))
	if err != nil {
		return nil, fmt.Errorf("explore: the program's output: %w", err)
	}
	return text, nil
}

// digest returns a hash that identifies a schedule.
func digest(list []record.Decision) uint64 {
	h := fnv.New64a()
	var b [16]byte
	for _, d := range list {
		binary.LittleEndian.PutUint32(b[:], d.Thread)
		binary.LittleEndian.PutUint32(b[4:], d.To)
		binary.LittleEndian.PutUint64(b[8:], d.Step)
		h.Write(b[:])
	}
	return h.Sum64()
}
