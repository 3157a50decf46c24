package driver

import (
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/staticscan"
)

// freedUse is that the failing code used a freed object: it accessed its memory,
// or has a value that was read there.
type freedUse struct {
	object agent.Object
	proof  evidence.Proof
	// what is a sentence's beginning: "append has read p->len".
	summary string
	facts   []evidence.Fact
	site    *evidence.Site
}

// Bounds of the search for uses of freed objects.
const (
	useFrames = 4   // of the program's own, from the failure outward
	useBytes  = 512 // of a variable, and of what a pointer leads to
	maxUses   = 4
)

// freedUses looks in the failing frames for uses of freed objects, whatever the
// failure is. That a variable points to a freed object is none: it may never be
// used again. What counts is an access that the function has made after the
// free, by its code, and a value that only the agent's fill has.
func (a *analysis) freedUses() ([]freedUse, error) {
	f := &a.result.Failure
	if len(a.stacks) == 0 || a.heapWords != nil || a.filled != nil || f.Kind == evidence.NoFailure || f.Kind == evidence.KilledBySignal {
		return nil, nil
	}
	in := staticscan.Input{Process: a.process, Thread: a.thread, Signal: f.Signal}
	stack := a.stacks[0].stack
	in.Frames = failure.Frames(failure.Input{Process: a.process, Thread: a.thread, Stack: stack})
	outer := len(stack.Frames) - len(in.Frames)
	var list []freedUse
	var err error
	for _, i := range staticscan.OwnFrames(in, useFrames) {
		accessed, errAccess := a.accessedFreed(in, i)
		held, errHeld := a.heldFill(outer + i)
		err = first(err, errAccess, errHeld)
		for _, u := range append(accessed, held...) {
			known := func(k freedUse) bool { return k.object.Addr == u.object.Addr }
			if len(list) < maxUses && !slices.ContainsFunc(list, known) {
				list = append(list, u)
			}
		}
	}
	return list, err
}

// accessedFreed are the freed objects that the function of a frame has accessed
// after their free.
func (a *analysis) accessedFreed(in staticscan.Input, frame int) ([]freedUse, error) {
	touched, err := staticscan.Touched(in, frame, func(addr evidence.Addr) bool {
		o, found, err := a.heap.Lookup(addr)
		return err == nil && found && (o.State == agent.Quarantined || o.State == agent.Reusable) && o.Contains(addr)
	})
	if err != nil {
		return nil, nil // code that does not decode; the scan has said so
	}
	var list []freedUse
	for i := range touched {
		t := &touched[i]
		o, found, errLookup := a.heap.Lookup(t.Addr)
		if errLookup == nil && found {
			errLookup = a.heap.findFrees(&o)
		}
		err = first(err, errLookup)
		if errLookup != nil || !found || !a.freedBefore(in, frame, t, &o) {
			continue
		}
		list = append(list, a.accessUse(t, o))
	}
	return list, err
}

func (a *analysis) accessUse(t *staticscan.Touch, o agent.Object) freedUse {
	u := freedUse{object: o, proof: evidence.FromCore}
	if calls := a.process.Symbolize(t.PC, image.AtInstruction); len(calls) > 0 {
		u.site = &calls[0].Site
	}
	function, verb, name := "the failing code", "has read", t.Name
	if u.site != nil && u.site.Function != "" {
		function = evidence.ShortName(u.site.Function)
	}
	if t.Held {
		u.proof = evidence.Inferred
	}
	if t.Access == evidence.Write {
		verb = "has written"
	}
	if name == "" {
		name = t.Addr.String()
	}
	u.summary = fmt.Sprintf("use after free: %s %s %s, which is %s", function, verb, name, offsetWords(t.Addr, &o))
	u.facts = append(u.facts, evidence.Fact{Name: "order", Text: "the access is on every way to the failure, and after the free"})
	return u
}

// freedBefore reports whether an object was freed before an access that the
// frame's function made, by the stack of the free. Only a free by the same
// thread has a place in the order of its calls.
func (a *analysis) freedBefore(in staticscan.Input, frame int, t *staticscan.Touch, o *agent.Object) bool {
	by, err := a.heap.Thread(o.Freed.Thread)
	if err != nil || by.TID != a.thread.Ref.TID {
		return false
	}
	stack, err := a.heap.Site(o.Freed.Site)
	if err != nil {
		return false
	}
	inside := false
	for _, pc := range stack {
		if t.Within(pc - 1) {
			if inside = true; !t.After(pc) {
				return false
			}
		}
	}
	// Without the function in it the free was before its call, if the stack is
	// known as far out as a caller. In one that was cut off, a caller that is
	// there twice might be one that the function called.
	return inside || a.calledOutside(in, frame, stack)
}

// calledOutside reports whether a stack leads to a function that called the
// frame's.
func (a *analysis) calledOutside(in staticscan.Input, frame int, stack []evidence.Addr) bool {
	cut := len(stack) >= int(a.heap.Root().Options.Stacks)
	for i := frame + 1; i < len(in.Frames); i++ {
		pc := in.Frames[i].LookupPC()
		same := func(to evidence.Addr) bool { return staticscan.SameFunction(a.process, pc, to) }
		again := 0
		for j := range in.Frames {
			if same(in.Frames[j].LookupPC()) {
				again++
			}
		}
		if cut && again > 1 {
			continue
		}
		if slices.ContainsFunc(stack, func(ret evidence.Addr) bool { return same(ret - 1) }) {
			return true
		}
	}
	return false
}

