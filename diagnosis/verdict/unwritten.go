package verdict

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// Entries of the auxiliary vector (linux/auxvec.h).
const (
	auxRandom = 25
	auxExecFn = 31
)

// allocated ends a chain at memory that nothing wrote to since it was allocated, or freed: what
// is there the heap put there, or left there.
func (c *chain) allocated(v *victim, made *link) {
	if o := c.objectBefore(v); o != nil {
		c.end.beside, c.end.origin = o, made
		return
	}
	if c.partial {
		c.end.text, c.end.open = fmt.Sprintf("no store to %s was seen, but not all accesses to it were", v.name), evidence.OpenOrigin
		return
	}
	if made == nil || made.call == nil || onFailingStack(c.Process, v.start) || v.damaged() {
		c.neverWritten(v)
		return
	}
	name := libraryName(made.call.name)
	if name == "" {
		name = "the allocator"
	}
	switch {
	case made.call.frees():
		c.end.unwritten = true
		c.end.text = fmt.Sprintf("%s is in memory that %s freed by %s, and nothing wrote to it after that", v.name, where(&made.seen), evidence.ShortName(name))
	case name == "calloc":
		c.end.unwritten = len(c.links) == 0 // else it may be meant
		c.end.text = fmt.Sprintf("%s is 0 since %s allocated it by calloc, and nothing wrote to it before it was read", v.name, where(&made.seen))
	default:
		c.nothingStored(v)
		c.end.text = fmt.Sprintf("%s is uninitialised heap memory: nothing wrote to it since %s allocated it by %s", v.name, where(&made.seen), name)
	}
	c.end.origin = made
}

// nothingStored ends a chain at memory that nobody stored to before the bad value was read there, and notes it for the search among
// orders: somebody may store there too late.
func (c *chain) nothingStored(v *victim) {
	c.end.unwritten = true
	c.earlyReads.unset = append(c.earlyReads.unset, watchtrace.Target{Name: v.name, Addr: v.start, Size: max(1, v.size)})
}

// afterFree reports whether nothing wrote to the last memory since it was freed: what is there is
// not the program's.
func (e *chainEnd) afterFree() bool {
	return e.unwritten && e.origin != nil && e.origin.call != nil && e.origin.call.frees()
}

// objectBefore is the heap object behind whose end the failing instruction's value lay;
// nil if there is none: what is there belongs to nobody, and needs no writer.
func (c *chain) objectBefore(v *victim) *evidence.HeapObject {
	if len(c.links) > 0 || v.damaged() || c.Object == nil || onFailingStack(c.Process, v.start) {
		return nil
	}
	o := c.Object(v.start)
	if o == nil || v.start < o.Addr+evidence.Addr(o.Size) {
		return nil
	}
	return o
}

// besideCause is for a value that was read behind the end of an object.
func (ac *account) besideCause() *evidence.Cause {
	o := ac.chain.end.beside
	out := &evidence.Cause{Kind: evidence.CauseHeapOverflow, Variable: ac.chain.victim.name, Site: ac.chain.Case.Failure.Site, Object: o, Proof: evidence.Replayed}
	text := fmt.Sprintf("reads %s, which is %s the end of an object of %s", ac.chain.victim.name, distance(uint64(ac.chain.victim.start-o.Addr)-o.Size, "past"), sizeText(o))
	if ac.chain.victim.start >= o.SlotEnd { // the object before it has no more to do with it than another
		out.Kind, out.Basis, out.Object = evidence.CauseBadValue, evidence.BasisBounds, nil
		text = fmt.Sprintf("reads %s, which is in memory of the heap that belongs to no object", ac.chain.victim.name)
	}
	if out.Site != nil {
		text = siteText(out.Site) + " " + text
	}
	out.Summary = text
	step := evidence.CauseStep{Text: "the program stored nothing there: the value that was read is the heap's own, or was left by an earlier object", Site: out.Site, Proof: evidence.Replayed}
	if ac.chain.end.origin != nil {
		step.Access = &ac.chain.end.origin.seen
	}
	out.Story = []evidence.CauseStep{step}
	return out
}

