package privateroot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// Need is a file that a replay finds at the path at which it was recorded.
type Need struct {
	// Path is absolute and clean, with the symbolic links of the recorded machine resolved.
	Path string
	// BuildID is that of the recorded file, in hexadecimal; empty: it has none, or it is no object.
	BuildID string
	// Size in bytes and MTimeNS, in nanoseconds since 1970, are of the recorded file; 0: not known.
	Size, MTimeNS int64
	// Stored is the file that a portable recording has of it, and SHA256 its digest; empty: none.
	Stored, SHA256 string
}

// plan is what a root needs for its recordings.
type plan struct {
	needs map[string]*Need
	// directories are the working directories of the recorded programs, names other names of
	// programs with what they lead to, scripts the first lines of scripts.
	directories    []string
	names, scripts map[string]string
	// code are the files that code was mapped from, linkers the dynamic linkers.
	code, linkers map[string]bool
}

// maxRecordings bounds the processes of one recording.
const maxRecordings = 10_000

func planFor(ctx context.Context, recordings []string) (*plan, error) {
	p := &plan{needs: map[string]*Need{}, names: map[string]string{}, scripts: map[string]string{}, code: map[string]bool{}, linkers: map[string]bool{}}
	for count := 0; len(recordings) > 0; count++ {
		if count == maxRecordings {
			return nil, fmt.Errorf("private root: more than %d recorded processes", maxRecordings)
		}
		dir := recordings[0]
		recordings = recordings[1:]
		children, err := p.addRecording(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("private root: %s: %w", dir, err)
		}
		recordings = append(recordings, children...)
	}
	return p, nil
}

// addRecording adds what one recorded process needs, and returns the recordings of its children.
func (p *plan) addRecording(ctx context.Context, dir string) (children []string, err error) {
	r, err := record.OpenContext(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m := r.Manifest
	for i := range m.Start.Mappings {
		x := &m.Start.Mappings[i]
		n := Need{Path: string(x.Path), BuildID: x.BuildID}
		if x.File != nil {
			n.Size, n.MTimeNS = x.File.Size, x.File.MTimeNS
		}
		if err := p.add(n); err != nil {
			return nil, err
		}
		if x.Permissions[2] == 'x' {
			p.code[n.Path] = true
		}
	}
	p.linkers[string(m.Start.Linker())] = true
	if err := p.addMapped(r); err != nil {
		return nil, err
	}
	for _, o := range m.Portable {
		n := Need{Path: string(o.Path), Stored: filepath.Join(dir, filepath.FromSlash(o.Stored)), SHA256: o.SHA256}
		if !filepath.IsLocal(filepath.FromSlash(o.Stored)) {
			return nil, fmt.Errorf("the object %q is outside of the recording", o.Stored)
		}
		if err := p.add(n); err != nil {
			return nil, err
		}
	}
	if err := p.addProgram(&m.Program); err != nil {
		return nil, err
	}
	for i := range m.Children {
		if err := r.CheckChild(m.Children[i].Path); err != nil {
			return nil, err
		}
		children = append(children, filepath.Join(dir, filepath.FromSlash(m.Children[i].Path)))
	}
	return children, nil
}

// addMapped adds the files that the program mapped later and whose bytes are not in the recording.
func (p *plan) addMapped(r *record.Recording) error {
	for _, thread := range r.Log.Threads() {
		for e, err := range r.Log.Events(thread) {
			if err != nil {
				break // the rest is cut off, and not replayed
			}
			for i := range e.Payloads {
				m, ok := e.Payloads[i].Mapped()
				if !ok || m.Data != eventlog.NotKept {
					continue
				}
				if err := p.add(Need{Path: m.Path, Size: int64(m.Size), MTimeNS: int64(m.MTimeNS)}); err != nil {
					return err
				}
				p.code[m.Path] = true
			}
		}
	}
	return nil
}

// addProgram adds the directory in which a program is executed, and the name by which.
func (p *plan) addProgram(program *record.Program) error {
	directory := string(program.Directory)
	if !inRoot(directory) && directory != "/" {
		return fmt.Errorf("the working directory %q is no path of a private root", directory)
	}
	p.directories = append(p.directories, directory)
	executed := string(program.Executed)
	if executed == "" || executed == string(program.Path) {
		return nil
	}
	if !path.IsAbs(executed) {
		executed = path.Join(directory, executed)
	}
	if executed = path.Clean(executed); !inRoot(executed) {
		return fmt.Errorf("the program's name %q is no path of a private root", executed)
	}
	if program.Script {
		p.scripts[executed] = firstLine(program)
	} else {
		p.names[executed] = string(program.Path)
	}
	return nil
}

// firstLine returns the first line of a script, from the arguments that its interpreter got
// (execve(2), "Interpreter scripts"): its name, at most one argument, and the script's name. The
// kernel reads no more; what the interpreter read of the script is in the recording.
func firstLine(program *record.Program) string {
	line := "#!"
	for i, a := range program.Args {
		if i > 1 || a == program.Executed || strings.ContainsAny(string(a), "\n\x00") {
			break
		}
		line += string(a) + " "
	}
	return strings.TrimSuffix(line, " ") + "\n"
}

// errConflict says that two recordings need different files at one path.
var errConflict = errors.New("the recordings need different files there")

// add adds the knowledge of a file. Names that are not of files, such as [vdso], are left out.
func (p *plan) add(n Need) error {
	if !strings.HasPrefix(n.Path, "/") || strings.HasSuffix(n.Path, " (deleted)") {
		return nil
	}
	if !inRoot(n.Path) {
		return nil // a device or a file of the kernel
	}
	old := p.needs[n.Path]
	if old == nil {
		p.needs[n.Path] = &n
		return nil
	}
	if old.BuildID != "" && n.BuildID != "" && old.BuildID != n.BuildID || old.SHA256 != "" && n.SHA256 != "" && old.SHA256 != n.SHA256 {
		return fmt.Errorf("%s: %w", n.Path, errConflict)
	}
	if old.BuildID == "" {
		old.BuildID = n.BuildID
	}
	if old.Size == 0 {
		old.Size, old.MTimeNS = n.Size, n.MTimeNS
	}
	if old.SHA256 == "" {
		old.Stored, old.SHA256 = n.Stored, n.SHA256
	}
	return nil
}

// taken are the directories of a private root that are not made of recorded files.
var taken = []string{"/proc", "/dev", "/sys", inside}

// inRoot reports whether a recorded path may be in a private root: absolute, clean, not the root
// itself, and not in what each private root has of its own.
func inRoot(name string) bool {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsRune(name, 0) {
		return false
	}
	return !slices.ContainsFunc(taken, func(d string) bool { return name == d || strings.HasPrefix(name, d+"/") })
}