// heldFill are the freed objects whose fill a frame's variables hold, or what
// they point to.
func (a *analysis) heldFill(i int) ([]freedUse, error) {
	g := a.stacks[0]
	frame := a.valueFrame(g, i)
	if frame == nil {
		return nil, nil
	}
	info, err := frame.Module.Debug()
	if err != nil || info == nil {
		return nil, nil // said when the frame was named
	}
	pc := frame.Module.LinkAddr(g.stack.Frames[i].LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil {
		return nil, nil
	}
	var list []freedUse
	for level, call := range calls {
		variables, errRead := info.VariablesAt(call, pc)
		if errRead != nil {
			continue
		}
		site := g.stack.Frames[i].Calls[min(level, len(g.stack.Frames[i].Calls)-1)].Site
		for _, v := range variables {
			found, errFill := a.fillIn(frame, v)
			err = first(err, errFill)
			for k := range found {
				found[k].site = &site
			}
			list = append(list, found...)
		}
	}
	return list, err
}

// fillIn looks into a variable, and into what it points to.
func (a *analysis) fillIn(frame *value.Frame, v debuginfo.Variable) ([]freedUse, error) {
	if v.Type == nil || v.Name == "" {
		return nil, nil
	}
	data, err := value.Bytes(frame, v, useBytes)
	if err != nil {
		return nil, nil // it has no value here
	}
	at := evidence.Addr(0)
	if where, err := value.Lives(frame, v); err == nil && where.InMemory {
		at = where.Addr
	}
	list, err := a.fillWords(v.Name, v.Type, at, data)
	to := v.Type.Elem()
	if v.Type.Kind() != debuginfo.KindPointer || to == nil || len(data) < 8 || to.Size() <= 0 {
		return list, err
	}
	// The memory of a freed object holds fill because it is freed.
	target := evidence.Addr(binary.LittleEndian.Uint64(data))
	if o, found, errLookup := a.heap.Lookup(target); errLookup != nil || found && o.State != agent.Live {
		return list, first(err, errLookup)
	}
	data = make([]byte, min(to.Size(), useBytes))
	if n, errRead := a.process.ReadMemory(target, data); errRead != nil || n < len(data) {
		return list, err
	}
	through, errFill := a.fillWords("(*"+v.Name+")", to, target, data)
	return append(list, through...), first(err, errFill)
}

// fillWords are the fill words in the parts of a value that are numbers or
// pointers of 8 bytes. at is the value's address, 0 if it has none.
func (a *analysis) fillWords(name string, t debuginfo.Type, at evidence.Addr, data []byte) ([]freedUse, error) {
	var list []freedUse
	for offset := 0; offset+8 <= len(data); offset += 8 {
		word := binary.LittleEndian.Uint64(data[offset:])
		o, added, ok, err := a.heap.FillWord(word)
		if err != nil {
			return list, err
		}
		path, leaf, named := value.Path(t, int64(offset), 8)
		if !ok || !named || leaf == nil || leaf.Size() != 8 {
			continue
		}
		// Memory that was handed out again holds its own fill until it is set.
		if cell := at + evidence.Addr(offset); at != 0 && cell >= o.Slot && cell < o.SlotEnd {
			continue
		}
		if err := a.heap.findFrees(&o); err != nil {
			return list, err
		}
		list = append(list, fillUse(name+path, word, o, added))
	}
	return list, nil
}

func fillUse(name string, word uint64, o agent.Object, added int64) freedUse {
	u := freedUse{object: o, proof: evidence.FromCore}
	u.summary = fmt.Sprintf("use after free: %s was read from %s at %v", name, sized(&o), o.Addr)
	u.facts = append(u.facts, evidence.Fact{Name: "value",
		Text: fmt.Sprintf("%s holds %v, by which the agent marks the memory of this object after its free", name, evidence.Addr(word))})
	if added != 0 {
		u.facts = append(u.facts, evidence.Fact{Name: "added", Text: fmt.Sprint(added)})
	}
	if o.State == agent.Live || !plainOffset(added) {
		u.proof = evidence.Inferred
	}
	if o.State == agent.Live {
		u.summary = fmt.Sprintf("%s was read from freed or never set memory at %v, which is %s by now", name, o.Addr, articled(o.Size))
	}
	return u
}

// usedFreedInFrames adds what freedUses found.
func (c *collection) usedFreedInFrames(a *analysis) error {
	uses, err := a.freedUses()
	for i := range uses {
		u := &uses[i]
		f := &heapFinding{object: &u.object, rank: rankFailure}
		f.Kind, f.Proof, f.Summary, f.Facts, f.Site = evidence.FindingUseAfterFree, u.proof, u.summary, u.facts, u.site
		f.Addr, f.Size = u.object.Addr, int(min(u.object.Size, 1<<31))
		c.list = append(c.list, f)
	}
	return err
}