// neverWritten ends a chain at memory that nothing in the recording wrote to: what
// is there, it had from the beginning.
func (c *chain) neverWritten(v *victim) {
	m := c.Process.MappingAt(v.start)
	switch module := c.Process.ModuleAt(v.start); {
	case c.startText(v.start) != "":
		c.end.given = true
		c.end.text = fmt.Sprintf("%s is in %s", v.name, c.startText(v.start))
	case m == nil:
		c.end.text, c.end.open = fmt.Sprintf("where the value came from is not known: nothing is mapped at %v, which %s would be at", v.start, v.name), evidence.OpenOrigin
	case module != nil && m.Writable() && c.neverStoredTo(v, module):
	case module != nil:
		c.end.text = fmt.Sprintf("%s had its value since %s was loaded: nothing wrote to it before it was read", v.name, filepath.Base(module.Path))
	case m.Path != "" && m.Path[0] != '[':
		c.end.given = true
		c.end.text = fmt.Sprintf("%s is in the mapped file %s", v.name, filepath.Base(m.Path))
	default:
		c.nothingStored(v)
		c.end.text = fmt.Sprintf("nothing wrote to %s before", v.name)
		if onFailingStack(c.Process, v.start) || c.Object == nil {
			return
		}
		if o := c.Object(v.start); o != nil && v.start >= o.Addr && v.start < o.Addr+evidence.Addr(o.Size) && o.Allocated != nil && o.Allocated.Site != nil {
			c.end.never = o
			c.end.text = fmt.Sprintf("%s is uninitialised heap memory: nothing wrote to it since %s allocated it", v.name, siteText(o.Allocated.Site))
		}
	}
}

// neverStoredTo ends a chain at a global variable that nothing stored to in the whole run,
// and reports whether that is known. A variable that decided an exit is often a setting
// that is as it should be: then this says nothing of the cause.
func (c *chain) neverStoredTo(v *victim, module *image.Module) bool {
	if len(c.links) > 0 || c.everStored || c.Case.Failure.Kind == evidence.ExitStatus {
		return false
	}
	from, known := startValue(v, module)
	if !known || !c.seenWhole() {
		return false
	}
	name := filepath.Base(module.Path)
	c.end.unwritten, c.end.neverStored, c.end.initialised = true, true, from == fromFile
	value := ""
	switch {
	case v.value != nil && c.end.initialised:
		value = "it is " + valueText(*v.value) + ", which is its initialiser; "
	case v.value != nil:
		value = "it is " + valueText(*v.value) + " as it was when " + name + " was loaded; "
	}
	c.end.text = fmt.Sprintf("nothing ever stored to %s: %sno instruction and no system call wrote there from before the first initialiser of %s until the failure", v.name, value, name)
	return true
}

// startOfValue is where a global variable has its first value from.
type startOfValue int

const (
	fromFile  startOfValue = iota // the module's file holds it
	zeroedMem                     // the file has no bytes of it (.bss)
)

// startValue tells from a module's segments where a variable had its first value from. It is
// not known without the file, and where the file holds another value than was read.
func startValue(v *victim, module *image.Module) (from startOfValue, known bool) {
	if module.Object == nil || v.size < 1 || v.size > wordSize {
		return 0, false
	}
	at := module.LinkAddr(v.start)
	for _, s := range module.Object.Segments() {
		if at < s.Vaddr || at-s.Vaddr >= s.Memsz {
			continue
		}
		if at-s.Vaddr >= s.Filesz {
			return zeroedMem, true
		}
		var b [wordSize]byte
		n, err := module.Object.ReadAddr(b[:v.size], at)
		return fromFile, err == nil && n == v.size && (v.value == nil || binary.LittleEndian.Uint64(b[:]) == *v.value)
	}
	return 0, false
}

