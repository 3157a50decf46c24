package corpus

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"diagnose/image/collected"
	"diagnose/internal/wording"
)

// LabelHost and LabelContainer are the labels of a collected core that name where it crashed.
const (
	LabelHost      = "host"
	LabelContainer = "container"
)

// collected copies a core that a collector kept, with the objects that were mapped: its diagnosis
// finds them next to the core.
func (s *stage) collected(name string, k *copier, e *Entry) error {
	from, err := os.OpenRoot(name)
	if err != nil {
		return &InputError{err}
	}
	defer from.Close()
	if err := s.core(path.Join(name, collected.CoreName), k, e); err != nil {
		return err
	}
	if err := k.one(from, s.root, collected.FactsName); err != nil {
		return err
	}
	switch _, err := from.Lstat(collected.ObjectsName); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return &InputError{err}
	default:
		if err := s.root.Mkdir(collected.ObjectsName, 0o700); err != nil {
			return err
		}
		if err := k.tree(from, s.root, collected.ObjectsName, 0); err != nil {
			return err
		}
	}
	if err := checkCollected(k.files); err != nil {
		return err
	}
	return describeCollected(s.dir, e)
}

// PackCollected returns a collected core that is in no corpus as a parcel. What Add refuses is refused.
func PackCollected(ctx context.Context, dir string, o PackOptions) (Parcel, error) {
	if err := checkLabels(o.Labels); err != nil {
		return Parcel{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Parcel{}, &InputError{err}
	}
	defer root.Close()
	core, err := root.OpenFile(coreName, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return Parcel{}, &InputError{err}
	}
	defer core.Close()
	if err := isCore(core); err != nil {
		return Parcel{}, err
	}
	s := &summer{ctx: ctx, root: root}
	if err := s.tree(".", 0); err != nil {
		return Parcel{}, err
	}
	if err := checkCollected(s.files); err != nil {
		return Parcel{}, err
	}
	p := packed{Entry: Entry{Kind: KindCore}, Files: s.files}
	if err := describeCollected(dir, &p.Entry); err != nil {
		return Parcel{}, err
	}
	p.Entry.AddedAt = p.Entry.FailedAt // a description does not depend on when it is made
	if p.Entry.Source, err = filepath.Abs(dir); err != nil {
		return Parcel{}, err
	}
	p.Likeness = p.Entry.likeness
	p.Entry.ID = identity(KindCore, p.Files) // which sorts them
	p.addLabels(o.Labels)
	return p.parcel(p.Entry.ID, dir)
}

// checkCollected refuses files that a collected core does not have.
func checkCollected(files []file) error {
	core := false
	for _, f := range files {
		core = core || f.Name == coreName
		if f.Name != coreName && f.Name != collected.FactsName && path.Dir(f.Name) != collected.ObjectsName {
			return inputf("%q is no file of a collected core", f.Name)
		}
	}
	if !core {
		return inputf("it has no core")
	}
	return nil
}

// describeCollected sets the fields of an entry from the facts that the collector noted.
func describeCollected(dir string, e *Entry) error {
	facts, err := collected.Read(dir)
	if err != nil {
		return &InputError{err}
	}
	signal := wording.Signal(facts.Signal)
	e.Program, e.BuildID, e.FailedAt = facts.Program, facts.BuildID, facts.Time
	e.Outcome, e.Ended = signal, strings.ReplaceAll(signal, " ", "-")
	e.likeness = strings.Join([]string{path.Base(e.Program), e.Ended, facts.Signature}, "\n")
	labels := map[string]string{}
	for key, value := range map[string]string{LabelHost: facts.Host, LabelContainer: facts.Container} {
		if one := map[string]string{key: value}; value != "" && checkLabels(one) == nil {
			maps.Copy(labels, one)
		}
	}
	maps.Copy(labels, e.Labels) // the user's replace them
	if len(labels) > 0 {
		e.Labels = labels
	}
	return nil
}
