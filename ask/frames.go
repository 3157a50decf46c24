package ask

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/expression"
	"diagnose/image/unwind"
	"diagnose/image/value"
)

// mostFrames bounds the frames in which an expression is looked for.
const mostFrames = 64

// setting is where an expression may be evaluated: a call on the stack, or no function at all.
type setting struct {
	place *expression.Place
	frame *value.Frame
	// site is the function; nil: there are only variables with static storage.
	site    *evidence.Site
	inlined bool
}

// framesOf returns the physical frames of a thread, innermost first.
func framesOf(p *image.Process, t *image.Thread) []*value.Frame {
	var list []*value.Frame
	unwind.New(p).Visit(p, &t.Registers, mostFrames, func(f *unwind.Frame) bool {
		frame := &value.Frame{Process: p, Thread: t, Module: p.ModuleAt(f.PC()), Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
		if n := len(list); n > 0 {
			list[n-1].CalledBy(frame)
		}
		list = append(list, frame)
		return true
	})
	return list
}

// settingsOf returns where an expression may be evaluated, the innermost call of the program's own code first.
func settingsOf(p *image.Process, t *image.Thread) []setting {
	var list []setting
	if t != nil {
		for _, frame := range framesOf(p, t) {
			if frame.Module == nil || image.RuntimeModule(frame.Module.Path) {
				continue
			}
			for level, call := range p.Symbolize(frame.Registers.PC(), frame.Lookup) {
				place, err := expression.NewPlace(p, frame.Lookup.Address(frame.Registers.PC()), level)
				if err == nil {
					list = append(list, setting{place: place, frame: frame, site: &call.Site, inlined: call.Inlined})
				}
			}
		}
	}
	if c, found := outside(p, t); found {
		list = append(list, c)
	}
	return list
}

// outside is the setting of no function. Names are those of the unit of main, or of any other one.
func outside(p *image.Process, t *image.Thread) (setting, bool) {
	for _, m := range p.Modules {
		info, err := m.Debug()
		if err != nil || info == nil || image.RuntimeModule(m.Path) {
			continue
		}
		entry := uint64(0)
		err = info.Functions(func(f *debuginfo.Function) bool {
			if f.Entry != 0 && (entry == 0 || f.Name == "main") {
				entry = f.Entry
			}
			return f.Name != "main"
		})
		if err != nil || entry == 0 {
			continue
		}
		place, err := expression.NewPlace(p, m.Addr(entry), 0)
		if err != nil {
			continue
		}
		place.Outside()
		return setting{place: place, frame: &value.Frame{Process: p, Thread: t, Module: m}}, true
	}
	return setting{}, false
}
