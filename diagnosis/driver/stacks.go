package driver

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// ends bounds the physical frames that are walked and those that are kept of a deep stack: a thread
// may have exhausted its stack by recursion.
var ends = unwind.EndsOptions{Limit: 1 << 20, Top: 100, Bottom: 20}

const (
	// walkedOfAll and keptOfAll bound the frames of the other threads together: a core may claim
	// that 65,536 of them exhausted their stacks, and one stack of memory is enough for that. Each
	// thread has leastWalked and leastKept in any case.
	walkedOfAll, leastWalked = 1 << 22, 1 << 8
	keptOfAll, leastKept     = 1 << 20, 20
)

// endsOf bounds the walk of one of the process's threads.
func (sp *stoppedProcess) endsOf(t *image.Thread) unwind.EndsOptions {
	o := ends
	if t != sp.thread {
		n := len(sp.process.Threads)
		o.Limit = min(o.Limit, max(leastWalked, walkedOfAll/n))
		o.Top = min(o.Top, max(leastKept, keptOfAll/n))
	}
	return o
}

// forgetAfter is how many stacks are walked before the pages read for them are released.
const forgetAfter = 50

// group is one stack and the threads that share it.
type group struct {
	threads []*image.Thread
	// indexes are the threads' positions in the process.
	indexes []int
	stack   unwind.Stack
}

// unwind walks all threads, folds equal stacks, names the frames that will be shown, and names the
// threads by their start functions.
func (sp *stoppedProcess) unwind() error {
	sp.unwinder = unwind.New(sp.process)
	threads := sp.process.Threads
	sp.walked = make([]unwind.Stack, len(threads))
	defer sp.prefetchStops()()
	parallel(len(threads), func(i int) {
		sp.walked[i] = sp.unwinder.WalkEnds(&threads[i], sp.endsOf(&threads[i]))
		cutRecursion(&sp.walked[i])
		if i%forgetAfter == forgetAfter-1 {
			sp.process.ForgetPages()
		}
	})
	sp.stacks = sp.fold(sp.walked)
	sp.prefetch()
	parallel(len(sp.stacks), func(i int) { sp.unwinder.Symbolize(sp.stacks[i].stack.Frames) })
	for _, g := range sp.stacks {
		sp.share(g)
		start := startOf(&g.stack)
		for _, t := range g.threads {
			t.Ref.Start = start
			if start != "" && t.Ref.Name == sp.process.Program.Command {
				t.Ref.Name = "" // the process's name does not describe the thread
			}
		}
	}
	return nil
}

// cutRecursion keeps a few turns of a recursion at the top of a stack whose middle is left out
// already: the cycle itself is reported once.
func cutRecursion(s *unwind.Stack) {
	const turns, least = 2, 12
	if s.Cycle == nil || s.Omitted == 0 {
		return
	}
	keep := max(least, s.Cycle.First+turns*s.Cycle.Period)
	if keep >= s.OmittedAt {
		return
	}
	s.Omitted += s.OmittedAt - keep
	s.Frames = slices.Delete(s.Frames, keep, s.OmittedAt)
	s.OmittedAt = keep
}

// fold groups the threads whose stacks have the same pcs, the same number of omitted frames and the
// same end, in thread order. The thread under judgement comes first. It and the failing one stay
// alone.
func (sp *stoppedProcess) fold(walked []unwind.Stack) []*group {
	var list []*group
	groups := map[string]*group{}
	add := func(i int, key string) {
		t := &sp.process.Threads[i]
		if g := groups[key]; g != nil && key != "" {
			g.threads, g.indexes = append(g.threads, t), append(g.indexes, i)
			return
		}
		g := &group{threads: []*image.Thread{t}, indexes: []int{i}, stack: walked[i]}
		groups[key] = g
		list = append(list, g)
	}
	for i := range walked {
		if &sp.process.Threads[i] == sp.thread {
			add(i, "")
		}
	}
	for i := range walked {
		switch {
		case &sp.process.Threads[i] == sp.thread:
		case sp.separate, i == sp.process.Failing:
			add(i, "")
		default:
			add(i, foldKey(&walked[i]))
		}
	}
	return list
}

// share gives the names of a group's frames to the other threads' stacks. These keep their own
// registers, by which locks are found.
func (sp *stoppedProcess) share(g *group) {
	for _, i := range g.indexes[1:] {
		for j := range sp.walked[i].Frames {
			named := &g.stack.Frames[j]
			sp.walked[i].Frames[j].Calls, sp.walked[i].Frames[j].TailCalls = named.Calls, named.TailCalls
		}
	}
}

