package replay_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// probed records internal/testdata/probe/queue.c.
func probed(t testing.TB, compiler, level string) *record.Recording {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), "queue")
	if out, err := exec.Command(path, "-g", level, "-pthread", "-o", exe, "../internal/testdata/probe/queue.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, nil, "", "SIGABRT").Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

func wholeOf(t *testing.T, rec *record.Recording, name string) uint64 {
	t.Helper()
	return uint64(wordAt(t, rec, addressOf(t, rec, name)))
}

var probedBuilds = []struct{ compiler, level string }{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O0"}, {"clang", "-O2"}}

// TestArrivals: a probe sees each of 120,000 calls, with its arguments and moment, and the replay
// ends as recorded.
func TestArrivals(t *testing.T) {
	for _, b := range probedBuilds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := probed(t, b.compiler, b.level)
			mix, push := addressOf(t, rec, "mix"), addressOf(t, rec, "push")
			mixed, pushed := wholeOf(t, rec, "mixed"), wholeOf(t, rec, "pushed")
			if mixed < 100_000 || pushed != 900 {
				t.Fatalf("%d and %d calls", mixed, pushed)
			}
			seen := map[evidence.Addr]uint64{}
			threads := map[uint32]int{}
			var last evidence.Moment
			started := time.Now()
			r, err := replay.Run(t.Context(), rec, replay.ProbeRequest{Verify: true, Probing: replay.Probing{At: []evidence.Addr{mix, push}, OnArrival: func(a *replay.Arrival) error {
				pc := a.Moment.PC
				n := seen[pc]
				seen[pc]++
				regs, err := a.Registers()
				if err != nil {
					return err
				}
				if rdi, _ := regs.Get(image.Register(x86.RDI)); pc == mix && rdi != n {
					return fmt.Errorf("call %d has the argument %d", n, rdi)
				}
				if pc == mix && a.Moment.Count != n+1 {
					return fmt.Errorf("call %d is at %v", n, a.Moment)
				}
				threads[a.Moment.Thread]++
				if last = a.Moment; n == 100 {
					stack, err := a.Stack()
					if err != nil || !slices.ContainsFunc(stack, func(s string) bool { return len(s) > 0 }) {
						return fmt.Errorf("stack %q: %w", stack, err)
					}
				}
				return nil
			}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d arrivals in %v, %d moved, %d trapped", r.Arrivals, time.Since(started), r.Moved, r.Trapped)
			if seen[mix] != mixed || seen[push] != pushed || r.Arrivals != mixed+pushed || threads[1] != int(mixed) || len(threads) != 4 {
				t.Errorf("%v in threads %v, want %d and %d", seen, threads, mixed, pushed)
			}
			if !r.Comparison.Identical() || r.Moved != 2 || len(r.Unreachable) > 0 {
				t.Errorf("%s; %d moved, %d trapped, %v unreachable", recordtest.Differences(r), r.Moved, r.Trapped, r.Unreachable)
			}
			reached := false
			_, err = replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: last, Do: func(*replay.Stopped) error {
				reached = true
				return replay.ErrEnough
			}}}}})
			if err != nil || !reached {
				t.Errorf("the moment %v is not reached: %v", last, err)
			}
		})
	}
}

// TestArrivalsEverywhere: all instructions of functions at once, added ones among them, leave the
// replay as recorded.
func TestArrivalsEverywhere(t *testing.T) {
	for _, b := range probedBuilds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := probed(t, b.compiler, b.level)
			var all []evidence.Addr
			var added evidence.Addr
			atEnd(t, rec, func(s *replay.Stopped) error {
				p, err := s.Process()
				if err != nil {
					return err
				}
				for _, name := range []string{"push", "pop", "weigh", "worker", "handler", "fold"} {
					f, ok := p.SymbolNamed(name)
					if !ok {
						return errors.New("no " + name)
					}
					code := make([]byte, f.Size)
					if _, err := p.ReadMemory(f.Addr, code); err != nil {
						return err
					}
					for at := 0; at < len(code); {
						inst, err := x86.Decode(code[at:], uint64(f.Addr)+uint64(at))
						if err != nil {
							return err
						}
						if name == "pop" && at == 0 {
							added = f.Addr
						} else {
							all = append(all, evidence.Addr(inst.PC))
						}
						at += inst.Len
					}
				}
				return nil
			})
			seen := map[evidence.Addr]uint64{}
			r, err := replay.Run(t.Context(), rec, replay.ProbeRequest{Verify: true, Probing: replay.Probing{At: append(all, 0x10), OnArrival: func(a *replay.Arrival) error {
				seen[a.Moment.PC]++
				if len(seen) == 10 && seen[added] == 0 {
					if ok, err := a.AddPoint(added); !ok || err != nil {
						return fmt.Errorf("not added: %v", err)
					}
				}
				return nil
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Comparison.Identical() || !slices.Equal(r.Unreachable, []evidence.Addr{0x10}) || r.Moved == 0 || r.Trapped == 0 {
				t.Errorf("%s; %d moved, %d trapped, %v unreachable", recordtest.Differences(r), r.Moved, r.Trapped, r.Unreachable)
			}
			push, fold := addressOf(t, rec, "push"), addressOf(t, rec, "fold")
			if seen[push] != 900 || seen[fold] == 0 || seen[added] != 300 {
				t.Errorf("%d calls of push, %d of fold, %d of pop", seen[push], seen[fold], seen[added])
			}
			t.Logf("%d arrivals at %d instructions, %d moved, %d trapped", r.Arrivals, len(all), r.Moved, r.Trapped)
		})
	}
}

// TestArrivalsEnd: a replay is ended at an arrival, by an error and by its context.
func TestArrivalsEnd(t *testing.T) {
	rec := probed(t, "gcc", "-O2")
	mix := addressOf(t, rec, "mix")
	begun, n := 0, 0
	ends := func(with error) (*replay.Result, error) {
		n = 0
		return replay.Run(t.Context(), rec, replay.ProbeRequest{Probing: replay.Probing{At: []evidence.Addr{mix}, Begin: func() { begun++ }, OnArrival: func(*replay.Arrival) error {
			if n++; n == 20 {
				return with
			}
			return nil
		}}})
	}
	if r, err := ends(replay.ErrEnough); err != nil || r.End != replay.EndMoment || n != 20 || r.Moment.PC != mix || r.Moment.Count != 1 || begun != 1 {
		t.Errorf("%v after %d arrivals: %+v", err, n, r)
	}
	mine := errors.New("mine")
	if _, err := ends(mine); !errors.Is(err, mine) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := replay.Run(ctx, rec, replay.ProbeRequest{Probing: replay.Probing{At: []evidence.Addr{mix}, OnArrival: func(*replay.Arrival) error {
		cancel()
		return nil
	}}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
