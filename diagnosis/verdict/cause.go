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

// account is what is told of a chain: the cause that it comes to, and how.
type account struct{ chain *chain }

func (c *chain) account() *account { return &account{c} }

// cause says what the chain found; nil if it says nothing.
func (ac *account) cause() *evidence.Cause {
	switch {
	case ac.chain.victim.freed() && ac.chain.made != nil:
		return ac.freedCause()
	case ac.chain.dead:
		return ac.deadCause()
	case len(ac.chain.links) == 0 && ac.chain.end.beside != nil:
		return ac.besideCause()
	case len(ac.chain.links) == 0 && ac.chain.outside != nil:
		return ac.outsideCause()
	case ac.statusAlone():
		return nil
	case len(ac.chain.links) == 0 && ac.chain.end.given:
		return ac.givenCause()
	case len(ac.chain.links) == 0:
		return ac.unwrittenCause()
	}
	first, last := &ac.chain.links[0], &ac.chain.links[len(ac.chain.links)-1]
	out := &evidence.Cause{Kind: ac.kind(), Variable: ac.chain.victim.name, Site: last.seen.Site, Proof: evidence.Replayed}
	if last.returned != nil {
		out.Site = last.returned.site
	}
	if i := ac.chain.counted(); i > 0 && out.Kind == evidence.CauseBadValue {
		out.Site = ac.chain.links[i-1].seen.Site // what was made of the count, and not where it began
	} else if i == 0 {
		out.Site = first.seen.Site
	}
	if last.bounds != "" {
		out.Variable = last.victim.name // what was overwritten, and not where that led
	}
	if ac.chain.victim.damaged() {
		out.Variable = variableOf(first)
	}
	if stored := ac.chain.firstStored(); stored != nil && ac.chain.ofStatus() {
		out.Variable = stored.victim.name
	}
	if f := ac.chain.victim.finding; f != nil {
		out.Object = f.Object
		if ac.chain.corrected() {
			out.Object = first.object
		}
	}
	if out.Object == nil {
		out.Object = last.object
	}
	folded := evidence.OpenEnd("")
	if s := ac.constantSite(); s != nil {
		if folded = ac.chain.foldedEnd(s, last.access.New); folded != "" {
			folded = ac.chain.foldedEnd(out.Site, last.access.New)
		}
		out.Site = s
	}
	out.Summary = ac.summary(out)
	if ac.chain.outside != nil {
		out.Summary = outsideText(ac.chain.outside) + ": " + out.Summary
		out.Outside = outsideAccess(ac.chain.outside)
	}
	out.Story = ac.story()
	out.Open = cmp.Or(folded, ac.openEnd())
	out.Basis = ac.basis(out.Kind)
	return out
}

// basis is what a chain of this kind rests on.
func (ac *account) basis(kind evidence.CauseKind) evidence.Basis {
	last := &ac.chain.links[len(ac.chain.links)-1]
	switch steps := last.store.Steps; {
	case evidence.BasisOf(kind) != "":
		return evidence.BasisOf(kind)
	case ac.chain.outside != nil:
		return evidence.BasisBounds
	case kind == evidence.CauseBadInput:
		return evidence.BasisInput
	case last.returned != nil:
		return evidence.BasisResult
	case ac.chain.counted() >= 0:
		return evidence.BasisCount
	case len(steps) > 0 && steps[len(steps)-1].Kind == evidence.OriginConstant:
		return evidence.BasisConstant
	}
	return evidence.BasisStore
}