func foldKey(s *unwind.Stack) string {
	key := make([]byte, 0, 8*len(s.Frames))
	for i := range s.Frames {
		key = binary.LittleEndian.AppendUint64(key, uint64(s.Frames[i].PC()))
	}
	return fmt.Sprintf("%s %d %d %v %s", key, s.Omitted, s.OmittedAt, s.Truncated, s.Stopped)
}

// prefetchStops looks up the threads' pcs while their stacks are walked. The returned function
// waits for the look-ups.
func (sp *stoppedProcess) prefetchStops() (wait func()) {
	const most = 64
	var pcs []evidence.Addr
	for i := range sp.process.Threads[:min(len(sp.process.Threads), most)] {
		pcs = append(pcs, sp.process.Threads[i].Registers.PC())
	}
	var group sync.WaitGroup
	group.Go(func() { sp.process.Prefetch(pcs) })
	return group.Wait
}

// prefetch opens the debug information of all stacks in parallel.
func (sp *stoppedProcess) prefetch() {
	var pcs []evidence.Addr
	for _, g := range sp.stacks {
		for i := range g.stack.Frames {
			pcs = append(pcs, g.stack.Frames[i].LookupPC())
		}
	}
	sp.process.Prefetch(pcs)
}

// parallel runs f(0) to f(n-1) on all processors. A panic in one of them is raised again in the
// caller, where the stage's guard catches it.
func parallel(n int, f func(int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var wait sync.WaitGroup
	var once sync.Once
	var failed any
	next := make(chan int)
	for range workers {
		wait.Go(func() {
			for i := range next {
				if r := guarded(f, i); r != nil {
					once.Do(func() { failed = r })
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
	if failed != nil {
		panic(failed)
	}
}

// guarded runs f and returns the value that it panicked with.
func guarded(f func(int), i int) (panicked any) {
	defer func() { panicked = recover() }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	f(i)
	return nil
}

// startOf is the function that a thread was started with; "" if the outermost part of the stack is
// not known.
func startOf(s *unwind.Stack) string {
	wrapper := func(c image.SymbolizedCall) bool { return image.StartsThread(c.Site.Function) }
	if n := len(s.Frames); n > 0 && s.Stopped != "" && !slices.ContainsFunc(s.Frames[n-1].Calls, wrapper) {
		return ""
	}
	return startFunction(s.Frames)
}

// muslStart is musl's function that calls that of a new thread.
const muslStart = "start"

// startFunction is the function that the thread was started with: the one that the C library's
// start routine of main or of the thread called. Wrappers of C++ and Rust runtimes are skipped.
func startFunction(frames []unwind.Frame) string {
	wrapper := ""
	for i := len(frames) - 1; i >= 0; i-- {
		calls := frames[i].Calls
		for j := len(calls) - 1; j >= 0; j-- {
			name := calls[j].Site.Function
			switch {
			case name != "" && image.StartsThread(name) || name == muslStart && wrapper == "__clone":
				wrapper = name
			case strings.HasPrefix(strings.TrimPrefix(wrapper, "__"), "libc_start"):
				// main has no name in a stripped program, no frame if its last call was a jump (as
				// in Python), and has returned if exit was called.
				return "main"
			case name != "":
				return evidence.ShortName(name)
			case wrapper != "" && !runtimeWithoutNames(calls[j].Site.Module):
				return ""
			}
		}
	}
	return ""
}

// runtimeWithoutNames reports whether the function that starts a thread in this library has no
// name: libstdc++'s execute_native_thread_routine is a local symbol, which distributions strip.
func runtimeWithoutNames(module string) bool {
	return strings.HasPrefix(filepath.Base(module), "libstdc++.so")
}

// startFrame reports whether a frame belongs to the functions that start threads.
func startFrame(f *unwind.Frame) bool {
	return len(f.Calls) > 0 && image.StartsThread(f.Calls[len(f.Calls)-1].Site.Function)
}

// waitingText says what a group's threads wait for.
func (sp *stoppedProcess) waitingText(g *group) string {
	var list []failure.WaitText
	for _, i := range g.indexes {
		if i < len(sp.waiting) {
			list = append(list, sp.waiting[i])
		}
	}
	return failure.JoinWaits(list, len(g.indexes))
}

// refs names the threads of a group.
func (g *group) refs() []evidence.ThreadRef {
	list := make([]evidence.ThreadRef, len(g.threads))
	for i, t := range g.threads {
		list[i] = t.Ref
	}
	return list
}
