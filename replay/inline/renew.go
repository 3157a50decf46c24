package inline

import (
	"cmp"
	"slices"

	"diagnose/replay/tracee"
)

// unloaded is a window, or a site with an int3, whose object is not loaded now.
type unloaded struct {
	window *Window // nil: it is the site's int3
	site   *Site   // of a window its first
	text   []tracee.Replacement
}

// Renew follows the objects: the code of one that was unloaded is forgotten, and put back where the same file is loaded at the same
// address again. Another object there gets nothing of it.
func (in *Inlined) Renew() error {
	if len(in.sites) == 0 && len(in.unloaded) == 0 {
		return nil
	}
	maps, err := tracee.ReadMaps(in.process.PID)
	if err != nil {
		return err
	}
	if err := in.forget(maps); err != nil {
		return err
	}
	return in.putBack(maps)
}

// forget takes out the code in objects that are not loaded any more, and renews the rest.
func (in *Inlined) forget(maps tracee.Mappings) error {
	var gone []unloaded
	for _, w := range in.windows {
		x := unloaded{window: w, site: w.sites[0]}
		loaded, err := in.renew(maps, x)
		if err != nil {
			return err
		}
		if !loaded {
			gone = append(gone, x)
		}
	}
	for _, s := range in.sites {
		if s.window != nil {
			continue
		}
		loaded, err := in.renew(maps, unloaded{site: s})
		if err != nil {
			return err
		}
		if !loaded {
			gone = append(gone, unloaded{site: s})
		}
	}
	for i := range gone {
		in.takeOut(&gone[i])
	}
	return nil
}

// renew puts code back that went with an object, if that object is loaded. loaded is false if it is not. Memory without a file has
// no name that tells whether it is the same, so code that is not there any more is not put back.
func (in *Inlined) renew(maps tracee.Mappings, x unloaded) (loaded bool, err error) {
	if !loadedAt(maps, x.site) {
		return false, nil
	}
	for _, at := range x.places() {
		if x.site.object == (tracee.Object{}) {
			if placed, err := in.process.Memory.Placed(at); err != nil || !placed {
				return false, err
			}
		} else if err := in.process.Memory.Renew(at); err != nil {
			return false, err
		}
	}
	return true, nil
}

func loadedAt(maps tracee.Mappings, s *Site) bool {
	m := maps.Containing(s.Inst.PC)
	return m != nil && m.Object() == s.object
}

// places are the addresses where the text is replaced.
func (x *unloaded) places() []uint64 {
	if x.window == nil {
		return []uint64{x.site.Inst.PC}
	}
	var list []uint64
	for _, j := range x.window.jumps {
		list = append(list, j.Addr)
	}
	return list
}

// sites are those of the window, or the one with an int3.
func (x *unloaded) sites() []*Site {
	if x.window == nil {
		return []*Site{x.site}
	}
	return x.window.sites
}

func (in *Inlined) takeOut(x *unloaded) {
	for _, at := range x.places() {
		if r, found := in.process.Memory.Forget(at); found {
			x.text = append(x.text, r)
		}
	}
	for _, s := range x.sites() {
		delete(in.sites, s.Inst.PC)
	}
	if x.window == nil {
		delete(in.Traps, x.site.Inst.PC+1)
	} else {
		in.windows = slices.DeleteFunc(in.windows, func(w *Window) bool { return w == x.window })
	}
	if x.site.object != (tracee.Object{}) {
		in.unloaded = append(in.unloaded, *x)
	}
}

// putBack puts the code of objects that are loaded again into their text.
func (in *Inlined) putBack(maps tracee.Mappings) error {
	var rest []unloaded
	for i := range in.unloaded {
		x := &in.unloaded[i]
		same := loadedAt(maps, x.site)
		for _, r := range x.text {
			if !same {
				break
			}
			var err error
			if same, err = in.process.Memory.Original(r); err != nil {
				return err
			}
		}
		if !same {
			rest = append(rest, *x)
			continue
		}
		for _, r := range x.text {
			if err := in.process.Memory.Replace(r.Addr, r.Code); err != nil {
				return err
			}
		}
		for _, s := range x.sites() {
			in.sites[s.Inst.PC] = s
		}
		if x.window == nil {
			in.Traps[x.site.Inst.PC+1] = x.site
		} else {
			in.windows = append(in.windows, x.window)
		}
	}
	in.unloaded = rest
	slices.SortFunc(in.windows, func(a, b *Window) int { return cmp.Compare(a.Start, b.Start) })
	return nil
}
