package verdict

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
)

// cause says what the chain found; nil if it says nothing.
func (c *chain) cause() *evidence.Cause {
	switch {
	case c.victim.freed() && c.made != nil:
		return c.freedCause()
	case c.dead:
		return c.deadCause()
	case len(c.links) == 0 && c.beside != nil:
		return c.besideCause()
	case len(c.links) == 0 && c.outside != nil:
		return c.outsideCause()
	case c.statusAlone():
		return nil
	case len(c.links) == 0 && c.given:
		return c.givenCause()
	case len(c.links) == 0:
		return c.unwrittenCause()
	}
	first, last := &c.links[0], &c.links[len(c.links)-1]
	out := &evidence.Cause{Kind: c.kind(), Variable: c.victim.name, Site: last.seen.Site, Proof: evidence.Replayed}
	if last.returned != nil {
		out.Site = last.returned.site
	}
	if i := c.counted(); i > 0 && out.Kind == evidence.CauseBadValue {
		out.Site = c.links[i-1].seen.Site // what was made of the count, and not where it began
	} else if i == 0 {
		out.Site = first.seen.Site
	}
	if last.bounds != "" {
		out.Variable = last.victim.name // what was overwritten, and not where that led
	}
	if c.victim.damaged() {
		out.Variable = variableOf(first)
	}
	if stored := c.firstStored(); stored != nil && c.ofStatus() {
		out.Variable = stored.victim.name
	}
	if f := c.victim.finding; f != nil {
		out.Object = f.Object
		if c.corrected() {
			out.Object = first.object
		}
	}
	if out.Object == nil {
		out.Object = last.object
	}
	folded := evidence.OpenEnd("")
	if s := c.constantSite(); s != nil {
		if folded = c.foldedEnd(s, last.access.New); folded != "" {
			folded = c.foldedEnd(out.Site, last.access.New)
		}
		out.Site = s
	}
	out.Summary = c.summary(out)
	if c.outside != nil {
		out.Summary = outsideText(c.outside) + ": " + out.Summary
		out.Outside = outsideAccess(c.outside)
	}
	out.Story = c.story()
	out.Open = cmp.Or(folded, c.openEnd())
	out.Basis = c.basis(out.Kind)
	return out
}

// basis is what a chain of this kind rests on.
func (c *chain) basis(kind evidence.CauseKind) evidence.Basis {
	last := &c.links[len(c.links)-1]
	switch steps := last.store.Steps; {
	case evidence.BasisOf(kind) != "":
		return evidence.BasisOf(kind)
	case c.outside != nil:
		return evidence.BasisBounds
	case kind == evidence.CauseBadInput:
		return evidence.BasisInput
	case last.returned != nil:
		return evidence.BasisResult
	case c.counted() >= 0:
		return evidence.BasisCount
	case len(steps) > 0 && steps[len(steps)-1].Kind == evidence.OriginConstant:
		return evidence.BasisConstant
	}
	return evidence.BasisStore
}

// openEnd says why the chain ends before a place that is known to be wrong; empty: it does not.
func (c *chain) openEnd() evidence.OpenEnd {
	last := &c.links[len(c.links)-1]
	switch {
	case c.victim.damaged(), last.bounds != "":
		return ""
	case endedItself(c.Case) && (c.given || last.returned == nil && c.fromInput(last)):
		return evidence.OpenInput
	case c.unwritten:
		return ""
	case c.open == evidence.OpenTime:
		return c.open
	case !c.traced && slices.ContainsFunc(c.links, func(l link) bool { return l.store.Split }):
		return evidence.OpenOrigin
	case c.overtaken != nil && c.mayInterleave():
		return evidence.OpenUntested
	case c.given:
		return ""
	case last.returned == nil && (c.counted() >= 0 || c.fromInput(last)):
		return ""
	case c.open != "":
		return c.open
	case last.returned != nil:
		return last.returned.open
	case c.exits():
		return evidence.OpenDecision
	}
	return ""
}

// variableOf is what the code of a store calls the memory.
func variableOf(l *link) string {
	switch {
	case l.store.Meant != "":
		return l.store.Meant
	case isName(l.store.Accessed):
		return l.store.Accessed
	}
	return l.victim.name
}

// isName tells what the program calls memory from the operand of an instruction,
// which is all that is known where no variable holds the address: "[rax]".
func isName(text string) bool { return text != "" && !strings.HasPrefix(text, "[") }

