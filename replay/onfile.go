package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/breakpoint"
	"diagnose/replay/checkpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// filedCheckpoint is what a file has of a Checkpoint besides the process.
type filedCheckpoint struct {
	// Image is the digest of the log's image, from which the replay is made. Two recordings with one image replay the same.
	Image    string
	Moment   evidence.Moment
	Events   uint64
	Timing   record.Timing
	Kind     StopKind
	Placed   *breakpoint.Saved
	Ordinals map[uint32]uint64
	// Position is that of the list of a Kept; 0: none.
	Position uint64
}

// save writes the checkpoint to a file, with pages of at most so many bytes. The error is a *NoCheckpointError if it cannot be restored
// from one.
func (x *Checkpoint) save(w io.Writer, position uint64, most int64) error {
	r := x.recordings
	if x.free || x.carried != nil || len(r.Stages) != 1 {
		return &NoCheckpointError{Why: "only a replay of one process, without changes, is kept in a file"}
	}
	image, err := imageDigest(r.Stages[0])
	if err != nil {
		return err
	}
	about := filedCheckpoint{Image: image, Moment: x.Moment, Events: x.Events, Timing: x.timing, Kind: x.kind,
		Placed: &x.placed, Ordinals: x.ordinals, Position: position}
	return x.copied.Save(w, &about, checkpoint.Files{Image: r.Stages[0].Image, Data: r.Stages[0].Data}, most)
}

// checkpoint is the Checkpoint without its process.
func (a *filedCheckpoint) checkpoint() *Checkpoint {
	return &Checkpoint{Moment: a.Moment, Events: a.Events, placed: *a.Placed, timing: a.Timing, kind: a.Kind, ordinals: a.Ordinals}
}

// imageDigest returns the digest of the image of a log.
func imageDigest(s *recorded.Stage) (string, error) {
	h := sha256.New()
	info, err := s.Image.Stat()
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	if _, err := io.Copy(h, io.NewSectionReader(s.Image, 0, info.Size())); err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readCheckpoint reads from a file what does not need the process. An error may be a *checkpoint.DamagedError.
func readCheckpoint(f *os.File) (*checkpoint.Saved, *filedCheckpoint, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	saved, err := checkpoint.Read(f, info.Size())
	if err != nil {
		return nil, nil, err
	}
	about := &filedCheckpoint{}
	if err := json.Unmarshal(saved.About, about); err != nil {
		return nil, nil, &checkpoint.DamagedError{Why: err.Error()}
	}
	if about.Placed == nil || len(about.Ordinals) >= agent.RThreads || about.Timing != record.TimingEager && about.Timing != record.TimingLazy {
		return nil, nil, &checkpoint.DamagedError{Why: "it does not say where it is"}
	}
	return saved, about, nil
}

// preparedRecording has the files of a replay of one process.
type preparedRecording struct {
	recordings *recorded.Recordings
	image      string // the digest
}

// prepareRecording prepares a recording as the replay does from whose checkpoints others continue.
func prepareRecording(ctx context.Context, rec *record.Recording, timing record.Timing) (*preparedRecording, error) {
	request := PlainRequest{}.parts()
	c := newController(ctx, rec, request, &attempt{timing: timing})
	if err := c.openRecordings(); err != nil {
		c.Close()
		return nil, err
	}
	if len(c.Stages) != 1 {
		c.Close()
		return nil, errors.New("replay: the recording is of a fork's child")
	}
	r := c.Recordings.Share()
	c.Close()
	image, err := imageDigest(r.Stages[0])
	if err != nil {
		r.Close()
		return nil, err
	}
	return &preparedRecording{r, image}, nil
}

// load makes the checkpoint that a file has.
func (p *preparedRecording) load(ctx context.Context, saved *checkpoint.Saved, about *filedCheckpoint) (*Checkpoint, error) {
	r := p.recordings
	if about.Image != p.image {
		return nil, errors.New("replay: the checkpoint is of another recording")
	}
	copied, err := saved.Load(checkpoint.Files{Image: r.Stages[0].Image, Data: r.Stages[0].Data}, func() (int, error) {
		c := &controller{ctx: ctx, Process: &tracee.Process{Threads: map[int]*tracee.Thread{}}, Recordings: r, attempt: &attempt{timing: about.Timing}}
		err := c.launch(ptrace.ExitKill)
		return c.PID, err
	})
	if err != nil {
		return nil, err
	}
	x := about.checkpoint()
	x.copied, x.recordings = copied, r.Share()
	return x, nil
}
