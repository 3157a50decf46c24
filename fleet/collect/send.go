package collect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"

	"diagnose/corpus"
	"diagnose/fleet/collect/spool"
	"diagnose/fleet/engine"
	"diagnose/fleet/share"
)

// LabelCrashes is the label with the number of crashes of a core's kind that the host counted until
// the core was sent.
const LabelCrashes = "crashes"

// Sent is the result of Send.
type Sent struct {
	// Entries counts the cores that were sent, Bytes is the number of bytes that were.
	Entries int
	Bytes   int64
	// Failed has a line for each core that is damaged. It stays in the spool.
	Failed []string
}

// Send sends the cores of a spool to an engine, the oldest first, and removes each from the spool when the
// engine has all of it. An error of the engine ends it; the cores that it does not have stay, and another
// call resumes. note may be nil.
func Send(ctx context.Context, s *spool.Spool, e *engine.Engine, labels map[string]string, note func(engine.Progress)) (Sent, error) {
	var done Sent
	entries, err := s.Entries()
	if err != nil {
		return done, err
	}
	for _, entry := range entries {
		n, err := sendOne(ctx, s, e, entry, labels, note)
		var input *corpus.InputError
		switch {
		case err == nil:
			done.Entries++
			done.Bytes += n
		case gone(entry.Dir):
		case errors.As(err, &input) && ctx.Err() == nil:
			done.Failed = append(done.Failed, fmt.Sprintf("%s: %v", entry.Dir, err))
		default:
			return done, fmt.Errorf("%s: %w", entry.Dir, err)
		}
	}
	return done, nil
}

// gone reports whether a handler has made room meanwhile.
func gone(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, os.ErrNotExist)
}

func sendOne(ctx context.Context, s *spool.Spool, e *engine.Engine, entry spool.Entry, labels map[string]string, note func(engine.Progress)) (int64, error) {
	count, err := s.Crashes(entry)
	if err != nil {
		return 0, err
	}
	all := map[string]string{}
	if count > 0 {
		all[LabelCrashes] = strconv.FormatUint(count, 10)
	}
	maps.Copy(all, labels)
	parcel, err := corpus.PackCollected(ctx, entry.Dir, corpus.PackOptions{Labels: all})
	if err != nil {
		return 0, err
	}
	pushed, err := share.Push(ctx, e, &parcel, note)
	if err != nil {
		return pushed.Sent, err
	}
	return pushed.Sent, s.Remove(entry.ID)
}