func (c *chain) kind() evidence.CauseKind {
	last := &c.links[len(c.links)-1]
	switch {
	case c.corrected():
		return c.links[0].kind
	case c.victim.damaged():
		return c.victim.kind
	case last.bounds != "":
		return last.kind
	case last.returned != nil && c.given:
		return evidence.CauseBadInput
	case last.returned != nil && !c.unwritten:
		return last.returned.kind
	case c.afterFree():
		return evidence.CauseUseAfterFree
	case c.unwritten:
		return evidence.CauseUninitialised
	case c.given || c.fromInput(last):
		return evidence.CauseBadInput
	}
	return evidence.CauseBadValue
}

// corrected reports that the store contradicts what the finding took for the
// object, which the damage alone does not tell for sure.
func (c *chain) corrected() bool {
	f := c.victim.finding
	return f != nil && (f.Proof == evidence.Inferred || f.Kind == evidence.FindingUseAfterFree) && len(c.links) > 0 && c.links[0].object != nil &&
		f.Object != nil && c.links[0].object.Addr != f.Object.Addr
}

// fromInput reports that a store put a value there that came in from outside.
func (c *chain) fromInput(l *link) bool {
	if l.access.By == evidence.ByCall || readers[libraryName(l.store.Through)] {
		return true
	}
	n := len(l.store.Steps)
	return n > 0 && l.store.Steps[n-1].Kind == evidence.OriginResult && readers[libraryName(l.store.Steps[n-1].Symbol)]
}

// libraryName is what programs call a function of the C library that goes by an
// inner name.
func libraryName(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimLeft(name, "_"), "isoc99_"), "_chk")
	if base, ok := aliases[name]; ok {
		return base
	}
	return name
}

// aliases are names of one address (glibc, stdlib/strtol.c).
var aliases = map[string]string{"strtoq": "strtol", "strtoll": "strtol", "strtouq": "strtoul", "strtoull": "strtoul"}

// readers are the functions of the C library by which input comes in. What the converters return is input only if their text is.
var readers = map[string]bool{"read": true, "pread": true, "recv": true, "recvfrom": true, "recvmsg": true, "fread": true, "fgets": true,
	"getline": true, "getdelim": true, "scanf": true, "sscanf": true, "fscanf": true,
	"getenv": true, "getc": true, "fgetc": true, "getchar": true}

// summary is the cause in a sentence.
func (c *chain) summary(out *evidence.Cause) string {
	first, last := &c.links[0], &c.links[len(c.links)-1]
	switch {
	case c.victim.damaged():
		text := fmt.Sprintf("%s %s %s", where(&first.seen), stores(first), c.damaged())
		if first.bounds != "" && (first.object == nil || c.corrected()) { // else the object's end is told already
			text += ", " + first.bounds
		}
		return text
	case last.bounds != "":
		return fmt.Sprintf("%s %s %s, which is %s", where(&last.seen), overwrites(last), last.victim.name, last.bounds)
	case c.hasReturned() && last.returned == nil && c.ofStatus():
		return c.storedSummary()
	case c.hasReturned():
		return c.returnedSummary()
	case out.Kind == evidence.CauseBadInput:
		return fmt.Sprintf("the bad value of %s is input, which %s stored", c.victim.name, where(&last.seen))
	}
	text := fmt.Sprintf("%s gave %s its bad value", where(&first.seen), c.victim.name)
	if first.seen.New != "" {
		text += " " + first.seen.New
	}
	switch i := c.counted(); {
	case i > 0:
		return text + fmt.Sprintf(", made of %s, which %s counted up or down", c.links[i].victim.name, where(&c.links[i].seen))
	case i == 0:
		return text + ", counting from " + valueText(first.from)
	}
	if s := c.constantSite(); s != nil && (len(c.links) > 1 || s.Line != last.seen.Site.Line) {
		text += fmt.Sprintf(", which %s set", siteText(s))
	} else if len(c.links) > 1 {
		text += fmt.Sprintf(", which comes from %s", where(&last.seen))
	}
	return text
}

// counted is the first link at which a loop had counted up the value that it ends with;
// -1: the chain leads through none, or on to where something else came in.
func (c *chain) counted() int {
	last := &c.links[len(c.links)-1]
	if c.unwritten || c.given || last.bounds != "" || last.returned != nil || c.fromInput(last) {
		return -1
	}
	return slices.IndexFunc(c.links, func(l link) bool { return l.times > 0 })
}

// constantSite is the program's own code where the chain ends because the value
// stands there; nil if it does not.
func (c *chain) constantSite() *evidence.Site {
	last := &c.links[len(c.links)-1]
	n := len(last.store.Steps)
	if c.victim.damaged() || last.bounds != "" || n == 0 || last.seen.Site == nil || c.counted() >= 0 {
		return nil
	}
	step := &last.store.Steps[n-1]
	if step.Kind != evidence.OriginConstant || step.Site == nil || step.Site.Line == 0 || image.LibraryCode(step.Site) {
		return nil
	}
	return step.Site
}

