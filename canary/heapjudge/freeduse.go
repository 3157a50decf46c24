package heapjudge

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/staticscan"
)

// freedUse is a use of a freed object by the failing code: it accessed the
// object's memory, or holds a value that was read there.
type freedUse struct {
	object agent.Object
	proof  evidence.Proof
	// Summary is one sentence: "use after free: append has read p->len, which
	// is ...".
	Summary string
	facts   []evidence.Fact
	site    *evidence.Site
}

// Bounds of the search for uses of freed objects.
const (
	useFrames = 4   // of the program's own, from the failure outward
	useBytes  = 512 // of a variable, and of a pointer's target
	maxUses   = 4
)

// freedUseSearch searches the failing frames for uses of freed objects, whatever the
// failure is. A variable that points to a freed object is no use: the program may never
// use it again. A use is an access that, by its code, the function made after the free, or
// a value that only the agent's fill has.
type freedUseSearch struct {
	*FailingThread
	heap *Heap
	scan staticscan.Input
}

func (s *freedUseSearch) findUses() ([]freedUse, error) {
	outer := len(s.Stack.Frames) - len(s.Frames)
	var list []freedUse
	var err error
	for _, i := range staticscan.OwnFrames(s.scan, useFrames) {
		accessed, errAccess := s.accessedFreed(i)
		held, errHeld := s.heldFill(outer + i)
		err = cmp.Or(err, errAccess, errHeld)
		for _, u := range append(accessed, held...) {
			known := func(k freedUse) bool { return k.object.Addr == u.object.Addr }
			if len(list) < maxUses && !slices.ContainsFunc(list, known) {
				list = append(list, u)
			}
		}
	}
	return list, err
}

// accessedFreed returns the freed objects that the function of a frame has
// accessed after their free.
func (s *freedUseSearch) accessedFreed(frame int) ([]freedUse, error) {
	touched, err := staticscan.Touched(s.scan, frame, func(addr evidence.Addr) bool {
		o, found, err := s.heap.Lookup(addr)
		return err == nil && found && (o.State == agent.Quarantined || o.State == agent.Reusable) && o.Contains(addr)
	})
	if err != nil {
		return nil, nil // code that does not decode; the scan has reported it
	}
	var list []freedUse
	for i := range touched {
		t := &touched[i]
		o, found, errLookup := s.heap.Lookup(t.Addr)
		if errLookup == nil && found {
			errLookup = s.heap.findFrees(&o)
		}
		err = cmp.Or(err, errLookup)
		if errLookup != nil || !found || !s.freedBefore(frame, t, &o) {
			continue
		}
		list = append(list, s.accessUse(t, o))
	}
	return list, err
}

