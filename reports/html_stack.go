package reports

import (
	"fmt"
	"strings"

	"diagnose/evidence"
)

// htmlStack is a stack that folds. Open says that it is shown at first.
type htmlStack struct {
	Title htmlLine
	Open  bool
	// Inner are frames before the program's own code, folded.
	Inner  []htmlFrame
	Frames []htmlFrame
	// Rest are the outer frames of a long stack, folded once more.
	Rest []htmlFrame
	Note htmlLine
}

// htmlFrame is a frame with its variables, or, without a Line, a note, under which
// frames may be folded.
type htmlFrame struct {
	Line      htmlLine
	Variables []htmlLine
	Note      htmlLine
	Folded    []htmlFrame
	site      evidence.Site
}

// framesShown is how many frames of a stack are seen when it is opened.
const framesShown = 24

func htmlStackOf(title line, s evidence.Stack, open bool) *htmlStack {
	x := &htmlStack{Title: htmlLineOf(title), Open: open}
	for i, f := range s.Frames {
		if s.Omitted > 0 && i == s.OmittedAt {
			x.Frames = append(x.Frames, htmlFrame{Note: htmlLineOf(say(caveat, fmt.Sprintf("... %d frames left out ...", s.Omitted)))})
		}
		if inside := insideOurs(s.Frames[i:]); inside != "" {
			if i == 0 || insideOurs(s.Frames[i-1:]) != inside || s.Omitted > 0 && i == s.OmittedAt {
				x.Frames = append(x.Frames, htmlFrame{Note: htmlLineOf(say(faint, "... "+inside+" ..."))})
			}
			continue
		}
		frame := htmlFrame{Line: htmlLineOf(frameLine(f)), site: f.Site}
		for _, l := range variableLines(f) {
			frame.Variables = append(frame.Variables, htmlLineOf(l))
		}
		x.Frames = append(x.Frames, frame)
	}
	x.Frames = foldLibraries(x.Frames)
	if len(x.Frames) > framesShown+4 { // a few more need no fold of their own
		x.Frames, x.Rest = x.Frames[:framesShown], x.Frames[framesShown:]
	}
	if s.Stopped != "" {
		x.Note = htmlLineOf(say(caveat, "the stack ends here: "+s.Stopped))
	}
	return x
}

// foldLibraries folds neighbouring frames of one language's library, such as the functions of a
// container and its iterators. The frame that called the outermost of them says what the program
// did.
func foldLibraries(frames []htmlFrame) []htmlFrame {
	var list []htmlFrame
	for i := 0; i < len(frames); {
		n := 1
		library := languageLibrary(&frames[i])
		for library != "" && i+n < len(frames) && languageLibrary(&frames[i+n]) == library {
			n++
		}
		if library == "" || n == 1 {
			list = append(list, frames[i:i+n]...)
		} else {
			list = append(list, htmlFrame{Note: htmlLineOf(say(faint, fmt.Sprintf("%d frames of %s", n, library))), Folded: frames[i : i+n]})
		}
		i += n
	}
	return list
}

// languageLibrary names the library of a frame by the paths that compilers give to its sources, or
// else by its namespaces; empty for the program's frames.
func languageLibrary(f *htmlFrame) string {
	if len(f.Line) == 0 {
		return ""
	}
	file, function := f.site.File, evidence.ShortName(f.site.Function)
	switch {
	case strings.Contains(file, "/include/c++/"):
		return "the C++ library"
	case strings.HasPrefix(file, "/rustc/"), strings.Contains(file, "/rustlib/src/rust/library/"):
		return "Rust's library"
	case file != "":
		return ""
	case strings.HasPrefix(function, "std::__"), strings.HasPrefix(function, "__gnu_cxx::"):
		return "the C++ library"
	}
	return ""
}

// foldInner folds the frames that the program's own code at that place called before it failed,
// such as those from free to abort.
func (x *htmlStack) foldInner(own *evidence.Site) {
	const few = 2
	for i := range x.Frames {
		if own != nil && x.Frames[i].site == *own && i > few {
			x.Inner, x.Frames = x.Frames[:i], x.Frames[i:]
			return
		}
	}
}

func htmlStacks(c *evidence.Case) []*htmlSection {
	var list []*htmlSection
	if len(c.Stacks) > 0 {
		s := &htmlSection{ID: "stacks", Title: "Stacks"}
		for _, g := range c.Stacks {
			x := htmlStackOf(groupLine(g), g.Stack, g.Failing)
			if g.Failing {
				x.foldInner(c.Failure.Site)
			}
			s.Nodes = append(s.Nodes, htmlNode{Stack: x})
			if lines := pythonLines(c, &g); lines != nil {
				s.Nodes = append(s.Nodes, htmlNodes([]block{lines})...)
			}
		}
		list = append(list, s)
	}
	if len(c.Goroutines) > 0 {
		s := &htmlSection{ID: "goroutines", Title: "Goroutines"}
		for _, g := range c.Goroutines {
			title := goroutines([]evidence.Goroutine{g})[1].(verbatim)[0]
			s.Nodes = append(s.Nodes, htmlNode{Stack: htmlStackOf(title, g.Stack, g.Failing)})
		}
		list = append(list, s)
	}
	return list
}

// htmlCalls are the stacks of a finding, folded.
func htmlCalls(f *evidence.Finding) []htmlNode {
	var list []htmlNode
	for _, x := range findingCalls(f) {
		title := say(strong, x.what)
		if x.call.Thread != nil {
			title = title.and(plain, " by ").and(strong, x.call.Thread.Label())
		}
		if len(x.call.Stack.Frames) == 0 {
			list = append(list, htmlNode{Text: htmlLineOf(title.and(caveat, x.without))})
			continue
		}
		if s := x.call.Site; s != nil {
			title = append(title.and(plain, " in "), siteLine(*s)...)
		}
		list = append(list, htmlNode{Stack: htmlStackOf(title, x.call.Stack, false)})
	}
	return list
}

// findingCall is a call in a finding.
type findingCall struct {
	what string
	call *evidence.HeapCall
	// without explains a missing stack.
	without string
}

// findingCalls returns the calls that the other formats list (calls), in their order.
func findingCalls(f *evidence.Finding) []findingCall {
	const unknown = "; its stack is not known"
	var list []findingCall
	add := func(what, without string, c *evidence.HeapCall) {
		if c != nil {
			list = append(list, findingCall{what, c, without})
		}
	}
	switch what := callTitles[f.Kind]; {
	case what != "":
		add(what, unknown, f.Call)
	case f.Call != nil && len(f.Call.Stack.Frames) == 0: // a check at exit belongs to no call
		if f.Call.Thread != nil {
			add("found", "", f.Call)
		}
	default:
		add("found in a call", unknown, f.Call)
	}
	if f.Object != nil {
		add("freed", unknown, f.Object.Freed)
		add("allocated", unknown, f.Object.Allocated)
	}
	if f.Beyond != nil {
		add("the object beyond was freed", unknown, f.Beyond.Freed)
		add("the object beyond was allocated", unknown, f.Beyond.Allocated)
	}
	return list
}