// damaged is the memory of a finding, in words.
func (c *chain) damaged() string {
	f := c.victim.finding
	switch {
	case f == nil:
		return c.victim.name
	case c.victim.kind == evidence.CauseStackSmashing && f.Site != nil:
		return "the stack guard of " + evidence.ShortName(f.Site.Function)
	case f.Object != nil:
		return c.victim.name + " of " + sizeText(f.Object)
	}
	return c.victim.name
}

func stores(l *link) string {
	if l.access.By == evidence.ByCall {
		return "lets a system call write to"
	}
	if l.store.Through != "" {
		return "lets " + l.store.Through + " write to"
	}
	return "writes to"
}

func overwrites(l *link) string {
	meant := variableOf(l)
	if l.store.Through != "" {
		return fmt.Sprintf("lets %s write to %s and overwrites", l.store.Through, meant)
	}
	return fmt.Sprintf("writes to %s and overwrites", meant)
}

// where is "put_name (names.c:12)".
func where(s *evidence.SeenAccess) string {
	if s.Site == nil {
		return fmt.Sprintf("code at %v", s.Moment.PC)
	}
	return siteText(s.Site)
}

func siteText(s *evidence.Site) string {
	name := evidence.ShortName(s.Function)
	switch {
	case name != "":
	case s.Module != "":
		name = fmt.Sprintf("%s+%v", path.Base(s.Module), s.ModuleOffset)
	default:
		name = fmt.Sprintf("code at %v", s.PC)
	}
	if s.File == "" {
		return name
	}
	return fmt.Sprintf("%s (%s:%d)", name, path.Base(s.File), s.Line)
}

// story tells the links, the oldest first.
func (c *chain) story() []evidence.CauseStep {
	var steps []evidence.CauseStep
	if c.end != "" {
		step := evidence.CauseStep{Text: c.end, Proof: evidence.Inferred}
		if n := len(c.links); n > 0 && len(c.links[n-1].store.Steps) > 0 {
			s := &c.links[n-1].store.Steps[len(c.links[n-1].store.Steps)-1]
			step.Site, step.Proof = s.Site, s.Proof
		}
		if c.origin != nil {
			step = c.endStep()
		}
		steps = append(steps, step)
	}
	if c.made != nil {
		step := evidence.CauseStep{Text: c.madeText(), Access: &c.made.seen, Proof: evidence.Replayed}
		steps = append(steps, step)
	}
	for i := range slices.Backward(c.links) {
		l := &c.links[i]
		if l.returned != nil {
			steps = append(steps, l.returned.step())
			continue
		}
		steps = append(steps, evidence.CauseStep{Text: l.text(), Access: &l.seen, Proof: evidence.Replayed})
	}
	return steps
}

func (c *chain) madeText() string {
	switch c.victim.kind {
	case evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow:
		return "the object was allocated, and its guard set"
	case evidence.CauseUseAfterFree:
		return "the object was freed, and its memory filled"
	case evidence.CauseStackSmashing:
		if c.victim.finding == nil {
			return "the function was called, and the address to return to put there"
		}
		return "the function set its stack guard"
	}
	return "the memory was given to the program"
}

// text is a store in a sentence.
func (l *link) text() string {
	text := where(&l.seen) + " stored "
	switch {
	case l.store.Width > 0 && l.store.Width < int(l.access.Size) && l.access.By == evidence.ByProgram:
		text += wording.Count(uint64(l.store.Width), "byte") + " in " // a part of the watched word
	case l.seen.New != "":
		text += l.seen.New + " in "
	default:
		text += "a value in "
	}
	text += l.victim.name
	if a := l.store.Accessed; isName(a) && a != l.victim.name && l.store.Through == "" {
		text += ", there called " + a
	}
	switch {
	case l.store.Pointer != "" && !strings.HasPrefix(l.store.Pointer, "0x"):
		text += ": the value of " + l.store.Pointer
	case l.store.Through != "":
		text += ", by " + l.store.Through
		if l.store.Meant != "" {
			text += " to " + l.store.Meant
		}
	case l.access.By == evidence.ByCall && l.seen.Call != "":
		text += ", by the call " + l.seen.Call
	}
	if l.times > 0 {
		text += fmt.Sprintf("; the same instruction had made it of %s, in %d steps", valueText(l.from), l.times)
	}
	if l.bounds != "" {
		text += "; this is " + l.bounds
	}
	return text
}

