package integrity

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
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
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
	record.EnvironmentRisk
}

const mostProblems = 1000

// Check reads a recording and its children completely. It fails if the context ends or a
// directory cannot be read, and with a *VersionError if a newer version made the recording.
func Check(ctx context.Context, dir string) (*Checked, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == record.ManifestName || e.Name() == record.LogName }) {
		return nil, fmt.Errorf("record: %s is no recording: it has neither %s nor %s", dir, record.ManifestName, record.LogName)
	}
	c := &Checked{}
	return c, c.check(ctx, dir, nil)
}

func (c *Checked) problem(dir, file string, err error) {
	if len(c.Problems) == mostProblems {
		c.More++
		return
	}
	var cut *eventlog.CutError
	c.Problems = append(c.Problems, Problem{dir, file, errors.As(err, &cut), err})
}

func (c *Checked) check(ctx context.Context, dir string, from *record.Child) error {
	c.Recordings++
	r, err := record.OpenContext(ctx, dir)
	if ctx.Err() != nil {
		if err == nil {
			r.Close()
		}
		return context.Cause(ctx)
	}
	if newer := (*eventlog.VersionError)(nil); errors.As(err, &newer) {
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
	if _, err := r.StartPages(); err != nil {
		k.problem(record.StartName, err)
	}
	if _, _, err := r.LinkerCache(); err != nil {
		k.problem(record.LinkerCacheName, err)
	}
	if _, err := r.Timing(); err != nil {
		k.problem(record.TimingName, err)
	}
	if _, err := r.Found(); err != nil {
		k.problem(record.ScheduleName, err)
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
	r    *record.Recording
	data int64 // size of the file of data
}

func (k *recordingCheck) problem(file string, err error) { k.Checked.problem(k.r.Dir, file, err) }

// log reads every event in the global order, and by thread the events that the order does not
// reach.
func (k *recordingCheck) log(ctx context.Context) error {
	k.data = k.size(record.DataName)
	l := k.r.Log
	if err := l.Cut(); err != nil {
		k.problem(record.LogName, err)
	}
	if pid := uint32(k.r.Manifest.PID); l.PID != 0 && l.PID != pid {
		k.problem(record.LogName, &eventlog.CorruptError{File: record.LogName, What: fmt.Sprintf("it is of process %d, the manifest of %d", l.PID, pid)})
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
	var cut *eventlog.CutError
	known := k.r.Log.Cut() != nil
	if !errors.As(err, &cut) || !known {
		k.problem(record.LogName, err)
	}
	summary, failed := k.r.Log.Summarize()
	if failed != nil {
		return failed
	}
	for _, t := range summary.Threads {
		if t.Err != nil && t.Err.Error() != err.Error() && !(known && errors.As(t.Err, &cut)) {
			k.problem(record.LogName, t.Err)
		}
	}
	return nil
}

// payloadSizes has the sizes of the payloads of a fixed size.
var payloadSizes = map[eventlog.PayloadKind]int{eventlog.PayloadDigest: 16, eventlog.PayloadInfo: 128, eventlog.PayloadFile: eventlog.MappedSize}

func (k *recordingCheck) event(e *eventlog.Event) {
	if e.Ordinal == 1 && e.Kind != eventlog.KindStart && e.Kind != eventlog.KindFork {
		k.problem(record.LogName, &eventlog.CorruptError{File: record.LogName, Offset: e.Offset, What: fmt.Sprintf("thread %d begins with an event of kind %v", e.Thread, e.Kind)})
	}
	for i := range e.Payloads {
		p := &e.Payloads[i]
		if size, fixed := payloadSizes[p.Kind]; fixed && len(p.Data) != size {
			k.problem(record.LogName, &eventlog.CorruptError{File: record.LogName, Offset: e.Offset, What: fmt.Sprintf("payload %v of %d bytes, not %d", p.Kind, len(p.Data), size)})
			continue
		}
		if p.Kind != eventlog.PayloadFile {
			continue
		}
		m, ok := p.Mapped()
		switch {
		case !ok:
			k.problem(record.LogName, &eventlog.CorruptError{File: record.LogName, Offset: e.Offset, What: "what a mapping has cannot be read"})
		case m.Data != eventlog.NotKept && (m.Data > uint64(k.data) || m.Length > uint64(k.data)-m.Data):
			k.problem(record.DataName, &eventlog.CutError{File: record.DataName, Offset: k.data, What: fmt.Sprintf("%d bytes at %#x, which event %d of thread %d maps, are not there",
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
	if o.Kind == record.OutcomeRunning {
		k.problem(record.ManifestName, &eventlog.CutError{File: record.ManifestName, Offset: 0, What: "it is still being recorded, or the recorder did not live to write how the process ended"})
	}
	if o.Kind == record.OutcomeCut {
		k.problem(record.LogName, &eventlog.CutError{File: record.LogName, Offset: k.size(record.LogName), What: o.Text})
	}
	if o.Thread != 0 && !slices.Contains(k.r.Log.Threads(), o.Thread) && k.r.Log.Cut() == nil {
		k.problem(record.ManifestName, &record.ManifestError{What: fmt.Sprintf("thread %d, which ended the process, has no events", o.Thread)})
	}
}

// sizes compares the sizes of the files with those that the recorder saw at the end. Cut
// reports a log that is shorter.
func (k *recordingCheck) sizes() {
	sizes := &k.r.Manifest.Sizes
	if k.data < sizes.Data {
		k.problem(record.DataName, &eventlog.CutError{File: record.DataName, Offset: k.data, What: fmt.Sprintf("it had %d bytes", sizes.Data)})
	}
	if size := k.size(record.CoreName); sizes.Core > 0 && size < sizes.Core {
		k.problem(record.CoreName, &eventlog.CutError{File: record.CoreName, Offset: size, What: fmt.Sprintf("it had %d bytes", sizes.Core)})
	}
}

const siteSize = 32 // struct dg_site_patch

// sites reads the patch table.
func (k *recordingCheck) sites() {
	f, err := k.r.File(record.SitesName)
	if errors.Is(err, os.ErrNotExist) {
		return // nothing was intercepted
	}
	if err != nil {
		k.problem(record.SitesName, err)
		return
	}
	defer f.Close()
	at := int64(0)
	for ; ; at += siteSize {
		var b [siteSize]byte
		n, err := f.ReadAt(b[:], at)
		if err != nil && err != io.EOF {
			k.problem(record.SitesName, err)
			return
		}
		if n == 0 {
			return
		}
		if n < siteSize {
			k.problem(record.SitesName, &eventlog.CutError{File: record.SitesName, Offset: at + int64(n), What: "within an entry"})
			return
		}
		if what := badSite(b[:]); what != "" {
			k.problem(record.SitesName, &eventlog.CorruptError{File: record.SitesName, Offset: at, What: what})
			return
		}
	}
}

func badSite(b []byte) string {
	start, resume := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	kind, length, before, after := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:])
	const instruction = 2 // syscall's length, and at least that of others
	switch {
	case kind > agent.PatchAtomic && kind <= agent.PatchOperation:
		const most = 8 // bytes of a piece
		if count := b[20]; count > most {
			return fmt.Sprintf("a piece of code of %d bytes", count)
		}
		return ""
	case kind == agent.PatchAtomic && resume == start+uint64(length) && before > 0:
		return ""
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
	f, err := k.r.File(record.CoreName)
	if errors.Is(err, os.ErrNotExist) {
		if k.r.Manifest.Sizes.Core > 0 {
			k.problem(record.CoreName, &eventlog.CutError{File: record.CoreName, Offset: 0, What: "it is missing"})
		}
		return
	}
	if err != nil {
		k.problem(record.CoreName, err)
		return
	}
	defer f.Close()
	if err := checkCore(f); err != nil {
		k.problem(record.CoreName, err)
	}
}

func checkCore(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	core, err := elf.NewFile(f)
	if err != nil {
		return &eventlog.CorruptError{File: record.CoreName, Offset: 0, What: err.Error()}
	}
	defer core.Close()
	if core.Type != elf.ET_CORE || core.Machine != elf.EM_X86_64 {
		return &eventlog.CorruptError{File: record.CoreName, Offset: 16, What: fmt.Sprintf("it is %v for %v", core.Type, core.Machine)}
	}
	notes := uint64(0)
	for _, p := range core.Progs {
		if p.Type == elf.PT_NOTE {
			notes += p.Filesz
		}
		if p.Off > uint64(info.Size()) || p.Filesz > uint64(info.Size())-p.Off {
			return &eventlog.CutError{File: record.CoreName, Offset: info.Size(), What: fmt.Sprintf("the segment at %#x has %d bytes at %#x", p.Vaddr, p.Filesz, p.Off)}
		}
	}
	if notes == 0 {
		return &eventlog.CorruptError{File: record.CoreName, Offset: 0, What: "it has no notes, so no threads"}
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
			err = &eventlog.CorruptError{File: o.Stored, Offset: 0, What: fmt.Sprintf("its SHA-256 is %s, not %s", got, o.SHA256)}
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
func (k *recordingCheck) link(from *record.Child) {
	parent := k.r.Manifest.Parent
	switch {
	case from == nil:
	case parent == nil:
		k.problem(record.ManifestName, &record.ManifestError{What: "it does not say which recording it is a child of"})
	case from.PID != k.r.Manifest.PID || from.Thread != parent.Thread || from.Ordinal != parent.Ordinal || from.Exec != parent.Exec:
		k.problem(record.ManifestName, &record.ManifestError{What: fmt.Sprintf("the parent has process %d, event %d of thread %d; %s process %d, event %d of thread %d",
			from.PID, from.Ordinal, from.Thread, path.Base(k.r.Dir), k.r.Manifest.PID, parent.Ordinal, parent.Thread)})
	}
}
