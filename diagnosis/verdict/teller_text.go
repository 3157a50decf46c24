package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/internal/wording"
)

// summary is the cause in a sentence.
func (x *teller) summary(v *victim, w *provenance.Way, root *evidence.Site) string {
	switch w.End {
	case provenance.Freed:
		return fmt.Sprintf("%s %s", siteText(root), endOfMemory(w.Call)) + x.uses(w)
	case provenance.Left:
		return x.leftText(w, root)
	case provenance.Unset:
		return fmt.Sprintf("%s uses %s, which was never given a value", siteText(root), cmp.Or(w.Part, v.name))
	case provenance.Zeroed:
		text := fmt.Sprintf("%s reads memory to which nothing was stored since calloc made it 0", siteText(root))
		if made := x.site(w.PC); made != nil {
			text += ", called in " + siteText(made)
		}
		return text
	case provenance.Outside:
		return x.outsideText(w, root)
	case provenance.Reused:
		return fmt.Sprintf("%s stored %s in the memory that%s reads as %s", siteText(root), w.Reuse.Stored, x.reader(w), w.Reuse.Read)
	case provenance.Undecided:
		if x.failure.Kind == evidence.DivisionByZero {
			return fmt.Sprintf("%s computed the divisor, which was 0", siteText(root))
		}
		return fmt.Sprintf("%s computed a bad value, from which the address of the failing access was made", siteText(root))
	case provenance.Pieces:
		if slices.ContainsFunc(w.Links, func(l provenance.Link) bool { return l.Handed }) {
			return fmt.Sprintf("%s overwrote the memory that %s was copied from, a part at a time", siteText(root), v.name)
		}
		return fmt.Sprintf("%s overwrote %s, a part at a time", siteText(root), v.name)
	case provenance.Overwrote:
		return fmt.Sprintf("%s overwrote the return address of a function that had not returned", siteText(root))
	case provenance.Initial:
		return fmt.Sprintf("%s read a value that was there from the beginning of the run", siteText(root))
	case provenance.Loop:
		return fmt.Sprintf("the loop at %s continues until %s is bad", siteText(root), v.name)
	case provenance.Tested:
		return fmt.Sprintf("%s found a 0 and went on with it; the bad value of %s comes from there", siteText(root), v.name)
	case provenance.Made:
		if o := x.failure.Class; o != nil && o.Expected != "" && w.Object != nil && o.Object >= w.Object.Addr && uint64(o.Object-w.Object.Addr) < w.Object.Size {
			return fmt.Sprintf("%s made an object of class %s, and%s expects %s", siteText(root), evidence.ShortName(o.Class), x.reader(w), evidence.ShortName(o.Expected))
		}
		return fmt.Sprintf("%s made an object of another type than%s expects", siteText(root), x.reader(w))
	}
	text := fmt.Sprintf("%s made the bad value of %s", siteText(root), v.name)
	switch {
	case x.spoiled(w) != nil:
		text += " of the address of an object"
	case w.End == provenance.Input:
		text += ", which is input of " + w.Call
	case w.End == provenance.Returned && w.Call != "":
		text += ", which " + libraryName(w.Call) + " returned"
	}
	return text
}

// endOfMemory says what a call did that ended the life of memory.
func endOfMemory(call string) string {
	switch call {
	case "munmap":
		return "unmapped memory"
	case "mremap":
		return "moved memory to another address"
	case "shmdt":
		return "detached shared memory"
	case "mmap", "shmat":
		return "mapped other memory over memory"
	}
	return "freed memory"
}

// reader is the place of the access, with a space before it.
func (x *teller) reader(w *provenance.Way) string {
	if s := x.site(w.AccessPC); s != nil {
		return " " + siteText(s)
	}
	return " the code that failed"
}

func (x *teller) uses(w *provenance.Way) string {
	if s := x.site(w.AccessPC); s != nil {
		return fmt.Sprintf(", which %s still uses", siteText(s))
	}
	return ", which is still used"
}

