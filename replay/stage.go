package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// stage is one process of a replay: the requested one, or one from which it was forked and whose
// replay leads up to the fork.
type stage struct {
	rec    *record.Recording
	owned  bool // to be closed by the stage
	limits []string
	// shared: other processes write to memory of this process.
	shared bool

	image    *os.File // mapped by the process
	layout   *eventlog.Image
	schedule eventlog.Schedule
	// preemptions are made in addition to that order.
	preemptions []eventlog.Preemption
	events      uint64
	sites       []byte
	traps       map[uint64]bool // those of sites that are DG_PATCH_TRAP; nil: not searched yet
	// data is the recording's file of mapped bytes; nil if it has none.
	data *os.File
}

// openStages returns a recording and those of its ancestors that it shares memory with, the oldest
// first.
func openStages(rec *record.Recording) ([]*stage, error) {
	stages := []*stage{{rec: rec}}
	for {
		oldest := stages[0].rec
		parent := oldest.Manifest.Parent
		if parent == nil || parent.Exec {
			return stages, nil
		}
		if parent.Ordinal == 0 {
			return stages, tracee.Inputf("replay: %s is of a fork's child, and not known at which event of its parent it began", oldest.Dir)
		}
		p, err := oldest.Parent()
		if err != nil {
			return stages, tracee.Inputf("replay: %s is of a fork's child, whose replay begins with its parent's: %w", oldest.Dir, err)
		}
		stages = append([]*stage{{rec: p, owned: true}}, stages...)
	}
}

func (s *stage) close() {
	for _, f := range []*os.File{s.image, s.data} {
		if f != nil {
			f.Close()
		}
	}
	if s.owned {
		s.rec.Close()
	}
}

// prepare makes the image. core is the recorded end, nil if there is none. preemptions are made in
// addition to the recorded order; nil: those of the recording.
func (s *stage) prepare(core *image.Process, preemptions []eventlog.Preemption, timing record.Timing) error {
	for _, l := range s.rec.Manifest.Limits {
		s.limits = append(s.limits, l.Text)
	}
	part := s.schedule != nil
	if err := s.readSchedule(); err != nil {
		return err
	}
	if err := s.usePreemptions(preemptions, timing, part); err != nil {
		return err
	}
	var err error
	if s.image, err = unlinked(); err != nil {
		return err
	}
	if s.layout, err = s.rec.Log.WriteImage(s.image, s.schedule, eventlog.ImageOptions{Skipped: s.skippedAtEnd(core), Preemptions: s.preemptions}); err != nil {
		return tracee.Inputf("replay: %w", err)
	}
	s.events = s.layout.Events
	if s.sites, err = s.readSites(); err != nil {
		return err
	}
	s.data, err = s.rec.File(record.DataName)
	if errors.Is(err, os.ErrNotExist) {
		s.data, err = nil, nil
	}
	return err
}

// readSchedule reads the recorded order unless another was requested, and the limits that the
// engine noted.
func (s *stage) readSchedule() error {
	if s.schedule != nil {
		summary, err := s.rec.Log.Summarize()
		if err != nil {
			return tracee.Inputf("replay: %w", err)
		}
		s.addLimits(summary.Limits)
		return nil
	}
	schedule, limits, err := s.rec.Log.ScheduleAndLimits()
	s.schedule = schedule
	s.addLimits(limits)
	if len(s.schedule) == 0 && err == nil {
		return tracee.Inputf("replay: %s has no events", s.rec.Dir)
	}
	if len(s.schedule) == 0 {
		return tracee.Inputf("replay: %w", err)
	}
	if err != nil {
		s.limits = append(s.limits, err.Error())
	}
	return nil
}

// addLimits adds the limits that are not in the list.
func (s *stage) addLimits(limits []eventlog.Limit) {
	for _, l := range limits {
		s.shared = s.shared || l.Kind == eventlog.LimitShared.String()
		if !slices.Contains(s.limits, l.Text) {
			s.limits = append(s.limits, l.Text)
		}
	}
}

// severalThreads reports whether events of more than one thread are replayed.
func (s *stage) severalThreads() bool {
	return slices.ContainsFunc(s.schedule, func(t eventlog.Turn) bool { return t.Thread != s.schedule[0].Thread })
}

