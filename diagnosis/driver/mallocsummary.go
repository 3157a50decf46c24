package driver

import (
	"context"
	"fmt"

	"diagnose/canary/mallocsum"
	"diagnose/evidence"
	"diagnose/image/value"
)

// summarizeMalloc summarizes the heap of the C library in a process that ran without the agent.
func (a *analysis) summarizeMalloc(ctx context.Context, opts HeapOptions) (*evidence.Heap, error) {
	s, err := mallocsum.New(a.process)
	if err != nil {
		return nil, &InputError{fmt.Errorf("the process ran without the agent, and %w: "+
			"start the program with 'diagnose run -- PROGRAM ARGUMENTS', or with LD_PRELOAD=$(diagnose agent path)", err)}
	}
	s.Most, s.Variables = opts.Sites, a.pointerVariables
	s.StackName = (&waitReader{&a.stoppedProcess, &a.recordings}).stackVariable
	err = a.runStages(ctx, []stage{{"unwind", a.unwind}, {"count", s.Count}, {"mark", s.Mark}, {"type", s.Type}, {"leaks", s.Leaks}, {"list", s.List}})
	if err != nil {
		return nil, err
	}
	a.completeHeap(&s.Out, s.Limits)
	return &s.Out, nil
}

// Bounds of the variables of frames whose pointers give types to objects.
const (
	typedFrames    = 4096
	typedVariables = 1 << 16
	typedBytes     = 64 << 10 // of one variable
)

// pointerVariables reads the variables of all frames.
func (a *analysis) pointerVariables() (list []mallocsum.Value) {
	frames := 0
	for _, g := range a.stacks {
		for i := range g.stack.Frames {
			if frames++; frames > typedFrames || len(list) > typedVariables {
				return list
			}
			list = append(list, a.frameValues(g, i)...)
		}
	}
	return list
}

// frameValues reads the variables of a frame. Those that have no value there are left out.
func (a *analysis) frameValues(g *group, i int) (list []mallocsum.Value) {
	f := a.valueFrame(g, i)
	if f == nil {
		return nil
	}
	info, err := f.Module.Debug()
	if err != nil || info == nil {
		return nil
	}
	pc := f.Module.LinkAddr(g.stack.Frames[i].LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil {
		return nil
	}
	for _, call := range calls {
		variables, err := info.VariablesAt(call, pc)
		if err != nil {
			continue
		}
		for _, v := range variables {
			if v.Type == nil {
				continue
			}
			if data, err := value.Bytes(f, v, typedBytes); err == nil {
				list = append(list, mallocsum.Value{Type: v.Type, Data: data})
			}
		}
	}
	return list
}