// leftText is for an access to the frame of a function that had returned.
func (x *teller) leftText(w *provenance.Way, root *evidence.Site) string {
	what, verb := "an address in its frame", "reads"
	if w.Declared != nil {
		what = "the address of " + w.Declared.Name
	}
	if w.Write {
		verb = "writes"
	}
	return fmt.Sprintf("%s hands out %s, and%s %s there after the function has returned", siteText(root), what, x.reader(w), verb)
}

func (x *teller) outsideText(w *provenance.Way, root *evidence.Site) string {
	verb, side, n := "reads", "past the end of", w.Beyond-1
	if w.Write {
		verb = "writes"
	}
	if w.Beyond < 0 {
		side, n = "before the start of", -w.Beyond-1
	}
	text := fmt.Sprintf("%s %s ", siteText(root), verb)
	if n > 0 {
		text += wording.Count(uint64(n), "byte") + " "
	}
	if d := w.Declared; d != nil && d.Room > 0 {
		return text + fmt.Sprintf("%s the elements of %s, which has %s of them in memory of %d", side, d.Name, wording.Count(d.Size, "byte"), d.Room)
	} else if d != nil {
		return text + fmt.Sprintf("%s %s, which has %s", side, d.Name, wording.Count(d.Size, "byte"))
	}
	if o := x.objectOf(w); o != nil {
		return text + fmt.Sprintf("%s an object of %s", side, sizeText(o))
	}
	return text + fmt.Sprintf("%s an object of %s", side, wording.Count(w.Object.Size, "byte"))
}

// story tells the links, the oldest first, at most mostTold.
func (x *teller) story(w *provenance.Way) (steps []evidence.CauseStep) {
	add := func(text string, s *evidence.Site) { steps = append(steps, x.step(text, s)) }
	if s := x.site(w.PC); s != nil {
		switch w.End {
		case provenance.Input:
			add(fmt.Sprintf("%s got it from the system, by %s", siteText(s), w.Call), s)
		case provenance.Returned:
			add(fmt.Sprintf("%s got it from %s", siteText(s), libraryName(w.Call)), s)
		case provenance.Freed:
			add(fmt.Sprintf("%s ended the life of the memory, by %s", siteText(s), w.Call), s)
		case provenance.Left:
			add(siteText(s)+" hands out an address in the frame of a function that returns", s)
		}
	}
	if r := w.Reuse; r != nil && x.site(r.Given) != nil {
		if by := x.site(r.GivenBy); by != nil {
			add(siteText(by)+" called what did the next", by)
		}
		add(fmt.Sprintf("%s stored %s there, the last time before", siteText(x.site(r.Given)), r.Read), x.site(r.Given))
	}
	steps = append(steps, x.besideStory(w)...)
	steps = append(steps, x.sizeStory(w)...)
	if w.Led != nil {
		steps = append(steps, x.offsetStory(w.Led)...)
	}
	for _, l := range x.told(w) {
		add(x.linkText(&l), x.site(l.PC))
	}
	if s := x.site(w.AccessPC); s != nil && (w.End == provenance.Freed || w.End == provenance.Left || w.End == provenance.Unset) {
		add(siteText(s)+" uses it", s)
	}
	return steps
}

// toldLink is a link as a story has it.
type toldLink struct {
	provenance.Link
	// several: it was computed of several values, where the way ends.
	several bool
	// added: it was computed, and at the same line added to an address.
	added bool
}

// told are the links of a way that its story has, the oldest first. What one line does with a value, link after link, is one of them, with
// the value that it has in the end.
func (x *teller) told(w *provenance.Way) (list []toldLink) {
	for i := range slices.Backward(w.Links) {
		l := toldLink{Link: w.Links[i]}
		if l.Spilled || x.site(l.PC) == nil {
			continue
		}
		l.several = l.Kind == provenance.Computed && w.End == provenance.Undecided && l.PC == w.PC
		if n := len(list); n == 0 || !x.joins(&list[n-1], &l) {
			list = append(list, l)
			continue
		} else if last := &list[n-1]; l.Kind == provenance.Offset && last.Kind == provenance.Computed {
			last.added = true
		} else {
			*last = l
		}
	}
	return list[max(0, len(list)-mostTold):]
}

