package ending

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// The bounds of the report.
const (
	mostMessages = 8    // of one stream
	mostCalls    = 8    // that failed
	mostText     = 2048 // bytes of one message
	mostFrames   = 24   // of one stack
)

// The bounds of the calls that are examined: several writes may be one message, and equal calls are
// reported once.
const (
	mostWrites  = 512 // of one stream
	mostFailed  = 256
	mostNamed   = 16       // of the failed calls that a message names
	mostWalked  = 32       // of the others
	mostWritten = 16 << 10 // bytes of one write
)

// Of finds what a recorded program wrote and which calls failed before it ended. If a replay does
// not reach the end, the calls after the last moment reached are reported without stacks and texts,
// and the error is the replay's.
//
// The recording is replayed twice. The first replay reads the texts, which is cheap and decides
// which writes are reported. The second one walks the stacks of those writes and of failed calls.
func Of(ctx context.Context, rec *record.Recording, opts image.Options) (*evidence.Ending, error) {
	file, err := declaredFile(rec)
	if err != nil {
		return nil, err
	}
	f, err := scan(rec.Log, file)
	if err != nil {
		return nil, err
	}
	v := &visitor{ctx: ctx, rec: rec, opts: opts}
	err = v.visit(f.writes, func(c *call, s *replay.Stopped) error {
		c.text = c.written(s)
		return nil
	})
	messages := f.messages()
	f.candidates(messages)
	if err == nil {
		stacks := slices.Clone(f.failed)
		for i := range messages {
			stacks = append(stacks, messages[i].first())
		}
		err = v.visit(stacks, lookAt)
	}
	f.fold()
	f.choose(messages)
	out := f.told(messages)
	if out != nil && !explains(out, rec.Manifest.Outcome) {
		out.Panic = nil
	}
	if out != nil && out.Panic != nil {
		f.follow(out, messages)
	}
	return out, err
}

// visitor stops replays after calls.
type visitor struct {
	ctx  context.Context
	rec  *record.Recording
	opts image.Options
}

// visit calls do after each of the calls, in their order. The error is that of a replay that did
// not reach all of them.
func (v *visitor) visit(list []*call, do func(*call, *replay.Stopped) error) error {
	if len(list) == 0 {
		return nil
	}
	left := len(list)
	var hooks []replay.Hook
	for _, c := range list {
		hooks = append(hooks, replay.Hook{At: c.moment, Do: func(s *replay.Stopped) error {
			if err := do(c, s); err != nil {
				return err
			}
			if left--; left == 0 {
				return replay.ErrEnough
			}
			return nil
		}})
	}
	_, err := replay.Run(v.ctx, v.rec, replay.PlainRequest{Common: replay.Common{Image: v.opts, Hooks: hooks}})
	if err == nil {
		return nil
	}
	var diverged *replay.DivergenceError
	var stuck *replay.StuckError
	if errors.As(err, &diverged) || errors.As(err, &stuck) {
		return fmt.Errorf("ending: a replay did not reach all writes and failed system calls before the end, and their texts or stacks are missing: %w", err)
	}
	return fmt.Errorf("ending: %w", err)
}

// lookAt notes the code that made the call.
func lookAt(c *call, s *replay.Stopped) error {
	c.nameTexts(s)
	c.nameAddress(s)
	p, err := s.Process()
	if err != nil {
		return err
	}
	c.seen = true
	c.stack, c.site = watchtrace.StackAfterCall(p)
	if n := len(c.stack.Frames); n > mostFrames {
		c.stack.Frames, c.stack.Stopped = c.stack.Frames[:mostFrames], evidence.Say(fmt.Sprintf("%d outer frames are left out", n-mostFrames))
	}
	return nil
}
