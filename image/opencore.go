package image

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"diagnose/evidence"
	"diagnose/image/object"
)

// OpenCore reads a core file of x86-64 Linux. A compressed one (zst, lz4, gz,
// xz) is unpacked into a private temporary file. path "-" is standard input.
//
// The error for an unusable file is an *object.FormatError or one of the file
// system. A truncated core is a Process with a severe limit.
func OpenCore(path string, opts Options) (*Process, error) {
	input, err := openInput(path, &opts)
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	return openFrom(input, path, opts)
}

// openFrom makes the process, which owns the input.
func openFrom(input *coreInput, path string, opts Options) (*Process, error) {
	var p *Process
	err := guarded(func() (err error) {
		p, err = readCore(input.name, input.data, opts)
		return err
	})
	if err != nil {
		input.close()
		return nil, fmt.Errorf("core: %w", err)
	}
	p.Program.Path = path
	p.Limits = append(input.limits, p.Limits...)
	p.close, p.forget, p.coreFile = input.close, input.forget, input.file
	return p, nil
}

// readCore makes a process from a core file's bytes. name is the file's name in
// errors; its folder may hold the executable.
func readCore(name string, data []byte, opts Options) (*Process, error) {
	core, err := parseCore(name, data)
	if err != nil {
		return nil, err
	}
	notes := core.readNotes()
	if len(notes.threads) == 0 {
		return nil, core.noThreads(notes)
	}
	p := newProcess(opts)
	p.Auxv = notes.auxv
	p.Program = evidence.Program{Source: evidence.SourceCore, Path: name, Command: notes.name, Args: notes.args, PID: notes.pid}
	p.Mappings = coreMappings(core.loads, sortFiles(notes.files), core.byDebugger)
	core.findDumpsWritten(p.Mappings)
	p.memory = &coreMemory{core: core, process: p}
	r := &coreReader{core: core, notes: notes, process: p}
	r.setThreads()
	r.truncation()
	source := &fileSource{exe: opts.Exe, finder: &p.options.Finder, files: opts.Files}
	if strings.Contains(name, "/") {
		source.beside = filepath.Dir(name)
	}
	p.loadModules(source)
	r.permissionsFromObjects()
	r.findFailing()
	r.nameStack()
	r.countMissing()
	return p, nil
}

// readNotes parses no more bytes than the file has, because any number of
// segments may cover the same ones.
func (c *elfCore) readNotes() *coreNotes {
	notes := new(coreNotes)
	left := uint64(len(c.data))
	for _, h := range c.notes {
		segment := c.contents(h.offset, min(h.filesz, left))
		left -= uint64(len(segment))
		notes.cut = notes.cut || uint64(len(segment)) < h.filesz
		notes.parse(segment)
	}
	return notes
}

func (c *elfCore) noThreads(notes *coreNotes) error {
	at, reason := uint64(0), "no notes, so no thread's registers"
	if len(c.notes) > 0 {
		at, reason = c.notes[0].offset, "the notes hold no thread's registers (NT_PRSTATUS)"
	}
	if c.truncated() {
		reason = fmt.Sprintf("%s: the file ends at %s of %s", reason, mebibytes(uint64(len(c.data))), mebibytes(c.wanted))
	}
	var cause error
	if len(notes.problems) > 0 {
		cause = errors.New(notes.problems[0])
	}
	return &object.FormatError{File: c.name, Section: "notes", Offset: at, Reason: reason, Err: cause}
}

func mebibytes(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