// joins reports whether a link is told with the one before it: both are of one line, which only computes and stores the value.
func (x *teller) joins(before, l *toldLink) bool {
	moves := func(k provenance.LinkKind) bool {
		return k == provenance.Stored || k == provenance.Computed || k == provenance.Offset
	}
	return moves(before.Kind) && moves(l.Kind) && !before.several && !before.added && x.sameLine(before.PC, l.PC)
}

// besideStory tells which code stored the bytes directly next to memory that nothing was stored to: the store may be missing there.
func (x *teller) besideStory(w *provenance.Way) (steps []evidence.CauseStep) {
	for _, pc := range w.Beside {
		if s := x.site(pc); s != nil {
			steps = append(steps, x.step(siteText(s)+" stored the bytes directly next to it", s))
		}
	}
	return steps
}

// sizeStory tells where the size of the object lost a part, if that is why the access was outside of it.
func (x *teller) sizeStory(w *provenance.Way) []evidence.CauseStep {
	z := w.Narrowed
	if z == nil || x.site(z.PC) == nil {
		return nil
	}
	return []evidence.CauseStep{x.step(fmt.Sprintf("%s kept %s of %d, the size of the object or a part of it: %d. With the whole size it would have the bytes that were accessed",
		siteText(x.site(z.PC)), wording.Count(uint64(z.Bytes), "byte"), z.Whole, z.Kept), x.site(z.PC))}
}

// offsetStory is the story of an offset, with where it began.
func (x *teller) offsetStory(w *provenance.Way) []evidence.CauseStep {
	story := x.story(w)
	s, n := x.site(w.PC), len(w.Links)
	if s == nil || n > 0 && w.Links[n-1].PC == w.PC { // told already
		return story
	}
	text := ""
	switch v, known := constantOf(w); {
	case known:
		text = " made " + valueText(v) + " of a constant"
	case w.End == provenance.Constant:
		text = " has it as a constant"
	case w.End == provenance.Undecided && w.Call != "":
		text = " got it from " + libraryName(w.Call)
	case w.End == provenance.Undecided:
		text = " made it of several values"
	default:
		return story
	}
	return append([]evidence.CauseStep{x.step(siteText(s)+text, s)}, story...)
}

// step is a sentence about a place, with its source.
func (x *teller) step(text string, s *evidence.Site) evidence.CauseStep {
	if x.source != nil {
		if line, ok := x.source(s); ok {
			text += ": " + strings.TrimSpace(line)
		}
	}
	return evidence.CauseStep{Text: text, Site: s, Proof: evidence.Replayed}
}

// mostTold bounds the links that a story has.
const mostTold = 8

// numberText is the value of a link, with a space before it, or "it" if it is not known.
func (l *toldLink) numberText() string {
	if !l.Known {
		return " it"
	}
	return " " + valueText(l.Value)
}

func (x *teller) linkText(l *toldLink) string {
	s, value := siteText(x.site(l.PC)), l.numberText()
	switch l.Kind {
	case provenance.Offset:
		return s + " added an offset to an address that was good"
	case provenance.Passed:
		return fmt.Sprintf("%s passed%s as an argument", s, value)
	case provenance.Bound:
		return fmt.Sprintf("%s counts up to%s", s, value)
	case provenance.Again:
		return s + " accessed memory outside of the same object"
	case provenance.Computed:
		text := s + " computed another value of it"
		switch {
		case l.several:
			text = s + " computed" + value + " of several values"
		case l.Known:
			text = s + " computed" + value + " of it"
		}
		if l.added {
			text += ", and added that to an address that was good"
		}
		return text
	}
	if l.Times > 1 {
		return fmt.Sprintf("%s stored%s, the last of %d times", s, value, l.Times)
	}
	return s + " stored" + value
}
