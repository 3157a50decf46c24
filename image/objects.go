package image

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/wording"
)

// openObjects opens each module's file, several at a time: for a program with
// hundreds of libraries this is most of the time of opening it.
func (l *loader) openObjects() {
	type result struct {
		file   *loadedFile
		limits []evidence.Limit
		err    error
	}
	results := make([]result, len(l.modules))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, m := range l.modules {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			r := &results[i]
			r.file, r.limits, r.err = l.source.open(m, m == l.exe)
			<-slots
		}()
	}
	wait.Wait()
	var absent []*Module
	var reason error
	for i, r := range results {
		l.limits = append(l.limits, r.limits...)
		if r.file != nil {
			l.opened = append(l.opened, r.file)
			l.modules[i].Object, l.modules[i].File, l.modules[i].loaded = r.file.object, r.file.object.Path(), r.file
		} else if len(r.limits) == 0 {
			absent, reason = append(absent, l.modules[i]), r.err
		}
	}
	l.tellAbsent(absent, reason)
}

// tellAbsent adds one limit that names the objects without a file.
func (l *loader) tellAbsent(absent []*Module, reason error) {
	if len(absent) == 0 {
		return
	}
	const named = 5
	var first []string
	severe := false
	for i, m := range absent {
		severe = severe || m == l.exe
		if i < named {
			first = append(first, m.name())
		}
	}
	names := strings.Join(first, ", ")
	if more := len(absent) - named; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	text := fmt.Sprintf("no file was found for %s, so there are no names for addresses in it", names)
	if len(absent) > 1 {
		text = fmt.Sprintf("no files were found for %d objects, so there are no names for addresses in them: %s", len(absent), names)
	} else if reason != nil {
		text += ": " + wording.Name(reason.Error())
	}
	l.limits = append(l.limits, evidence.Limit{Code: evidence.LimitMissingFiles, Subject: absent[0].Path, Count: uint64(len(absent)), Names: first, Reason: text, Severe: severe}.Worded())
}

// open returns the first candidate that is the file the process had mapped. If
// there is none, limits describe the files that do not match, and err says why
// no other was found.
func (s *fileSource) open(m *Module, exe bool) (file *loadedFile, limits []evidence.Limit, err error) {
	var mismatch []evidence.Limit
	tried := map[string]bool{}
	for _, c := range s.candidates(m, exe) {
		if tried[c.path] {
			continue
		}
		tried[c.path] = true
		file, openErr := s.openCandidate(c)
		if openErr != nil {
			if err == nil {
				err = openErr
			}
			continue
		}
		reason, doubt := m.compare(file.object)
		if reason == "" {
			return file, doubt, nil
		}
		file.release()
		mismatch = append(mismatch, evidence.Limit{Code: evidence.LimitOtherFile, Subject: m.Path, Severe: true, Reason: reason}.Worded())
	}
	if len(mismatch) > 0 {
		return nil, mismatch[:1], nil
	}
	return nil, nil, err
}

// compare says why a file is not the one that the process had mapped, "" if it
// is; doubt says what could not be compared.
func (m *Module) compare(f *object.File) (reason string, doubt []evidence.Limit) {
	const off = "; its symbols and bytes are not used"
	id := f.BuildID()
	switch {
	case m.BuildID != "" && id == m.BuildID:
		return "", nil
	case m.BuildID != "" && id == "":
		return fmt.Sprintf("%s has no build-id, but the process ran %s with build-id %s%s", wording.Name(f.Path()), m.name(), m.BuildID, off), nil
	case m.BuildID != "":
		return fmt.Sprintf("%s has build-id %s, but the process ran %s with build-id %s%s", wording.Name(f.Path()), id, m.name(), m.BuildID, off), nil
	case m.image != nil && !m.image.sameSegments(f):
		return fmt.Sprintf("%s (build-id %s) has other segments than the %s that the process ran (build-id not in memory)%s",
			wording.Name(f.Path()), orNone(id), m.name(), off), nil
	case m.image != nil && id == "":
		return "", nil
	}
	return "", []evidence.Limit{evidence.Limit{Code: evidence.LimitUncheckedFile, Subject: m.Path, Reason: fmt.Sprintf(
		"the process's memory lacks the build-id of %s; %s is taken for it unchecked", m.name(), wording.Name(f.Path()))}.Worded()}
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}