// freedCause is for an object that was used after its free.
func (c *chain) freedCause() *evidence.Cause {
	f := c.victim.finding
	out := &evidence.Cause{Kind: c.victim.kind, Object: f.Object, Site: c.freedAt(), Proof: evidence.Replayed}
	if p := c.Case.Failure.Pointer; strings.ContainsAny(p, ".>[*") { // no register's name
		out.Variable = p
	}
	if out.Variable == "" {
		out.Variable = c.victim.name
	}
	again := "uses"
	if c.victim.kind == evidence.CauseDoubleFree {
		again = "frees"
	}
	out.Invalidated = c.invalidation(out.Site)
	out.Summary = fmt.Sprintf("%s freed the object of %s", c.freedText(), sizeText(f.Object))
	if i := out.Invalidated; i != nil {
		out.Summary = c.invalidatedText(i)
	}
	s, known := c.Case.Failure.Site, evidence.FromCore
	if c.victim.use && f.Site != nil {
		s, known = f.Site, f.Proof
	}
	if s != nil {
		out.Summary += fmt.Sprintf(", which %s still %s", siteText(s), again)
	}
	out.Story = []evidence.CauseStep{{Text: "the object was freed", Access: &c.made.seen, Proof: evidence.Replayed}}
	if out.Invalidated != nil {
		out.Story = append(out.Story, c.containerSteps()...)
	}
	if s != nil {
		out.Story = append(out.Story, evidence.CauseStep{Text: siteText(s) + " " + again + " it", Site: s, Proof: known})
	}
	return out
}

// freedAt is where the victim's object was freed; nil if that is not known.
func (c *chain) freedAt() *evidence.Site {
	return freedAt(c.victim.finding.Object, c.made.seen.Site)
}

// freedText is that place in words.
func (c *chain) freedText() string {
	if s := c.freedAt(); s != nil {
		return siteText(s)
	}
	return where(&c.made.seen)
}

// sizeText is an object's size and where it was allocated.
func sizeText(o *evidence.HeapObject) string {
	text := wording.Count(o.Size, "byte")
	if a := o.Allocated; a != nil && a.Site != nil {
		text += " allocated in " + siteText(a.Site)
	}
	return text
}

// usedAfterFree is for a bad value that was read from memory which had been freed.
func (c *chain) usedAfterFree() *evidence.Cause {
	out := &evidence.Cause{Kind: evidence.CauseUseAfterFree, Variable: c.victim.name, Site: c.origin.seen.Site, Proof: evidence.Replayed,
		Summary: fmt.Sprintf("%s freed the memory of %s", where(&c.origin.seen), c.victim.name), Story: []evidence.CauseStep{c.endStep()}}
	if s := c.Case.Failure.Site; s != nil {
		out.Summary += fmt.Sprintf(", which %s still uses", siteText(s))
		out.Story = append(out.Story, evidence.CauseStep{Text: siteText(s) + " uses it", Site: s, Proof: evidence.FromCore})
	}
	return out
}

// unwrittenCause is for a bad value that nobody stored.
func (c *chain) unwrittenCause() *evidence.Cause {
	if c.victim.damaged() || !c.unwritten {
		return nil
	}
	if c.neverStored {
		kind, basis := evidence.CauseUninitialised, evidence.BasisUndefined
		if c.initialised {
			kind, basis = evidence.CauseBadValue, evidence.BasisInitial
		}
		return &evidence.Cause{Kind: kind, Basis: basis, Variable: c.victim.name, Site: c.loadedAt(), Proof: evidence.Replayed,
			Summary: c.end, Story: []evidence.CauseStep{c.endStep()}}
	}
	if c.afterFree() {
		return c.usedAfterFree()
	}
	return &evidence.Cause{Kind: evidence.CauseUninitialised, Variable: c.victim.name, Site: c.loadedAt(), Proof: evidence.Replayed, Object: c.never,
		Summary: fmt.Sprintf("%s was never given a value: %s", c.victim.name, c.end),
		Story:   []evidence.CauseStep{c.endStep()}}
}

// loadedAt is the place that loaded the bad value from the victim, as far as the core tells; else the failure's.
func (c *chain) loadedAt() *evidence.Site {
	if b := c.Blame; b != nil && b.Cell != nil && *b.Cell == c.victim.start && b.Loaded.PC != 0 {
		if s := ownSite(c.Process, b.Loaded.PC); s != nil && s.Line > 0 && !image.LibraryCode(s) {
			return s
		}
	}
	return c.Case.Failure.Site
}
