package ending

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// fileWrites follows the descriptors of the file by which the run is declared to have failed. It knows
// names by their text: it follows neither links nor descriptors of directories.
type fileWrites struct {
	// name is the file as the rule has it, and offset that of the byte that differs from the expected
	// one; -1 if there is none.
	name   string
	offset int64
	// names are the absolute paths that the file had, for it may have been renamed to the last one.
	names     map[string]bool
	directory string
	open      map[int]*openFile // by descriptor
}

// openFile is an open file description: descriptors that dup made share it.
type openFile struct {
	position int64 // of the next write; -1 if it is not known
	append   bool
}

// declaredFile is the file of the rule of a recording; nil if the rule is about none.
func declaredFile(rec *record.Recording) (*fileWrites, error) {
	d := rec.Manifest.Outcome.Declared
	if d == nil || d.Rule != record.RuleFile {
		return nil, nil
	}
	f := &fileWrites{name: string(d.Path), offset: -1, names: map[string]bool{}, directory: string(rec.Manifest.Program.Directory), open: map[int]*openFile{}}
	if d.Expected != "" && !d.Missing {
		f.offset = d.Offset
	}
	f.names[f.absolute(f.name)] = true
	return f, f.findNames(rec.Log)
}

// findNames adds the names that the file was renamed from.
func (f *fileWrites) findNames(log *eventlog.Log) error {
	var renamed [][2]string
	start := f.directory
	for e, err := range log.Ordered() {
		if err != nil && eventlog.Damaged(err) {
			break
		}
		if err != nil {
			return err
		}
		if e.Kind != eventlog.KindSyscall || e.Result < 0 {
			continue
		}
		f.changeDirectory(e)
		if from, to := renaming(e); from >= 0 && e.Result == 0 {
			renamed = append(renamed, [2]string{f.given(e, from), f.given(e, to)})
		}
	}
	f.directory = start
	for _, r := range slices.Backward(renamed) {
		if r[0] != "" && f.names[r[1]] {
			f.names[r[0]] = true
		}
	}
	return nil
}

// renaming tells which arguments of a call are the old and the new path; -1 if it renames nothing.
func renaming(e *eventlog.Event) (from, to int) {
	switch e.Object {
	case unix.SYS_RENAME, unix.SYS_LINK:
		return 0, 1
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		return 1, 3
	}
	return -1, -1
}

func (f *fileWrites) absolute(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(f.directory, name)
	}
	return filepath.Clean(name)
}

// given is the path in an argument of a call as an absolute one; empty if it is not known.
func (f *fileWrites) given(e *eventlog.Event, argument int) string {
	if argument >= len(e.Args) {
		return ""
	}
	i := slices.IndexFunc(e.Payloads, func(p eventlog.Payload) bool {
		return p.Kind == eventlog.PayloadText && uint64(p.Addr) == e.Args[argument]
	})
	if i < 0 {
		return ""
	}
	name := string(e.Payloads[i].Data)
	ofDirectory := argument > 0 && e.Object != unix.SYS_RENAME && e.Object != unix.SYS_LINK
	if ofDirectory && !filepath.IsAbs(name) && int32(e.Args[argument-1]) != unix.AT_FDCWD {
		return ""
	}
	return f.absolute(name)
}

func (f *fileWrites) changeDirectory(e *eventlog.Event) {
	if e.Object == unix.SYS_CHDIR && e.Result == 0 {
		if to := f.given(e, 0); to != "" {
			f.directory = to
		}
	}
}

// follow notes what a call does to the descriptors of the file. If the call wrote to the file, wrote is
// true and at the offset of its first byte; -1 if it is not known.
func (f *fileWrites) follow(e *eventlog.Event) (at int64, wrote bool) {
	if f == nil || e.Kind != eventlog.KindSyscall || e.Result < 0 {
		return 0, false
	}
	f.changeDirectory(e)
	f.followDescriptors(e)
	if len(e.Args) == 0 {
		return 0, false
	}
	o := f.open[int(int32(e.Args[0]))]
	if o == nil || e.Result < 0 {
		return 0, false
	}
	switch e.Object {
	case unix.SYS_READ, unix.SYS_READV:
		o.advance(e.Result)
	case unix.SYS_LSEEK:
		o.position = e.Result
	case callWrite, callWritev:
		at = o.position
		o.advance(e.Result)
		return at, e.Result > 0
	case callPwrite, callPwritev:
		if len(e.Args) < 4 || o.append {
			return -1, e.Result > 0
		}
		return int64(e.Args[3]), e.Result > 0
	}
	return 0, false
}

func (o *openFile) advance(n int64) {
	if o.position >= 0 {
		o.position += n
	}
}

// followDescriptors notes which descriptors are of the file.
func (f *fileWrites) followDescriptors(e *eventlog.Event) {
	arg := func(i int) int {
		if i >= len(e.Args) {
			return -1
		}
		return int(int32(e.Args[i]))
	}
	switch e.Object {
	case unix.SYS_CREAT:
		f.opened(e, 0, unix.O_TRUNC)
	case unix.SYS_OPEN:
		f.opened(e, 0, arg(1))
	case unix.SYS_OPENAT:
		f.opened(e, 1, arg(2))
	case unix.SYS_CLOSE:
		delete(f.open, arg(0))
	case unix.SYS_DUP:
		f.share(arg(0), int(e.Result))
	case unix.SYS_DUP2, unix.SYS_DUP3:
		f.share(arg(0), arg(1))
	case unix.SYS_FCNTL:
		if c := arg(1); c == unix.F_DUPFD || c == unix.F_DUPFD_CLOEXEC {
			f.share(arg(0), int(e.Result))
		}
	}
}

func (f *fileWrites) opened(e *eventlog.Event, path, flags int) {
	delete(f.open, int(e.Result))
	if !f.names[f.given(e, path)] {
		return
	}
	o := &openFile{append: flags&unix.O_APPEND != 0}
	if o.append && flags&unix.O_TRUNC == 0 {
		o.position = -1
	}
	f.open[int(e.Result)] = o
}

func (f *fileWrites) share(from, to int) {
	if from == to {
		return
	}
	delete(f.open, to)
	if o := f.open[from]; o != nil {
		f.open[to] = o
	}
}

// markDiffering marks the last write that gave the byte that differs.
func (f *fileWrites) markDiffering(list []call) {
	if f == nil || f.offset < 0 {
		return
	}
	for i := range slices.Backward(list) {
		if c := &list[i]; c.at >= 0 && c.at <= f.offset && f.offset < c.at+c.result {
			c.differs = f.offset - c.at + 1
			return
		}
	}
}

// differing is the text of a write from the beginning of the line with the byte that differs.
func differing(text string, at int64) (kept string, omitted int) {
	const before = 200
	at = min(at, int64(len(text)))
	from := at - min(at, before)
	for i := at - 1; i >= from; i-- {
		if text[i] == '\n' {
			from = i + 1
			break
		}
	}
	return text[from:min(int64(len(text)), from+mostText)], int(from)
}
