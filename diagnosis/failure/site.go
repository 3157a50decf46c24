package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// site is the innermost place in the program's own code, or else the innermost of all. A frame
// whose pc is in data or in no mapping is the failure, not its site.
func (k *callStack) site() *evidence.Site {
	for i := range k.frames {
		m := k.MappingAt(k.frames[i].PC())
		if m != nil && m.Executable() {
			return programSite(sitesOfFrames(k.frames[i:], k))
		}
	}
	return programSite(k.sites())
}

// ofProgram reports whether a place is in the program's own code.
func ofProgram(s *evidence.Site) bool { return s.Module != "" && !image.LibraryCode(s) }

func programSite(sites []evidence.Site) *evidence.Site {
	for i := range sites {
		if ofProgram(&sites[i]) {
			return &sites[i]
		}
	}
	if len(sites) == 0 {
		return nil
	}
	return &sites[0]
}

// siteFrames bounds the search for the program's own code.
const siteFrames = 256

// sites are the places on the stack, innermost first, inlined ones and tail calls included.
func (k *callStack) sites() []evidence.Site { return sitesOfFrames(k.frames, k) }

func sitesOfFrames(frames []unwind.Frame, t target) []evidence.Site {
	var out []evidence.Site
	for i := range min(len(frames), siteFrames) {
		fr := &frames[i]
		if fr.Kind == evidence.SignalFrame {
			continue
		}
		if len(fr.Calls) == 0 {
			out = append(out, bareSite(t, fr))
		}
		for j := range fr.Calls {
			out = append(out, fr.Calls[j].Site)
		}
		for _, tail := range fr.TailCalls {
			for j := range tail.Calls {
				out = append(out, tail.Calls[j].Site)
			}
		}
	}
	return out
}
