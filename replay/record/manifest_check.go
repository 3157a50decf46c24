package record

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// Check returns an error if the manifest is invalid.
func (m *Manifest) Check() error {
	for _, check := range []func() error{m.checkProgram, m.checkStart, m.checkOutcome, m.checkLinks} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) checkProgram() error {
	p := &m.Program
	if p.Path == "" || p.Path[0] != '/' {
		return &ManifestError{"program.path", "is not absolute"}
	}
	texts := append([]Text{p.Path, p.Directory, m.Agent.Path}, p.Args...)
	for _, t := range append(texts, p.Environ...) {
		if strings.IndexByte(string(t), 0) >= 0 {
			return &ManifestError{"program", "has a NUL in a text"}
		}
	}
	if m.PID <= 0 {
		return &ManifestError{"pid", fmt.Sprintf("is %d", m.PID)}
	}
	return nil
}

// checkStart: a manifest that was written before the engine started has no mappings yet, and no
// random bytes.
func (m *Manifest) checkStart() error {
	if b, err := hex.DecodeString(m.Start.Random); err != nil || len(b) != 16 && len(b) != 0 {
		return &ManifestError{"start.random", "is not 16 bytes in hexadecimal"}
	}
	var end uint64
	for i, x := range m.Start.Mappings {
		if uint64(x.Start) < end || x.End <= x.Start {
			return &ManifestError{fmt.Sprintf("start.mappings[%d]", i), "is empty or out of order"}
		}
		end = uint64(x.End)
	}
	return nil
}

func (m *Manifest) checkOutcome() error {
	if err := m.Outcome.check("outcome"); err != nil {
		return err
	}
	if m.Outcome.Cut != nil {
		if err := m.Outcome.Cut.check("outcome.cut"); err != nil {
			return err
		}
	}
	for i := range m.Refused {
		if err := m.Refused[i].check(fmt.Sprintf("refused[%d]", i)); err != nil {
			return err
		}
	}
	if n := len(m.Unrecorded); n > MostUnrecorded {
		return &ManifestError{"unrecorded", fmt.Sprintf("has %d processes, more than the %d that a recorder writes", n, MostUnrecorded)}
	}
	for i := range m.Unrecorded {
		if err := m.Unrecorded[i].Outcome.check(fmt.Sprintf("unrecorded[%d].outcome", i)); err != nil {
			return err
		}
	}
	return nil
}

func (o *Outcome) check(field string) error {
	bad := ""
	switch o.Kind {
	case OutcomeSignal:
		if o.Signal < 1 || o.Signal > 64 {
			bad = fmt.Sprintf("has signal %d", o.Signal)
		}
	case OutcomeExit:
		if o.Status == 0 {
			bad = "is exit with status 0"
		}
	case OutcomePassed:
		if o.Status != 0 || o.Signal != 0 {
			bad = "is passed with a status or a signal"
		}
	case OutcomeRunning, OutcomeExec, OutcomeCut:
	default:
		bad = fmt.Sprintf("has the kind %q", o.Kind)
	}
	if d := o.Declared; bad == "" && d != nil {
		bad = d.wrong()
	}
	if bad != "" {
		return &ManifestError{field, bad}
	}
	return nil
}

func (m *Manifest) checkLinks() error {
	seen := map[string]bool{}
	for i, c := range m.Children {
		field := fmt.Sprintf("children[%d].path", i)
		if !insidePath(c.Path) || path.Dir(c.Path) != ChildrenName {
			return &ManifestError{field, fmt.Sprintf("is %q, which is no directory in %s", c.Path, ChildrenName)}
		}
		if seen[c.Path] {
			return &ManifestError{field, fmt.Sprintf("is %q a second time", c.Path)}
		}
		seen[c.Path] = true
	}
	for i, o := range m.Portable {
		if !insidePath(o.Stored) || !strings.HasPrefix(o.Stored, ObjectsName+"/") {
			return &ManifestError{fmt.Sprintf("portable[%d].stored", i), fmt.Sprintf("is %q, which is no file in %s", o.Stored, ObjectsName)}
		}
	}
	return nil
}

// insidePath reports whether a path of a manifest stays in its directory, as far as names tell.
// openInside checks symbolic links.
func insidePath(p string) bool {
	return p != "" && p == path.Clean(p) && p[0] != '/' && p != "." && p != ".." && !strings.HasPrefix(p, "../") &&
		strings.IndexByte(p, 0) < 0
}

// mostUnrecorded is the maximum length of the list in a manifest.
const MostUnrecorded = 1000

// mostRefused is the maximum length of a manifest's list. Each call is in it once.
const MostRefused = 64
