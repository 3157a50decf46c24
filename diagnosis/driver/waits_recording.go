package driver

import (
	"context"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// Waits says in lines what the threads of a recorded process waited for when the recording ended: a
// deadlock in a sentence, otherwise each thread that waits. It replays the recording once if it has
// no core.
func Waits(ctx context.Context, dir string) ([]string, error) {
	rec, err := record.OpenContext(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", dir, err)
	}
	defer rec.Close()
	a := newAnalysis(Request{Recordings: []string{dir}})
	a.recordings = recordings{failing: []*record.Recording{rec}, cut: true}
	var lines []string
	err = watchtrace.AtEnd(ctx, rec, a.req.imageOptions(), func(p *image.Process) error {
		a.process = p
		if err := a.numberReplayed(a.process); err != nil {
			return err
		}
		if err := a.judge(ctx); err != nil {
			return err
		}
		if a.result.Failure.Kind == evidence.Deadlock {
			lines = append(lines, a.result.Failure.Sentence)
			return nil
		}
		for _, g := range a.stacks {
			if text := a.waitingText(g); text != "" {
				lines = append(lines, g.threads[0].Ref.Label()+" "+text)
			}
		}
		return nil
	})
	if err != nil && len(lines) == 0 {
		return nil, err
	}
	return lines, nil
}
