package debuginfo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// openSplit returns a skeleton's unit in its .dwo file; nil for other units.
func (u *unit) openSplit() (*unit, error) {
	if u.kind != utSkeleton || u.src.split {
		return nil, nil
	}
	name, err := u.root.dwoName.str()
	if err != nil {
		return nil, err
	}
	i := u.src.info
	if i.finder == nil {
		return nil, u.src.unsupported("its split DWARF file " + name + " is needed and was not looked for")
	}
	s, err := i.splitSource(u, name)
	if err != nil {
		return nil, err
	}
	units, err := s.units()
	if err != nil {
		return nil, err
	}
	for _, candidate := range units {
		if candidate.signature != u.signature || candidate.kind == utType || candidate.kind == utSplitType {
			continue
		}
		if candidate.broken != nil {
			return nil, candidate.broken
		}
		return candidate, nil
	}
	return nil, u.src.unsupported(fmt.Sprintf("%s has no unit with the id %#x", s.file.Path(), u.signature))
}

// splitSource opens a .dwo file, or else the package. Its units all belong to one skeleton (DWARF
// 5 section F.2), so each skeleton has a source of its own.
func (i *Info) splitSource(skeleton *unit, name string) (*source, error) {
	file, err := i.finder.Split(skeleton.src.file, skeleton.describe().CompDir, name, skeleton.signature)
	if errors.Is(err, fs.ErrNotExist) {
		if s, packErr := i.packageSource(skeleton); s != nil || packErr != nil {
			return s, packErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("split DWARF %s: %w", path.Base(name), err)
	}
	if file == nil {
		return nil, skeleton.src.unsupported("its split DWARF file " + name + " was not found")
	}
	i.own(file)
	s := newSource(i, file, true)
	if file.Section(".debug_info.dwo") == nil {
		return nil, s.bad(secInfo, 0, "no such section")
	}
	units, err := s.units()
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		u.skeleton = skeleton
	}
	return s, nil
}
