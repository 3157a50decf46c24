package record

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"diagnose/agent"
)

// Problem is a defect in a recording.
type Problem struct {
	// Dir is the recording, which may be a child of the checked one. File is the name of a file
	// in it.
	Dir, File string
	// Cut is set if data is missing at the end. Otherwise the data is wrong.
	Cut bool
	Err error
}

// Checked is what a check of a recording found.
type Checked struct {
	Recordings int // with children
	Events     uint64
	Problems   []Problem
	// More counts the problems that are left out of a long list.
	More int
	// Risks are variables of the recorded environments that a replay does not obey.
	Risks []Risk
}

// Risk is a variable of the environment of the recording in Dir.
type Risk struct {
	Dir string
	EnvironmentRisk
}

const mostProblems = 1000

// Check reads a recording and its children completely. It fails if the context ends or a
// directory cannot be read, and with a *VersionError if a newer version made the recording.
func Check(ctx context.Context, dir string) (*Checked, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == ManifestName || e.Name() == LogName }) {
		return nil, fmt.Errorf("record: %s is no recording: it has neither %s nor %s", dir, ManifestName, LogName)
	}
	c := &Checked{}
	return c, c.check(ctx, dir, nil)
}

func (c *Checked) problem(dir, file string, err error) {
	if len(c.Problems) == mostProblems {
		c.More++
		return
	}
	var cut *CutError
	c.Problems = append(c.Problems, Problem{dir, file, errors.As(err, &cut), err})
}

func (c *Checked) check(ctx context.Context, dir string, from *Child) error {
	c.Recordings++
	r, err := OpenContext(ctx, dir)
	if ctx.Err() != nil {
		if err == nil {
			r.Close()
		}
		return context.Cause(ctx)
	}
	if newer := (*VersionError)(nil); errors.As(err, &newer) {
		return err // this version cannot tell whether it is whole
	}
	if err != nil {
		c.problem(dir, "", err)
		return nil
	}
	defer r.Close()
	k := &recordingCheck{Checked: c, r: r}
	if err := k.log(ctx); err != nil {
		return err
	}
	k.outcome()
	k.sizes()
	k.sites()
	k.core()
	if err := k.objects(ctx); err != nil {
		return err
	}
	if _, err := r.Timing(); err != nil {
		k.problem(TimingName, err)
	}
	if _, err := r.Found(); err != nil {
		k.problem(ScheduleName, err)
	}
	k.link(from)
	for _, risk := range r.Manifest.EnvironmentRisks() {
		if len(c.Risks) < mostProblems {
			c.Risks = append(c.Risks, Risk{dir, risk})
		}
	}
	for i := range r.Manifest.Children {
		child := &r.Manifest.Children[i]
		name := filepath.FromSlash(child.Path)
		if err := r.CheckChild(child.Path); err != nil {
			k.problem(name, err)
			continue
		}
		if err := c.check(ctx, filepath.Join(dir, name), child); err != nil {
			return err
		}
	}
	return nil
}

// recordingCheck is the check of one recording.
type recordingCheck struct {
	*Checked
	r    *Recording
	data int64 // size of the file of data
}

func (k *recordingCheck) problem(file string, err error) { k.Checked.problem(k.r.Dir, file, err) }

// log reads every event in the global order, and by thread the events that the order does not
// reach.
func (k *recordingCheck) log(ctx context.Context) error {
	k.data = k.size(DataName)
	l := k.r.Log
	if err := l.Cut(); err != nil {
		k.problem(LogName, err)
	}
	if pid := uint32(k.r.Manifest.PID); l.PID != 0 && l.PID != pid {
		k.problem(LogName, fmt.Errorf("record: the log is of process %d, the manifest of %d", l.PID, pid))
	}
	for e, err := range l.Ordered() {
		if err != nil {
			return k.rest(err)
		}
		k.Events++
		if k.Events%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		k.event(e)
	}
	return nil
}