// openEnd says why the chain ends before a place that is known to be wrong; empty: it does not.
func (ac *account) openEnd() evidence.OpenEnd {
	last := &ac.chain.links[len(ac.chain.links)-1]
	switch {
	case ac.chain.victim.damaged(), last.bounds != "":
		return ""
	case endedItself(ac.chain.Case) && (ac.chain.end.given || last.returned == nil && fromInput(last)):
		return evidence.OpenInput
	case ac.chain.end.unwritten:
		return ""
	case ac.chain.otherDivisor():
		return evidence.OpenOrigin
	case ac.chain.end.open == evidence.OpenTime:
		return ac.chain.end.open
	case !ac.chain.traced && slices.ContainsFunc(ac.chain.links, func(l link) bool { return l.store.Split }):
		return evidence.OpenOrigin
	case ac.chain.overtaken != nil && ac.chain.mayInterleave():
		return evidence.OpenUntested
	case ac.chain.end.given:
		return ""
	case last.returned == nil && (ac.chain.counted() >= 0 || fromInput(last)):
		return ""
	case ac.chain.end.open != "":
		return ac.chain.end.open
	case last.returned != nil:
		return last.returned.open
	case ac.chain.exits():
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

func (ac *account) kind() evidence.CauseKind {
	last := &ac.chain.links[len(ac.chain.links)-1]
	switch {
	case ac.chain.corrected():
		return ac.chain.links[0].kind
	case ac.chain.victim.damaged():
		return ac.chain.victim.kind
	case last.bounds != "":
		return last.kind
	case last.returned != nil && ac.chain.end.given:
		return evidence.CauseBadInput
	case last.returned != nil && !ac.chain.end.unwritten:
		return last.returned.kind
	case ac.chain.end.afterFree():
		return evidence.CauseUseAfterFree
	case ac.chain.end.unwritten:
		return evidence.CauseUninitialised
	case ac.chain.end.given || fromInput(last):
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
func fromInput(l *link) bool {
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
func (ac *account) summary(out *evidence.Cause) string {
	first, last := &ac.chain.links[0], &ac.chain.links[len(ac.chain.links)-1]
	switch {
	case ac.chain.victim.damaged():
		text := fmt.Sprintf("%s %s %s", where(&first.seen), stores(first), ac.damaged())
		if first.bounds != "" && (first.object == nil || ac.chain.corrected()) { // else the object's end is told already
			text += ", " + first.bounds
		}
		return text
	case last.bounds != "":
		return fmt.Sprintf("%s %s %s, which is %s", where(&last.seen), overwrites(last), last.victim.name, last.bounds)
	case ac.hasReturned() && last.returned == nil && ac.chain.ofStatus():
		return ac.storedSummary()
	case ac.hasReturned():
		return ac.returnedSummary()
	case out.Kind == evidence.CauseBadInput:
		return fmt.Sprintf("the bad value of %s is input, which %s stored", ac.chain.victim.name, where(&last.seen))
	}
	text := fmt.Sprintf("%s gave %s its bad value", where(&first.seen), ac.chain.victim.name)
	if first.seen.New != "" {
		text += " " + first.seen.New
	}
	switch i := ac.chain.counted(); {
	case i > 0:
		return text + fmt.Sprintf(", made of %s, which %s counted up or down", ac.chain.links[i].victim.name, where(&ac.chain.links[i].seen))
	case i == 0:
		return text + ", counting from " + valueText(first.from)
	}
	if s := ac.constantSite(); s != nil && (len(ac.chain.links) > 1 || s.Line != last.seen.Site.Line) {
		text += fmt.Sprintf(", which %s set", siteText(s))
	} else if len(ac.chain.links) > 1 {
		text += fmt.Sprintf(", which comes from %s", where(&last.seen))
	}
	return text
}

// counted is the first link at which a loop had counted up the value that it ends with;
// -1: the chain leads through none, or on to where something else came in.
func (c *chain) counted() int {
	last := &c.links[len(c.links)-1]
	if c.end.unwritten || c.end.given || last.bounds != "" || last.returned != nil || fromInput(last) {
		return -1
	}
	return slices.IndexFunc(c.links, func(l link) bool { return l.times > 0 })
}

// constantSite is the program's own code where the chain ends because the value
// stands there; nil if it does not.
func (ac *account) constantSite() *evidence.Site {
	last := &ac.chain.links[len(ac.chain.links)-1]
	n := len(last.store.Steps)
	if ac.chain.victim.damaged() || last.bounds != "" || n == 0 || last.seen.Site == nil || ac.chain.counted() >= 0 {
		return nil
	}
	step := &last.store.Steps[n-1]
	if step.Kind != evidence.OriginConstant || step.Site == nil || step.Site.Line == 0 || image.LibraryCode(step.Site) {
		return nil
	}
	return step.Site
}

// damaged is the memory of a finding, in words.
func (ac *account) damaged() string {
	f := ac.chain.victim.finding
	switch {
	case f == nil:
		return ac.chain.victim.name
	case ac.chain.victim.kind == evidence.CauseStackSmashing && f.Site != nil:
		return "the stack guard of " + evidence.ShortName(f.Site.Function)
	case f.Object != nil:
		return ac.chain.victim.name + " of " + sizeText(f.Object)
	}
	return ac.chain.victim.name
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
func (ac *account) story() []evidence.CauseStep {
	var steps []evidence.CauseStep
	if ac.chain.end.text != "" {
		step := evidence.CauseStep{Text: ac.chain.end.text, Proof: evidence.Inferred}
		if n := len(ac.chain.links); n > 0 && len(ac.chain.links[n-1].store.Steps) > 0 {
			s := &ac.chain.links[n-1].store.Steps[len(ac.chain.links[n-1].store.Steps)-1]
			step.Site, step.Proof = s.Site, s.Proof
		}
		if ac.chain.end.origin != nil {
			step = ac.chain.end.step()
		}
		steps = append(steps, step)
	}
	if ac.chain.made != nil {
		step := evidence.CauseStep{Text: ac.madeText(), Access: &ac.chain.made.seen, Proof: evidence.Replayed}
		steps = append(steps, step)
	}
	for i := range slices.Backward(ac.chain.links) {
		l := &ac.chain.links[i]
		if l.returned != nil {
			steps = append(steps, l.returned.step())
			continue
		}
		steps = append(steps, evidence.CauseStep{Text: l.text(), Access: &l.seen, Proof: evidence.Replayed})
	}
	return steps
}

func (ac *account) madeText() string {
	switch ac.chain.victim.kind {
	case evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow:
		return "the object was allocated, and its guard set"
	case evidence.CauseUseAfterFree:
		return "the object was freed, and its memory filled"
	case evidence.CauseStackSmashing:
		if ac.chain.victim.finding == nil {
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
func (ac *account) freedCause() *evidence.Cause {
	f := ac.chain.victim.finding
	out := &evidence.Cause{Kind: ac.chain.victim.kind, Object: f.Object, Site: ac.freedAt(), Proof: evidence.Replayed}
	if p := ac.chain.Case.Failure.Pointer; strings.ContainsAny(p, ".>[*") { // no register's name
		out.Variable = p
	}
	if out.Variable == "" {
		out.Variable = ac.chain.victim.name
	}
	still, again := "still uses", "uses it"
	if ac.chain.victim.kind == evidence.CauseDoubleFree {
		still, again = "frees again", "frees it again"
	}
	out.Invalidated = ac.invalidation(out.Site)
	out.Summary = fmt.Sprintf("%s freed the object of %s", ac.freedText(), sizeText(f.Object))
	if i := out.Invalidated; i != nil {
		out.Summary = ac.invalidatedText(i)
	}
	s, known := ac.chain.Case.Failure.Site, evidence.FromCore
	if f.Site != nil && (ac.chain.victim.use || ac.chain.victim.kind == evidence.CauseDoubleFree) {
		s, known = f.Site, f.Proof
	}
	if s != nil {
		out.Summary += fmt.Sprintf(", which %s %s", siteText(s), still)
	}
	out.Story = []evidence.CauseStep{{Text: "the object was freed", Access: &ac.chain.made.seen, Proof: evidence.Replayed}}
	if out.Invalidated != nil {
		out.Story = append(out.Story, ac.containerSteps()...)
	}
	if s != nil {
		out.Story = append(out.Story, evidence.CauseStep{Text: siteText(s) + " " + again, Site: s, Proof: known})
	}
	return out
}

// freedAt is where the victim's object was freed; nil if that is not known.
func (ac *account) freedAt() *evidence.Site {
	return freedAt(ac.chain.Process, ac.chain.victim.finding.Object, ac.chain.made.seen.Site)
}

// freedText is that place in words.
func (ac *account) freedText() string {
	if s := ac.freedAt(); s != nil {
		return siteText(s)
	}
	return where(&ac.chain.made.seen)
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
func (ac *account) usedAfterFree() *evidence.Cause {
	out := &evidence.Cause{Kind: evidence.CauseUseAfterFree, Variable: ac.chain.victim.name, Site: ac.chain.end.origin.seen.Site, Proof: evidence.Replayed,
		Summary: fmt.Sprintf("%s freed the memory of %s", where(&ac.chain.end.origin.seen), ac.chain.victim.name), Story: []evidence.CauseStep{ac.chain.end.step()}}
	if s := ac.chain.Case.Failure.Site; s != nil {
		out.Summary += fmt.Sprintf(", which %s still uses", siteText(s))
		out.Story = append(out.Story, evidence.CauseStep{Text: siteText(s) + " uses it", Site: s, Proof: evidence.FromCore})
	}
	return out
}

// unwrittenCause is for a bad value that nobody stored.
func (ac *account) unwrittenCause() *evidence.Cause {
	if ac.chain.victim.damaged() || !ac.chain.end.unwritten {
		return nil
	}
	if ac.chain.end.neverStored {
		kind, basis := evidence.CauseUninitialised, evidence.BasisUndefined
		if ac.chain.end.initialised {
			kind, basis = evidence.CauseBadValue, evidence.BasisInitial
		}
		return &evidence.Cause{Kind: kind, Basis: basis, Variable: ac.chain.victim.name, Site: ac.loadedAt(), Proof: evidence.Replayed,
			Summary: ac.chain.end.text, Story: []evidence.CauseStep{ac.chain.end.step()}}
	}
	if ac.chain.end.afterFree() {
		return ac.usedAfterFree()
	}
	return &evidence.Cause{Kind: evidence.CauseUninitialised, Variable: ac.chain.victim.name, Site: ac.loadedAt(), Proof: evidence.Replayed, Object: ac.chain.end.never,
		Summary: fmt.Sprintf("%s was never given a value: %s", ac.chain.victim.name, ac.chain.end.text),
		Story:   []evidence.CauseStep{ac.chain.end.step()}}
}

// loadedAt is the place that loaded the bad value from the victim, as far as the core tells; else the failure's.
func (ac *account) loadedAt() *evidence.Site {
	if b := ac.chain.Blame; b != nil && b.Cell != nil && *b.Cell == ac.chain.victim.start && b.Loaded.PC != 0 {
		if s := ownSite(ac.chain.Process, b.Loaded.PC); s != nil && s.Line > 0 && !image.LibraryCode(s) {
			return s
		}
	}
	return ac.chain.Case.Failure.Site
}