// unlinked creates a private file without a name, which disappears when this process ends. It is
// on a disk, not in memory, because logs can be large.
func unlinked() (*os.File, error) {
	f, err := os.CreateTemp("", "diagnose-replay-*")
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("replay: %w", err)
	}
	return f, nil
}

// pathOf returns a name by which a child process can open the file.
func pathOf(f *os.File) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
}

// mostSites bounds the patch table: a window of 16 GiB in the process.
const mostSites = 64 << 20

func (s *stage) readSites() ([]byte, error) {
	f, err := s.rec.File(record.SitesName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, tracee.Inputf("replay: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostSites+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("replay: %w", err)
	case len(b) > mostSites:
		return nil, tracee.Inputf("replay: the recording's patch table is larger than %d MiB", mostSites>>20)
	}
	return b, nil
}

// trapsAt reports whether the patch table has a trap at an address.
func (s *stage) trapsAt(pc uint64) bool {
	if s.traps == nil {
		s.traps = map[uint64]bool{}
		for at := 0; at+tracee.SiteSize <= len(s.sites); at += tracee.SiteSize {
			var p agent.RawSitePatch
			if _, err := binary.Decode(s.sites[at:], binary.LittleEndian, &p); err == nil && p.Kind == agent.PatchTrap {
				s.traps[p.At] = true
			}
		}
	}
	return s.traps[pc]
}

// skippedAtEnd returns how many mutexes threads took without an event since their last event.
func (s *stage) skippedAtEnd(core *image.Process) map[uint32]uint64 {
	if core == nil {
		return s.rec.Manifest.Outcome.Relocked
	}
	skipped := map[uint32]uint64{}
	for i := range coreThreads(core) {
		if r, err := image.Struct[agent.RawRThread](core, evidence.Addr(agent.RThreadAddress(i))); err == nil {
			skipped[i] = r.BudgetStart - r.Budget
		}
	}
	return skipped
}

// eventAt reads an event of the image, by its address in the process.
func (s *stage) eventAt(addr uint64) (*eventlog.Event, error) {
	at := int64(addr) - int64(eventlog.ImageBase)
	layout := s.layout
	if at < 0 || at >= layout.Size {
		return nil, fmt.Errorf("replay: an event at %#x, outside of the image", addr)
	}
	var head [8]byte
	if _, err := s.image.ReadAt(head[:4], at); err != nil {
		return nil, fmt.Errorf("replay: image: %w", err)
	}
	length := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16 | int64(head[3])<<24
	if length > layout.Size-at {
		return nil, fmt.Errorf("replay: an event of %d bytes at %#x", length, addr)
	}
	b := make([]byte, length)
	if _, err := s.image.ReadAt(b, at); err != nil {
		return nil, fmt.Errorf("replay: image: %w", err)
	}
	e, _, err := eventlog.DecodeEvent(b)
	return e, err
}

// patches yields the engine's patches to the program's text.
func (s *stage) patches() iter.Seq[agent.RawSitePatch] {
	return func(yield func(agent.RawSitePatch) bool) {
		for at := 0; at+tracee.SiteSize <= len(s.sites); at += tracee.SiteSize {
			var p agent.RawSitePatch
			if _, err := binary.Decode(s.sites[at:], binary.LittleEndian, &p); err == nil && !yield(p) {
				return
			}
		}
	}
}

// usePreemptions takes the requested preemptions, or those that the recording has for this timing.
// If only a part of the order is replayed, later ones are left out.
func (s *stage) usePreemptions(given []eventlog.Preemption, timing record.Timing, part bool) error {
	s.preemptions = given
	if s.preemptions == nil {
		found, err := s.rec.Found()
		if err != nil {
			return &tracee.InputError{Err: err}
		}
		if found == nil || found.Timing != timing {
			return nil
		}
		s.preemptions = found.Preemptions
	}
	for _, p := range s.preemptions {
		if err := p.Check(); err != nil {
			return tracee.Inputf("replay: a preemption has %w", err)
		}
	}
	if !part {
		return nil
	}
	counts := s.schedule.Events()
	var kept []eventlog.Preemption
	for _, p := range s.preemptions {
		if p.Ordinal <= counts[p.Thread] {
			kept = append(kept, p)
		}
	}
	s.preemptions = kept
	return nil
}

// due returns the thread of a run.
func (s *stage) due(run uint64) uint32 {
	if run >= uint64(len(s.layout.Runs)) {
		return 0
	}
	return s.layout.Runs[run].Thread
}
