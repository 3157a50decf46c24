package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/object"
	"diagnose/replay/record"
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
	layout   *record.Image
	schedule record.Schedule
	// preemptions are made in addition to that order.
	preemptions []record.Preemption
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
func (s *stage) prepare(core *image.Process, preemptions []record.Preemption, timing record.Timing) error {
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
	if s.layout, err = s.rec.Log.WriteImage(s.image, s.schedule, record.ImageOptions{Skipped: s.skippedAtEnd(core), Preemptions: s.preemptions}); err != nil {
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
func (s *stage) addLimits(limits []record.Limit) {
	for _, l := range limits {
		s.shared = s.shared || l.Kind == record.LimitShared.String()
		if !slices.Contains(s.limits, l.Text) {
			s.limits = append(s.limits, l.Text)
		}
	}
}

// severalThreads reports whether events of more than one thread are replayed.
func (s *stage) severalThreads() bool {
	return slices.ContainsFunc(s.schedule, func(t record.Turn) bool { return t.Thread != s.schedule[0].Thread })
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

// orderHooks sorts hooks by the order of their events.
func (s *stage) orderHooks(hooks []Hook) ([]Hook, error) {
	type key struct {
		thread  uint32
		ordinal uint64
	}
	wanted := map[key]uint64{}
	for _, h := range hooks {
		wanted[key{h.At.Thread, h.At.Ordinal}] = 0
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	done := map[uint32]uint64{}
	position := uint64(0)
	for _, run := range s.schedule {
		first := done[run.Thread]
		done[run.Thread] = first + uint64(run.Events)
		for k := range wanted {
			if k.thread == run.Thread && k.ordinal > first && k.ordinal <= first+uint64(run.Events) {
				wanted[k] = position + k.ordinal - first
			}
		}
		position += uint64(run.Events)
	}
	for _, h := range hooks {
		if wanted[key{h.At.Thread, h.At.Ordinal}] == 0 {
			return nil, tracee.Inputf("replay: the recording has no moment %v: thread %d has %d events", h.At, h.At.Thread, done[h.At.Thread])
		}
	}
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b Hook) int {
		return cmp.Compare(wanted[key{a.At.Thread, a.At.Ordinal}], wanted[key{b.At.Thread, b.At.Ordinal}])
	})
	return sorted, nil
}

// Check reports whether the files that a recording needs are still the recorded ones; an
// *InputError names the first that is not.
func Check(rec *record.Recording) error { return checkFiles(rec) }

// checkFiles checks that the program, its libraries and the agent are the recorded ones. A changed
// file would cause a divergence without an apparent reason.
func checkFiles(rec *record.Recording) error {
	m := rec.Manifest
	if err := checkFile(rec, m.Program.Path, m.Program.BuildID, &m.Program.File); err != nil {
		return err
	}
	seen := map[record.Text]bool{m.Program.Path: true, m.Agent.Path: true}
	for i := range m.Start.Mappings {
		x := &m.Start.Mappings[i]
		if seen[x.Path] || x.BuildID == "" || x.File == nil {
			continue
		}
		seen[x.Path] = true
		if err := checkFile(rec, x.Path, x.BuildID, x.File); err != nil {
			return err
		}
	}
	if m.Agent.SHA256 == "" {
		return nil
	}
	library := string(m.Agent.Path)
	sum, err := librarySum(library)
	if err != nil {
		return tracee.Inputf("replay: the library that recorded: %w", err)
	}
	if sum != m.Agent.SHA256 {
		return tracee.Inputf("replay: %s is not the library that recorded any more", library)
	}
	return nil
}

// mostLibrary bounds the size of the recording library, which has some hundred kilobytes.
const mostLibrary = 64 << 20

// librarySum returns the digest of a file that a manifest names. That may be any file.
func librarySum(path string) (string, error) {
	f, size, err := object.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if size > mostLibrary {
		return "", fmt.Errorf("%s has %d bytes", path, size)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, mostLibrary)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkFile checks that a file of the process exists and is the recorded one.
func checkFile(rec *record.Recording, path record.Text, id string, recorded *record.File) error {
	var info unix.Stat_t
	err := unix.Stat(string(path), &info)
	switch {
	case err != nil:
		err = tracee.Inputf("replay: %s, which was recorded: %w", path, err)
	case recorded.Size == 0 || info.Size != recorded.Size || info.Mtim.Nano() != recorded.MTimeNS:
		err = sameBuild(string(path), id)
	}
	if err == nil {
		return nil
	}
	for _, o := range rec.Manifest.Portable {
		if o.Path == path {
			return tracee.Inputf("%w; the recording has a copy to put there: %s", err, filepath.Join(rec.Dir, filepath.FromSlash(o.Stored)))
		}
	}
	return err
}

// eventAt reads an event of the image, by its address in the process.
func (s *stage) eventAt(addr uint64) (*record.Event, error) {
	at := int64(addr) - int64(record.ImageBase)
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
	e, _, err := record.DecodeEvent(b)
	return e, err
}