// rest reports the problems after the end of the order. err is the error that ended it.
func (k *recordingCheck) rest(err error) error {
	var cut *CutError
	known := k.r.Log.Cut() != nil
	if !errors.As(err, &cut) || !known {
		k.problem(LogName, err)
	}
	summary, failed := k.r.Log.Summarize()
	if failed != nil {
		return failed
	}
	for _, t := range summary.Threads {
		if t.Err != nil && t.Err.Error() != err.Error() && !(known && errors.As(t.Err, &cut)) {
			k.problem(LogName, t.Err)
		}
	}
	return nil
}

// payloadSizes has the sizes of the payloads of a fixed size.
var payloadSizes = map[PayloadKind]int{PayloadDigest: 16, PayloadInfo: 128, PayloadFile: mappedSize}

func (k *recordingCheck) event(e *Event) {
	if e.Ordinal == 1 && e.Kind != KindStart && e.Kind != KindFork {
		k.problem(LogName, &CorruptError{LogName, e.Offset, fmt.Sprintf("thread %d begins with an event of kind %v", e.Thread, e.Kind)})
	}
	for i := range e.Payloads {
		p := &e.Payloads[i]
		if size, fixed := payloadSizes[p.Kind]; fixed && len(p.Data) != size {
			k.problem(LogName, &CorruptError{LogName, e.Offset, fmt.Sprintf("payload %v of %d bytes, not %d", p.Kind, len(p.Data), size)})
			continue
		}
		if p.Kind != PayloadFile {
			continue
		}
		m, ok := p.Mapped()
		switch {
		case !ok:
			k.problem(LogName, &CorruptError{LogName, e.Offset, "what a mapping has cannot be read"})
		case m.Data != NotKept && (m.Data > uint64(k.data) || m.Length > uint64(k.data)-m.Data):
			k.problem(DataName, &CutError{DataName, k.data, fmt.Sprintf("%d bytes at %#x, which event %d of thread %d maps, are not there",
				m.Length, m.Data, e.Ordinal, e.Thread)})
		}
	}
}

// size returns the size of a file, 0 if it does not exist.
func (k *recordingCheck) size(name string) int64 {
	f, err := k.r.File(name)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			k.problem(name, err)
		}
		return 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		k.problem(name, err)
		return 0
	}
	return info.Size()
}

func (k *recordingCheck) outcome() {
	o := &k.r.Manifest.Outcome
	if o.Kind == OutcomeRunning {
		k.problem(ManifestName, &CutError{ManifestName, 0, "it is still being recorded, or the recorder did not live to write how the process ended"})
	}
	if o.Kind == OutcomeCut {
		k.problem(LogName, &CutError{LogName, k.size(LogName), o.Text})
	}
	if o.Thread != 0 && !slices.Contains(k.r.Log.Threads(), o.Thread) && k.r.Log.Cut() == nil {
		k.problem(ManifestName, fmt.Errorf("record: thread %d, which ended the process, has no events", o.Thread))
	}
}

// sizes compares the sizes of the files with those that the recorder saw at the end. Cut
// reports a log that is shorter.
func (k *recordingCheck) sizes() {
	sizes := &k.r.Manifest.Sizes
	if k.data < sizes.Data {
		k.problem(DataName, &CutError{DataName, k.data, fmt.Sprintf("it had %d bytes", sizes.Data)})
	}
	if size := k.size(CoreName); sizes.Core > 0 && size < sizes.Core {
		k.problem(CoreName, &CutError{CoreName, size, fmt.Sprintf("it had %d bytes", sizes.Core)})
	}
}

const siteSize = 32 // struct dg_site_patch

// sites reads the patch table.
func (k *recordingCheck) sites() {
	f, err := k.r.File(SitesName)
	if errors.Is(err, os.ErrNotExist) {
		return // nothing was intercepted
	}
	if err != nil {
		k.problem(SitesName, err)
		return
	}
	defer f.Close()
	at := int64(0)
	for ; ; at += siteSize {
		var b [siteSize]byte
		n, err := f.ReadAt(b[:], at)
		if err != nil && err != io.EOF {
			k.problem(SitesName, err)
			return
		}
		if n == 0 {
			return
		}
		if n < siteSize {
			k.problem(SitesName, &CutError{SitesName, at + int64(n), "within an entry"})
			return
		}
		if what := badSite(b[:]); what != "" {
			k.problem(SitesName, &CorruptError{SitesName, at, what})
			return
		}
	}
}

