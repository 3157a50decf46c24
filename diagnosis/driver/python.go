package driver

import (
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image/pyframes"
)

// pythonFrames adds the frames of Python code of all threads.
func (a *analysis) pythonFrames() error {
	threads, err := pyframes.Read(a.process)
	if errors.Is(err, pyframes.ErrNone) {
		return nil
	}
	for i := range threads {
		a.addPython(&threads[i])
	}
	if err != nil {
		return fmt.Errorf("frames of Python: %w", err)
	}
	return nil
}

// addPython adds the frames of a thread, to those of others with equal ones.
func (a *analysis) addPython(t *pyframes.Thread) {
	i := slices.IndexFunc(a.result.Stacks, func(g evidence.ThreadGroup) bool {
		return slices.ContainsFunc(g.Threads, func(r evidence.ThreadRef) bool { return r.TID == t.TID })
	})
	if i < 0 {
		return // it has ended, and the interpreter has not noticed
	}
	threads := a.result.Stacks[i].Threads
	ref := threads[slices.IndexFunc(threads, func(r evidence.ThreadRef) bool { return r.TID == t.TID })]
	for k := range a.result.Python {
		s := &a.result.Python[k]
		if s.Stopped == t.Stopped && slices.Equal(s.Frames, t.Frames) {
			s.Threads = append(s.Threads, ref)
			return
		}
	}
	a.result.Python = append(a.result.Python, evidence.PythonStack{Threads: []evidence.ThreadRef{ref}, Frames: t.Frames, Stopped: evidence.Say(t.Stopped), Proof: evidence.FromCore})
}
