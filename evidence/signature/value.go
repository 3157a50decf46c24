package signature

import (
	"regexp"
	"slices"
	"strings"

	"diagnose/evidence"
)

// valueLines are what a bad value is known by besides its kind. Where it was returned
// or handed over, the line that is told differs by how a compiler was called: it may
// have put a function's code into its caller's, or have left nothing of a
// "return NULL;" but the loop in front of it.
func valueLines(c *evidence.Case, cause *evidence.Cause, site *evidence.Site) []string {
	if cause.Kind != evidence.CauseBadValue || len(cause.Story) == 0 {
		return []string{"at " + place(c, site)}
	}
	first := &cause.Story[0]
	switch {
	case first.Access != nil || first.Site == nil:
	case first.Proof == evidence.Replayed && returned(c, cause):
		return append([]string{"returned by " + functionName(first.Site.Function)}, receiver(c, cause))
	case first.Proof == evidence.FromCore && len(cause.Story) > 1:
		site = handedOver(c, site, cause.Story[1].Access)
	case first.Proof == evidence.Inferred:
		// The way back broke off, perhaps where values of many origins come by.
		return []string{"at " + place(c, site), usedIn(c)}
	}
	return []string{"at " + place(c, site)}
}

// returned reports whether the value came out of the function that the story begins in,
// which is known by that it was stored, or failed, elsewhere. Which of the function's
// lines is told then says nothing, unless it returns something else than nothing.
func returned(c *evidence.Case, cause *evidence.Cause) bool {
	site := cause.Story[0].Site
	if site.Function == "" || returnsSomething(statement(sourceText(c, site))) {
		return false
	}
	for i := range cause.Story {
		if a := cause.Story[i].Access; a != nil && a.Site != nil {
			return a.Site.Function != site.Function
		}
	}
	return !slices.ContainsFunc(ownFrames(c), func(f evidence.Frame) bool { return f.Site.Function == site.Function })
}

var (
	returns = regexp.MustCompile(`\breturn\b`)
	nothing = regexp.MustCompile(`\breturn\s*\(?\s*(?:\([^()]*\)\s*)?(?:NULL|nullptr|0[xX]?0*[uUlL]*|false|None|\{\s*\}|std::nullopt|(?:std|core)::ptr::null(?:_mut)?\(\))?\s*\)?\s*;`)
)

func returnsSomething(text string) bool {
	return returns.MatchString(text) && !nothing.MatchString(text)
}

// receiver is the place that received a returned value: the first store outside of the
// thread's stack, which compilers use or not as they like, or else the function
// that failed with it.
func receiver(c *evidence.Case, cause *evidence.Cause) string {
	for i := range cause.Story {
		if a := cause.Story[i].Access; a != nil && a.Site != nil && !onStack(a) {
			return "at " + place(c, a.Site)
		}
	}
	return usedIn(c)
}

// usedIn is the function that failed.
func usedIn(c *evidence.Case) string {
	if own := ownFrames(c); len(own) > 0 {
		return "used in " + oneLine(frameName(&own[0].Site))
	}
	return "used somewhere"
}

// deepestFrame bounds how far below its frame's address a function's variables are.
const deepestFrame = 1 << 20

func onStack(a *evidence.SeenAccess) bool {
	frames := a.Stack.Frames
	if len(frames) == 0 {
		return false
	}
	inner, outer := frames[0].CFA, frames[0].CFA
	for _, f := range frames {
		outer = max(outer, f.CFA)
	}
	return a.Address < outer && a.Address+deepestFrame >= inner
}

// handedOver is the place that a constant comes from which the program is told to have
// stored: the line of the store, or if that has only the name of the stored value, and its
// function was inlined, the call's.
func handedOver(c *evidence.Case, site *evidence.Site, store *evidence.SeenAccess) *evidence.Site {
	if store == nil {
		return site
	}
	frames := store.Stack.Frames
	for i := 0; i+1 < len(frames) && frames[i].Kind == evidence.Inlined; i++ {
		if frames[i].Site.PC != site.PC || frames[i].Site.Function != site.Function || !storesName(statement(sourceText(c, site))) {
			break
		}
		site = &frames[i+1].Site
	}
	return site
}

var assigned = regexp.MustCompile(`[^=!<>]=\s*(?:\([\w\s*:]+\)\s*)?([A-Za-z_]\w*)\s*;?$`)

// storesName reports whether a statement assigns a named value that is no constant.
func storesName(text string) bool {
	m := assigned.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	constants := []string{"true", "false", "nullptr", "this", "None"}
	return strings.ToUpper(m[1]) != m[1] && !slices.Contains(constants, m[1])
}
