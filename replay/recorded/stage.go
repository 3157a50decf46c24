package recorded

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

// Stage is one process of a replay: the requested one, or one from which it was forked and whose
// replay leads up to the fork.
type Stage struct {
	Rec    *record.Recording
	owned  bool // to be closed by the stage
	Limits []string
	// Shared: other processes write to memory of this process.
	Shared bool

	Image    *os.File // mapped by the process
	Layout   *eventlog.Image
	Schedule eventlog.Schedule
	// Preemptions are made in addition to that order.
	Preemptions []eventlog.Preemption
	Events      uint64
	Sites       []byte
	traps       map[uint64]bool // those of sites that are DG_PATCH_TRAP; nil: not searched yet
	// Data is the recording's file of mapped bytes; nil if it has none.
	Data *os.File
}

// OpenStages returns a recording and those of its ancestors that it shares memory with, the oldest
// first.
func OpenStages(rec *record.Recording) ([]*Stage, error) {
	stages := []*Stage{{Rec: rec}}
	for {
		oldest := stages[0].Rec
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
		stages = append([]*Stage{{Rec: p, owned: true}}, stages...)
	}
}

func (s *Stage) close() {
	for _, f := range []*os.File{s.Image, s.Data} {
		if f != nil {
			f.Close()
		}
	}
	if s.owned {
		s.Rec.Close()
	}
}

// Prepare makes the image. core is the recorded end, nil if there is none. preemptions are made in
// addition to the recorded order; nil: those of the recording.
func (s *Stage) Prepare(core *image.Process, preemptions []eventlog.Preemption, timing record.Timing) error {
	for _, l := range s.Rec.Manifest.Limits {
		s.Limits = append(s.Limits, l.Text)
	}
	part := s.Schedule != nil
	if err := s.readSchedule(); err != nil {
		return err
	}
	if err := s.usePreemptions(preemptions, timing, part); err != nil {
		return err
	}
	var err error
	if s.Image, err = unlinked(); err != nil {
		return err
	}
	if s.Layout, err = s.Rec.Log.WriteImage(s.Image, s.Schedule, eventlog.ImageOptions{Skipped: s.skippedAtEnd(core), Preemptions: s.Preemptions}); err != nil {
		return tracee.Inputf("replay: %w", err)
	}
	s.Events = s.Layout.Events
	if s.Sites, err = s.readSites(); err != nil {
		return err
	}
	s.Data, err = s.Rec.File(record.DataName)
	if errors.Is(err, os.ErrNotExist) {
		s.Data, err = nil, nil
	}
	return err
}

// readSchedule reads the recorded order unless another was requested, and the limits that the
// engine noted.
func (s *Stage) readSchedule() error {
	if s.Schedule != nil {
		summary, err := s.Rec.Log.Summarize()
		if err != nil {
			return tracee.Inputf("replay: %w", err)
		}
		s.addLimits(summary.Limits)
		return nil
	}
	schedule, limits, err := s.Rec.Log.ScheduleAndLimits()
	s.Schedule = schedule
	s.addLimits(limits)
	if len(s.Schedule) == 0 && err == nil {
		return tracee.Inputf("replay: %s has no events", s.Rec.Dir)
	}
	if len(s.Schedule) == 0 {
		return tracee.Inputf("replay: %w", err)
	}
	if err != nil {
		s.Limits = append(s.Limits, err.Error())
	}
	return nil
}

// addLimits adds the limits that are not in the list.
func (s *Stage) addLimits(limits []eventlog.Limit) {
	for _, l := range limits {
		s.Shared = s.Shared || l.Kind == eventlog.LimitShared.String()
		if !slices.Contains(s.Limits, l.Text) {
			s.Limits = append(s.Limits, l.Text)
		}
	}
}

// SeveralThreads reports whether events of more than one thread are replayed.
func (s *Stage) SeveralThreads() bool {
	return slices.ContainsFunc(s.Schedule, func(t eventlog.Turn) bool { return t.Thread != s.Schedule[0].Thread })
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

// PathOf returns a name by which a child process can open the file.
func PathOf(f *os.File) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
}

