package gocore

import (
	"fmt"
	"strings"

	"diagnose/evidence"

	"github.com/go-delve/delve/pkg/proc"
)

// statuses are the runtime's _G constants (runtime/runtime2.go).
var statuses = map[uint64]string{
	0: "idle", 1: "runnable", 2: "running", 3: "system call", 4: "waiting", 6: "dead", 8: "copying its stack",
	9: "preempted", 10: "leaked", 11: "dead",
}

// scanBit is set while the garbage collector scans a goroutine.
const scanBit = 0x1000

func (r *reader) goroutines() error {
	list, next, err := proc.GoroutinesInfo(r.target, 0, r.opts.Goroutines)
	if err != nil {
		return fmt.Errorf("goroutines: %w", err)
	}
	if next >= 0 {
		r.limit("", fmt.Sprintf("only the first %d goroutines are listed", len(list)))
	}
	r.loadWaitReasons()
	unreadable := 0
	for _, g := range list {
		if g == nil || g.Unreadable != nil {
			unreadable++
			continue
		}
		var out evidence.Goroutine
		if err := guarded(func() error { out = r.goroutine(g); return nil }); err != nil {
			unreadable++
			continue
		}
		r.Goroutines = append(r.Goroutines, out)
	}
	if unreadable > 0 {
		r.limit("", fmt.Sprintf("%d goroutines cannot be read", unreadable))
	}
	selected := r.target.SelectedGoroutine()
	r.markFailing(func(g *evidence.Goroutine) bool { return selected != nil && g.ID == selected.ID })
	return nil
}

func (r *reader) goroutine(g *proc.G) evidence.Goroutine {
	out := evidence.Goroutine{ID: g.ID, Status: statuses[g.Status&^scanBit]}
	if out.Status == "" {
		out.Status = fmt.Sprintf("status %d", g.Status)
	}
	if g.Thread != nil {
		out.TID = g.Thread.ThreadID()
	}
	if out.Status == "waiting" && g.WaitReason > 0 && g.WaitReason < int64(len(r.waitReasons)) {
		out.Wait = r.waitReasons[g.WaitReason]
	}
	frames, err := proc.GoroutineStacktrace(r.target, g, r.opts.Depth, 0)
	out.Stack = r.stack(frames)
	switch {
	case err != nil:
		out.Stack.Stopped = err.Error()
	case len(frames) > r.opts.Depth:
		out.Stack.Stopped = "limit of frames"
	}
	out.Stack.Stopped = evidence.Say(out.Stack.Stopped)
	return out
}

func (r *reader) stack(frames []proc.Stackframe) evidence.Stack {
	var out evidence.Stack
	for i := range frames {
		f := &frames[i]
		frame := evidence.Frame{Index: i, Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: r.site(f)}
		if f.Inlined {
			frame.Kind = evidence.Inlined
		}
		if i == 0 {
			frame.Trust = evidence.TrustContext
		}
		frame.CFA = evidence.Addr(f.Regs.CFA)
		out.Frames = append(out.Frames, frame)
		if f.Err != nil {
			out.Stopped = f.Err.Error()
			break
		}
	}
	return out
}

func (r *reader) site(f *proc.Stackframe) evidence.Site {
	site := evidence.Site{PC: evidence.Addr(f.Current.PC), File: f.Call.File, Line: max(f.Call.Line, 0)}
	if f.Call.Fn != nil {
		site.Function = f.Call.Fn.Name
		if !f.Inlined && f.Current.PC >= f.Call.Fn.Entry {
			site.FunctionOffset = f.Current.PC - f.Call.Fn.Entry
		}
	}
	site.Module = r.opts.Exe
	for _, image := range r.target.BinInfo().Images {
		if f.Current.Fn != nil && r.target.BinInfo().PCToImage(f.Current.PC) == image {
			site.Module, site.BuildID = image.Path, image.BuildID
			site.ModuleOffset = evidence.Addr(f.Current.PC - image.StaticBase)
		}
	}
	return site
}

// loadWaitReasons reads the texts from the process, because their numbers
// differ between versions of the runtime.
func (r *reader) loadWaitReasons() {
	v, err := r.eval(r.target.CurrentThread(), "runtime.waitReasonStrings")
	if err != nil {
		r.limit("", "what goroutines wait for cannot be read: "+err.Error())
		return
	}
	for i := range v.Children {
		r.waitReasons = append(r.waitReasons, stringOf(&v.Children[i]))
	}
}

// endings are the functions of the runtime that a failing goroutine is in.
var endings = map[string]bool{
	"runtime.fatalpanic": true, "runtime.fatalthrow": true, "runtime.throw": true, "runtime.fatal": true,
	"runtime.dieFromSignal": true,
}

// markFailing puts the goroutine that ended the process first: the one in a
// function of endings, or else the one that signalled says got the signal.
func (r *Result) markFailing(signalled func(*evidence.Goroutine) bool) {
	at := -1
	for i := range r.Goroutines {
		for _, f := range r.Goroutines[i].Stack.Frames {
			if at < 0 && endings[f.Site.Function] {
				at = i
			}
		}
	}
	for i := range r.Goroutines {
		if at < 0 && signalled(&r.Goroutines[i]) {
			at = i
		}
	}
	if at < 0 {
		return
	}
	failing := r.Goroutines[at]
	failing.Failing = true
	copy(r.Goroutines[1:at+1], r.Goroutines[:at])
	r.Goroutines[0] = failing
}

// programSite is the innermost place outside the runtime.
func programSite(stack *evidence.Stack) *evidence.Site {
	for i := range stack.Frames {
		site := &stack.Frames[i].Site
		name := site.Function
		if stack.Frames[i].Kind == evidence.SignalFrame {
			continue
		}
		if name != "" && !strings.HasPrefix(name, "runtime.") && !strings.HasPrefix(name, "internal/") &&
			!strings.HasPrefix(name, "runtime/") && !strings.HasPrefix(name, "sync.") {
			return site
		}
	}
	return nil
}