func badSite(b []byte) string {
	start, resume := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	kind, length, before, after := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:])
	const instruction = 2 // syscall's length, and at least that of others
	switch {
	case kind < agent.PatchJump || kind > agent.PatchTSCTrap:
		return fmt.Sprintf("patch of kind %d", kind)
	case uint64(before)+instruction+uint64(after) > uint64(length) && kind != agent.PatchTrap:
		return fmt.Sprintf("patch of %d bytes moves %d and %d", length, before, after)
	case resume <= start || resume-start > uint64(length):
		return fmt.Sprintf("patch at %#x continues at %#x", start, resume)
	}
	return ""
}

// core checks that the core has threads and that the file has its contents.
func (k *recordingCheck) core() {
	f, err := k.r.File(CoreName)
	if errors.Is(err, os.ErrNotExist) {
		if k.r.Manifest.Sizes.Core > 0 {
			k.problem(CoreName, &CutError{CoreName, 0, "it is missing"})
		}
		return
	}
	if err != nil {
		k.problem(CoreName, err)
		return
	}
	defer f.Close()
	if err := checkCore(f); err != nil {
		k.problem(CoreName, err)
	}
}

func checkCore(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	core, err := elf.NewFile(f)
	if err != nil {
		return &CorruptError{CoreName, 0, err.Error()}
	}
	defer core.Close()
	if core.Type != elf.ET_CORE || core.Machine != elf.EM_X86_64 {
		return &CorruptError{CoreName, 16, fmt.Sprintf("it is %v for %v", core.Type, core.Machine)}
	}
	notes := uint64(0)
	for _, p := range core.Progs {
		if p.Type == elf.PT_NOTE {
			notes += p.Filesz
		}
		if p.Off > uint64(info.Size()) || p.Filesz > uint64(info.Size())-p.Off {
			return &CutError{CoreName, info.Size(), fmt.Sprintf("the segment at %#x has %d bytes at %#x", p.Vaddr, p.Filesz, p.Off)}
		}
	}
	if notes == 0 {
		return &CorruptError{CoreName, 0, "it has no notes, so no threads"}
	}
	return nil
}

// objects compares the files in a portable recording with their digests. It fails only with the
// error of the context: a file may be a hole of a terabyte.
func (k *recordingCheck) objects(ctx context.Context) error {
	for _, o := range k.r.Manifest.Portable {
		f, err := k.r.File(o.Stored)
		if err != nil {
			k.problem(o.Stored, err)
			continue
		}
		hash := sha256.New()
		_, err = io.Copy(hash, &untilDone{ctx, f})
		f.Close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if got := hex.EncodeToString(hash.Sum(nil)); err == nil && got != o.SHA256 {
			err = &CorruptError{o.Stored, 0, fmt.Sprintf("its SHA-256 is %s, not %s", got, o.SHA256)}
		}
		if err != nil {
			k.problem(o.Stored, err)
		}
	}
	return nil
}

// untilDone reads until its context is done.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (r *untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// link compares what a child and its parent record of each other.
func (k *recordingCheck) link(from *Child) {
	parent := k.r.Manifest.Parent
	switch {
	case from == nil:
	case parent == nil:
		k.problem(ManifestName, errors.New("record: it does not say which recording it is a child of"))
	case from.PID != k.r.Manifest.PID || from.Thread != parent.Thread || from.Ordinal != parent.Ordinal || from.Exec != parent.Exec:
		k.problem(ManifestName, fmt.Errorf("record: the parent has process %d, event %d of thread %d; %s process %d, event %d of thread %d",
			from.PID, from.Ordinal, from.Thread, path.Base(k.r.Dir), k.r.Manifest.PID, parent.Ordinal, parent.Thread))
	}
}
