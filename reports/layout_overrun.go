package reports

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// overrunFacts are the lines on the array of a smashed stack.
func overrunFacts(o *evidence.StackOverrun) facts {
	if o == nil {
		return nil
	}
	var list facts
	for i := range o.Arrays {
		list = append(list, fact{"array", say(plain, arrayText(&o.Arrays[i])).and(faint, proofMark(o.Proof))})
	}
	list = append(list, fact{"overwritten", say(plain, wordText(o)).and(faint, proofMark(o.Proof))})
	if o.Contents.Hex != "" {
		list = append(list, fact{"contents", say(plain, contentsText(o))})
	}
	for i := range o.Writers {
		w := &o.Writers[i]
		name := "its address goes to"
		switch {
		case w.Writes && len(o.Writers) == 1:
			name = "likely written by"
		case w.Writes:
			name = "may be written by"
		}
		list = append(list, fact{name, say(plain, writerText(w)).and(faint, proofMark(o.Proof))})
	}
	for i := range o.Same {
		list = append(list, fact{"same bytes", say(plain, sameText(&o.Same[i]))})
	}
	return list
}

func contentsText(o *evidence.StackOverrun) string {
	length := uint64(o.End - o.Start)
	text := fmt.Sprintf("%s, %s at %v: ", runNames[o.Run], wording.Count(length, "byte"), o.Start)
	if o.Run == evidence.RunText {
		text += fmt.Sprintf("%q", o.Contents.Text)
	} else {
		text += bytesText(&o.Contents)
	}
	if uint64(len(o.Contents.Text)) < length {
		text += "..."
	}
	return text
}

func arrayText(a *evidence.FrameArray) string {
	text := fmt.Sprintf("%s (%s) of %s, %s at %v", a.Name, a.Type, evidence.ShortName(a.Function), wording.Count(a.Size, "byte"), a.Addr)
	if a.File != "" {
		text += fmt.Sprintf(", declared at %s:%d", a.File, a.Line)
	}
	return text + fmt.Sprintf("; %s after its end belong to its contents", wording.Count(a.Following, "byte"))
}

func wordText(o *evidence.StackOverrun) string {
	what := ""
	switch o.Word {
	case evidence.WordReturnAddress:
		what = "the return address"
	case evidence.WordGuard:
		what = "the stack guard"
	case evidence.WordSavedRegister:
		what = "the caller's " + o.Register
	}
	return fmt.Sprintf("%s of %s at %v", what, evidence.ShortName(o.Function), o.WordAddr)
}

// runNames are the kinds of runs in words.
var runNames = map[evidence.RunKind]string{
	evidence.RunText:        "one text",
	evidence.RunPattern:     "one repeated pattern",
	evidence.RunProgression: "numbers with equal differences",
	evidence.RunNumbers:     "small numbers",
	evidence.RunCopy:        "the bytes of another place",
}

func writerText(w *evidence.FrameWriter) string {
	where := ""
	if w.Site.File != "" {
		where = " at " + position(w.Site)
	}
	switch {
	case !w.Call:
		return "a store of " + functionOf(w.Site) + where
	case w.Callee == "":
		return "a function called by a pointer" + where
	}
	return fmt.Sprintf("%s, called by %s%s with the array as its %s argument", evidence.ShortName(w.Callee), functionOf(w.Site), where, wording.Ordinal(w.Argument+1))
}

func sameText(s *evidence.SameBytes) string {
	text := fmt.Sprintf("%s at %v", copyPlace(s), s.Addr)
	if s.Offset > 0 {
		return fmt.Sprintf("%s, the %s from offset %d on", text, wording.Count(s.Size, "byte"), s.Offset)
	}
	return text + ", " + wording.Count(s.Size, "byte")
}

func copyPlace(s *evidence.SameBytes) string {
	switch s.Place {
	case evidence.CopyArgument, evidence.CopyVariable:
		return s.Name
	case evidence.CopyEnvironment:
		return "the variable " + s.Name + " of the environment"
	case evidence.CopyGlobal, evidence.CopyConstant:
		if s.Name == "" {
			return "a " + string(s.Place)
		}
		return "the " + string(s.Place) + " " + s.Name
	case evidence.CopyHeap, evidence.CopyStack:
		return "the " + string(s.Place)
	}
	return "memory"
}