// mostSites bounds the patch table: a window of 16 GiB in the process.
const mostSites = 64 << 20

func (s *Stage) readSites() ([]byte, error) {
	f, err := s.Rec.File(record.SitesName)
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

// TrapsAt reports whether the patch table has a trap at an address.
func (s *Stage) TrapsAt(pc uint64) bool {
	if s.traps == nil {
		s.traps = map[uint64]bool{}
		for at := 0; at+tracee.SiteSize <= len(s.Sites); at += tracee.SiteSize {
			var p agent.RawSitePatch
			if _, err := binary.Decode(s.Sites[at:], binary.LittleEndian, &p); err == nil && p.Kind == agent.PatchTrap {
				s.traps[p.At] = true
			}
		}
	}
	return s.traps[pc]
}

// skippedAtEnd returns how many mutexes threads took without an event since their last event.
func (s *Stage) skippedAtEnd(core *image.Process) map[uint32]uint64 {
	if core == nil {
		return s.Rec.Manifest.Outcome.Relocked
	}
	skipped := map[uint32]uint64{}
	for i := range Threads(core) {
		if r, err := image.Struct[agent.RawRThread](core, evidence.Addr(agent.RThreadAddress(i))); err == nil {
			skipped[i] = r.Relocked()
		}
	}
	return skipped
}

// EventAt reads an event of the image, by its address in the process.
func (s *Stage) EventAt(addr uint64) (*eventlog.Event, error) {
	at := int64(addr) - int64(eventlog.ImageBase)
	layout := s.Layout
	if at < 0 || at >= layout.Size {
		return nil, fmt.Errorf("replay: an event at %#x, outside of the image", addr)
	}
	var head [8]byte
	if _, err := s.Image.ReadAt(head[:4], at); err != nil {
		return nil, fmt.Errorf("replay: image: %w", err)
	}
	length := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16 | int64(head[3])<<24
	if length > layout.Size-at {
		return nil, fmt.Errorf("replay: an event of %d bytes at %#x", length, addr)
	}
	b := make([]byte, length)
	if _, err := s.Image.ReadAt(b, at); err != nil {
		return nil, fmt.Errorf("replay: image: %w", err)
	}
	e, _, err := eventlog.DecodeEvent(b)
	return e, err
}

// Patches yields the engine's patches to the program's text.
func (s *Stage) Patches() iter.Seq[agent.RawSitePatch] {
	return func(yield func(agent.RawSitePatch) bool) {
		for at := 0; at+tracee.SiteSize <= len(s.Sites); at += tracee.SiteSize {
			var p agent.RawSitePatch
			if _, err := binary.Decode(s.Sites[at:], binary.LittleEndian, &p); err == nil && !yield(p) {
				return
			}
		}
	}
}

// usePreemptions takes the requested preemptions, or those that the recording has for this timing.
// If only a part of the order is replayed, later ones are left out.
func (s *Stage) usePreemptions(given []eventlog.Preemption, timing record.Timing, part bool) error {
	s.Preemptions = given
	if s.Preemptions == nil {
		found, err := s.Rec.Found()
		if err != nil {
			return &tracee.InputError{Err: err}
		}
		if found == nil || found.Timing != timing {
			return nil
		}
		s.Preemptions = found.Preemptions
	}
	for _, p := range s.Preemptions {
		if err := p.Check(); err != nil {
			return tracee.Inputf("replay: a preemption has %w", err)
		}
	}
	if !part {
		return nil
	}
	counts := s.Schedule.Events()
	var kept []eventlog.Preemption
	for _, p := range s.Preemptions {
		if p.Ordinal <= counts[p.Thread] {
			kept = append(kept, p)
		}
	}
	s.Preemptions = kept
	return nil
}

// Due returns the thread of a run.
func (s *Stage) Due(run uint64) uint32 {
	if run >= uint64(len(s.Layout.Runs)) {
		return 0
	}
	return s.Layout.Runs[run].Thread
}