// unseenWriters are the limits of a recording by which memory may have been written that
// no pass sees: by other processes, and by system calls that are not known or not
// intercepted.
var unseenWriters = map[string]bool{eventlog.LimitShared.String(): true, eventlog.LimitSyscall.String(): true, eventlog.LimitSite.String(): true}

// seenWhole reports whether replays see the whole run as it was: one leaves every byte as
// the core has it, and nothing wrote to memory that the recording does not know of.
func (c *chain) seenWhole() bool {
	_, limits, err := c.rec.Log.ScheduleAndLimits()
	if err != nil {
		return false
	}
	for _, l := range append(limits, c.rec.Manifest.Limits...) {
		if unseenWriters[l.Kind] {
			return false
		}
	}
	c.out.Coverage.Passes++
	result, err := replay.Run(c.progress.ctx, c.rec, replay.PlainRequest{Common: replay.Common{Image: c.Image}, Verify: true})
	return err == nil && result.Comparison != nil && result.Comparison.Identical()
}

// startText says which argument or variable of the environment an address is in;
// "" if in none. The kernel puts their texts above the random bytes that it hands
// the program, and below the name of the program (fs/exec.c, fs/binfmt_elf.c).
func (w *work) startText(addr evidence.Addr) string {
	if !w.Process.OfStart(addr) {
		return ""
	}
	start, text := argumentAt(w.Process, addr)
	if start == 0 {
		return ""
	}
	for i, a := range w.rec.Manifest.Program.Args {
		if string(a) == text {
			return fmt.Sprintf("argument %d of the command line", i)
		}
	}
	if name, _, ok := bytes.Cut([]byte(text), []byte("=")); ok && len(name) > 0 {
		return fmt.Sprintf("the variable %s of the environment", name)
	}
	return "the command line or the environment"
}

// argumentAt is the whole of one of those texts, and where it begins; 0 if it cannot be
// read.
func argumentAt(p *image.Process, addr evidence.Addr) (evidence.Addr, string) {
	first, last := p.Auxv[auxRandom], p.Auxv[auxExecFn]
	if !p.OfStart(addr) {
		return 0, ""
	}
	const most = 1 << 17 // MAX_ARG_STRLEN
	before := make([]byte, min(uint64(addr)-first, most))
	if n, err := p.ReadMemory(addr-evidence.Addr(len(before)), before); err != nil || n != len(before) {
		return 0, ""
	}
	before = before[bytes.LastIndexByte(before, 0)+1:]
	rest := make([]byte, min(last-uint64(addr), most))
	if n, err := p.ReadMemory(addr, rest); err != nil || n != len(rest) {
		return 0, ""
	}
	if i := bytes.IndexByte(rest, 0); i >= 0 {
		rest = rest[:i]
	}
	return addr - evidence.Addr(len(before)), string(before) + string(rest)
}

// textReplaced gives a text that was there from the beginning, and of which a
// number was made, another one.
func (ce *chainExperiments) textReplaced() []change {
	if !ce.chain.end.given || ce.chain.text == 0 {
		return nil
	}
	var list []change
	if start, text := argumentAt(ce.chain.Process, ce.chain.text); start != 0 {
		for _, rec := range ce.chain.Passing {
			if other := sameArgument(ce.chain.rec, rec, text); other != "" {
				list = append(list, change{what: fmt.Sprintf("the argument replaced by %q, which a passing run had", other), link: noLink, event: textEvent(start), options: textStored(start, other)})
				break
			}
		}
	}
	return append(list, change{what: `the text replaced by "1"`, link: noLink, event: textEvent(ce.chain.text), options: textStored(ce.chain.text, "1")})
}

// textEvent is a text that the process began with.
func textEvent(at evidence.Addr) *evidence.Event {
	return &evidence.Event{Thing: fmt.Sprintf("the text at %v", at), At: evidence.Moment{Thread: 1, Ordinal: 1}}
}