func (s *freedUseSearch) accessUse(t *staticscan.Touch, o agent.Object) freedUse {
	u := freedUse{object: o, proof: evidence.FromCore}
	if calls := s.Process.Symbolize(t.PC, image.AtInstruction); len(calls) > 0 {
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
	u.Summary = fmt.Sprintf("use after free: %s %s %s, which is %s", function, verb, name, offsetWords(t.Addr, &o))
	u.facts = append(u.facts, evidence.Fact{Name: "order", Text: "the access is on every way to the failure, and after the free"})
	return u
}

// freedBefore reports whether an object was freed before an access that the
// frame's function made, by the stack of the free. Only a free by the same
// thread is ordered with the frame's calls.
func (s *freedUseSearch) freedBefore(frame int, t *staticscan.Touch, o *agent.Object) bool {
	by, err := s.heap.Thread(o.Freed.Thread)
	if err != nil || by.TID != s.Thread.Ref.TID {
		return false
	}
	stack, err := s.heap.Site(o.Freed.Site)
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
	// If the function is not on the stack of the free, the free was before its
	// call, provided that the stack contains the function's caller. In a
	// truncated stack, a caller that occurs twice may be one that the function
	// called.
	return inside || s.calledOutside(frame, stack)
}

// calledOutside reports whether a stack contains a function that called the
// frame's.
func (s *freedUseSearch) calledOutside(frame int, stack []evidence.Addr) bool {
	cut := len(stack) >= int(s.heap.Root().Options.Stacks)
	for i := frame + 1; i < len(s.Frames); i++ {
		pc := s.Frames[i].LookupPC()
		same := func(to evidence.Addr) bool { return staticscan.SameFunction(s.Process, pc, to) }
		again := 0
		for j := range s.Frames {
			if same(s.Frames[j].LookupPC()) {
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

// heldFill returns the freed objects whose fill is in a frame's variables, or
// in the memory that they point to.
func (s *freedUseSearch) heldFill(i int) ([]freedUse, error) {
	frame := s.ValueFrame(i)
	if frame == nil {
		return nil, nil
	}
	info, err := frame.Module.Debug()
	if err != nil || info == nil {
		return nil, nil // reported when the frame was named
	}
	pc := frame.Module.LinkAddr(s.Stack.Frames[i].LookupPC())
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
		site := s.Stack.Frames[i].Calls[min(level, len(s.Stack.Frames[i].Calls)-1)].Site
		for _, v := range variables {
			found, errFill := s.fillIn(frame, v)
			err = cmp.Or(err, errFill)
			for k := range found {
				found[k].site = &site
			}
			list = append(list, found...)
		}
	}
	return list, err
}

// fillIn searches a variable and the memory that it points to.
func (s *freedUseSearch) fillIn(frame *value.Frame, v debuginfo.Variable) ([]freedUse, error) {
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
	list, err := s.fillWords(v.Name, v.Type, at, data)
	to := v.Type.Elem()
	if v.Type.Kind() != debuginfo.KindPointer || to == nil || len(data) < 8 || to.Size() <= 0 {
		return list, err
	}
	// The memory of a freed object always holds fill, so this is no use.
	target := evidence.Addr(binary.LittleEndian.Uint64(data))
	if o, found, errLookup := s.heap.Lookup(target); errLookup != nil || found && o.State != agent.Live {
		return list, cmp.Or(err, errLookup)
	}
	data = make([]byte, min(to.Size(), useBytes))
	if n, errRead := s.Process.ReadMemory(target, data); errRead != nil || n < len(data) {
		return list, err
	}
	through, errFill := s.fillWords("(*"+v.Name+")", to, target, data)
	return append(list, through...), cmp.Or(err, errFill)
}

// fillWords returns the fill words among a value's numbers and pointers of 8
// bytes. at is the value's address, 0 if it has none.
func (s *freedUseSearch) fillWords(name string, t debuginfo.Type, at evidence.Addr, data []byte) ([]freedUse, error) {
	var list []freedUse
	for offset := 0; offset+8 <= len(data); offset += 8 {
		word := binary.LittleEndian.Uint64(data[offset:])
		o, added, ok, err := s.heap.FillWord(word)
		if err != nil {
			return list, err
		}
		path, leaf, named := value.Path(t, int64(offset), 8)
		if !ok || !named || leaf == nil || leaf.Size() != 8 {
			continue
		}
		// Reallocated memory holds its own fill until it is set.
		if cell := at + evidence.Addr(offset); at != 0 && cell >= o.Slot && cell < o.SlotEnd {
			continue
		}
		if err := s.heap.findFrees(&o); err != nil {
			return list, err
		}
		list = append(list, fillUse(name+path, word, o, added))
	}
	return list, nil
}

func fillUse(name string, word uint64, o agent.Object, added int64) freedUse {
	u := freedUse{object: o, proof: evidence.FromCore}
	u.Summary = fmt.Sprintf("use after free: %s was read from %s at %v", name, sized(&o), o.Addr)
	u.facts = append(u.facts, evidence.Fact{Name: "value",
		Text: fmt.Sprintf("%s holds %v, by which the agent marks the memory of this object after its free", name, evidence.Addr(word))})
	if added != 0 {
		u.facts = append(u.facts, evidence.Fact{Name: "added", Text: fmt.Sprint(added)})
	}
	if o.State == agent.Live || !plainOffset(added) {
		u.proof = evidence.Inferred
	}
	if o.State == agent.Live {
		u.Summary = fmt.Sprintf("%s was read from freed or never set memory at %v, which is %s by now", name, o.Addr, articled(o.Size))
	}
	return u
}

// addFreedUses adds the freed objects that the failing frames used, unless one already
// explains the failure.
func (c *collection) addFreedUses(x *Explanation, t *FailingThread) error {
	f := x.failure
	if t.Stack == nil || x.Words != nil || x.filled != nil || f.Kind == evidence.NoFailure || f.Kind == evidence.KilledBySignal {
		return nil
	}
	s := &freedUseSearch{FailingThread: t, heap: x.heap, scan: staticscan.Input{Process: t.Process, Thread: t.Thread, Signal: f.Signal, Frames: t.Frames}}
	uses, err := s.findUses()
	for i := range uses {
		u := &uses[i]
		f := &heapFinding{object: &u.object, rank: rankFailure}
		f.Kind, f.Proof, f.Summary, f.Facts, f.Site = evidence.FindingUseAfterFree, u.proof, u.Summary, u.facts, u.site
		f.Addr, f.Size = u.object.Addr, int(min(u.object.Size, 1<<31))
		c.list = append(c.list, f)
	}
	return err
}
