package replay

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// Write changes the memory of a stopped process.
func Write(s *Stopped, addr evidence.Addr, p []byte) error {
	_, err := s.c.Memory.WriteAt(p, int64(addr))
	return err
}

// Looks returns how often a thread that computed without an event was stepped.
func Looks(r *Result) int { return r.looks }

// WithAtEnd returns the request with another AtEnd.
func WithAtEnd(r Request, do func(*Stopped) error) Request { return atEnd{r, do} }

type atEnd struct {
	Request
	do func(*Stopped) error
}

func (a atEnd) parts() parts {
	p := a.Request.parts()
	p.AtEnd = a.do
	return p
}

// EndProcesses ends the processes of the checkpoints, which are kept.
func (k *Kept) EndProcesses() error {
	for _, x := range k.list {
		if err := unix.Kill(x.copied.PID(), unix.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

// Save writes a checkpoint to a file.
func (x *Checkpoint) Save(w io.Writer) error { return x.save(w, 0, 1<<30) }

// LoadCheckpoint makes the checkpoint of a file.
func LoadCheckpoint(ctx context.Context, rec *record.Recording, f *os.File) (*Checkpoint, error) {
	saved, about, err := readCheckpoint(f)
	if err != nil {
		return nil, err
	}
	p, err := prepareRecording(ctx, rec, about.Timing)
	if err != nil {
		return nil, err
	}
	defer p.recordings.Close()
	return p.load(ctx, saved, about)
}

// WithoutLeast writes checkpoints of recordings whose replays are short, too.
func (s *Store) WithoutLeast() *Store {
	s.least = 0
	return s
}

// Prune is prune.
func (s *Store) Prune() error { return s.prune() }

// Useful chooses among checkpoints at positions, at each of which some replays began.
func Useful(uses [][2]uint64) (chosen [][2]uint64) {
	var list []*kept
	for _, u := range uses {
		list = append(list, &kept{position: u[0], uses: u[1]})
	}
	for _, x := range useful(list) {
		chosen = append(chosen, [2]uint64{x.position, x.uses})
	}
	return chosen
}