// textStored stores a text, as the program begins.
func textStored(at evidence.Addr, text string) replay.FreeRequest {
	opts := replay.FreeRequest{}
	for rest := append([]byte(text), 0); len(rest) > 0; {
		n := min(len(rest), wordSize)
		word := make([]byte, wordSize)
		copy(word, rest[:n])
		opts.Edits = append(opts.Edits, replay.Edit{Kind: replay.EditStore, At: evidence.Moment{Thread: 1, Ordinal: 1},
			Addr: at, Value: binary.LittleEndian.Uint64(word), Size: n})
		at, rest = at+evidence.Addr(n), rest[n:]
	}
	return opts
}

// sameArgument is what a passing run had in the place of an argument; empty if it had
// none, the same, or one for which there is no room.
func sameArgument(recorded, rec *record.Recording, text string) string {
	own, others := recorded.Manifest.Program.Args, rec.Manifest.Program.Args
	for i := 1; i < min(len(own), len(others)); i++ {
		if string(own[i]) == text && string(others[i]) != text && len(others[i]) <= len(text) {
			return string(others[i])
		}
	}
	return ""
}

// givenCause is for a bad value that came in with the program's start, and that no
// store handed on.
func (ac *account) givenCause() *evidence.Cause {
	out := &evidence.Cause{Kind: evidence.CauseBadInput, Basis: evidence.BasisInput, Variable: ac.chain.victim.name, Site: ac.chain.Case.Failure.Site, Proof: evidence.Replayed}
	if endedItself(ac.chain.Case) {
		out.Open = evidence.OpenInput
	}
	step := evidence.CauseStep{Text: ac.chain.end.text, Proof: evidence.Replayed}
	out.Summary = fmt.Sprintf("the bad value is input: %s", ac.chain.end.text)
	if steps := ac.chain.Case.Failure.Origin; ac.chain.text != 0 && len(steps) > 0 && steps[len(steps)-1].Site != nil {
		out.Site = steps[len(steps)-1].Site
		step.Site = out.Site
		out.Summary = fmt.Sprintf("the bad value is a number that %s had made of input: %s", siteText(out.Site), ac.chain.end.text)
	}
	out.Story = []evidence.CauseStep{step}
	return out
}

// fromOrigin is what the core alone tells where nothing else is known: the call that
// returned the bad value, or the code that it stands in.
func (k *conclusion) fromOrigin() {
	steps := k.in.Case.Failure.Origin
	if len(k.out.Causes) > 0 || len(steps) == 0 {
		return
	}
	last := &steps[len(steps)-1]
	const null = 4096 // below, a constant is no address that something was added to
	constant := last.Kind == evidence.OriginConstant && last.Value != nil && *last.Value < null
	if last.Site == nil || last.Site.Line == 0 || last.Kind != evidence.OriginResult && !constant {
		return
	}
	name := k.in.Case.Failure.Pointer
	if !isName(name) {
		name = "the bad value"
	}
	basis, open := evidence.BasisConstant, evidence.OpenEnd("")
	if !constant {
		basis, open = evidence.BasisResult, evidence.OpenCall
	}
	k.out.Causes = append(k.out.Causes, evidence.Cause{Kind: evidence.CauseBadValue, Basis: basis, Variable: name, Site: last.Site, Proof: evidence.Inferred, Open: open,
		Summary: fmt.Sprintf("%s comes from %s: %s", name, siteText(last.Site), last.Text),
		Story:   []evidence.CauseStep{{Text: last.Text, Site: last.Site, Proof: evidence.Inferred}}})
}

// step is the end of a chain as a part of the story, with the allocation of the memory
// if the chain ends there.
func (e *chainEnd) step() evidence.CauseStep {
	step := evidence.CauseStep{Text: e.text, Proof: evidence.Replayed}
	if e.origin != nil {
		step.Access = &e.origin.seen
	}
	return step
}
