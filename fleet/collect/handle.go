package collect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"diagnose/fleet/collect/corestream"
	"diagnose/fleet/collect/spool"
	"diagnose/image/collected"
	"diagnose/image/object"
)

// Crash is what the kernel says of a crash on the handler's command line (core(5)).
type Crash struct {
	// PID and TID are numbers of the host's namespace: %P and %I.
	PID, TID int
	// UID, GID, Signal and Time are %u, %g, %s and %t.
	UID, GID, Signal int
	Time             time.Time
	// Ended says that the process has ended: another one may have its numbers.
	Ended bool
}

// Outcome is what became of a core.
type Outcome struct {
	// Dir is the entry, "" if the core was not kept. Refused says why not.
	Dir     string
	Refused spool.Refusal
	Facts   *collected.Facts
}

// Handle takes a core from a stream. The core is kept, or counted. The rest of a core that is not kept
// is not read: the kernel ends the writing when the handler ends.
func Handle(s *spool.Spool, in io.Reader, crash Crash) (*Outcome, error) {
	h := &handler{spool: s, crash: crash, facts: newFacts(crash)}
	defer h.release()
	outcome, err := h.handle(in)
	if err != nil {
		return nil, fmt.Errorf("core of process %d: %w", crash.PID, err)
	}
	return outcome, nil
}

func newFacts(crash Crash) *collected.Facts {
	f := &collected.Facts{Version: collected.Version, PID: crash.PID, TID: crash.TID, UID: crash.UID, GID: crash.GID,
		Signal: crash.Signal, Time: crash.Time.UTC(), Objects: []collected.Object{}, Redacted: collected.Redacted{Names: []string{}}}
	f.Host, _ = os.Hostname() // "" is not known
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		f.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return f
}

// handler takes one core.
type handler struct {
	spool *spool.Spool
	crash Crash
	head  *corestream.Head
	// process is nil if it has ended.
	process *process
	kind    spool.Kind
	facts   *collected.Facts
	// release gives the slot back.
	slot func()
}

func (h *handler) release() {
	if h.slot != nil {
		h.slot()
	}
}

func (h *handler) handle(in io.Reader) (*Outcome, error) {
	var err error
	if h.head, err = corestream.ReadHead(bufio.NewReaderSize(in, 64<<10)); err != nil {
		return nil, errors.Join(err, h.spool.Refuse(h.kind, "", spool.Failed, time.Now()))
	}
	modules := modulesOf(h.head)
	h.describe(modules)
	refusal, err := h.spool.Admit(h.kind, h.facts.Program, time.Now())
	if err != nil || refusal != "" {
		return &Outcome{Refused: refusal, Facts: h.facts}, err
	}
	return h.admitted(modules)
}

// admitted keeps a core that was admitted, or tells the spool that it is not kept.
func (h *handler) admitted(modules []*module) (*Outcome, error) {
	free := false
	why := spool.Busy
	var dir string
	slot, free, err := h.spool.Slot()
	if err == nil && free {
		h.slot = slot
		if dir, err = h.keep(modules); err == nil {
			return &Outcome{Dir: dir, Facts: h.facts}, nil
		}
	}
	if err != nil {
		why = spool.Failed
	}
	if isFull(err) || errors.Is(err, spool.ErrFull) {
		why = spool.Full
	}
	return &Outcome{Refused: why, Facts: h.facts}, errors.Join(err, h.spool.Refuse(h.kind, h.facts.Program, why, time.Now()))
}

// describe fills the facts that are known before the memory is read.
func (h *handler) describe(modules []*module) {
	f := h.facts
	f.Command = valid(h.head.Command)
	if f.Signal == 0 {
		f.Signal = h.head.Thread.Signal
	}
	exe := executable(h.head)
	if exe >= 0 {
		f.Program = h.head.Files[exe].Path
	}
	var stack []byte
	if !h.crash.Ended {
		h.process, _ = openProcess(h.crash.PID, h.head) // nil if it has ended
	}
	if p := h.process; p != nil {
		if name := p.program(); name != "" {
			f.Program = name
		}
		f.Cgroup = valid(p.cgroup())
		f.Container = containerOf(f.Cgroup)
		stack = p.memory(h.head.Thread.SP, make([]byte, stackLooked))
	}
	for _, m := range modules {
		if exe >= 0 && m.path == h.head.Files[exe].Path {
			f.BuildID = h.buildID(m)
		}
	}
	f.Program = valid(f.Program)
	h.kind = kindOf(h.head, f.Program, f.BuildID, f.Signal, stack)
	f.Signature = h.kind.Signature
}

// files is where the process's files are opened.
func (h *handler) files() source {
	if h.process == nil {
		return hostFiles{}
	}
	return h.process
}

// buildID is that of a module's file; "" if it has none or cannot be read.
func (h *handler) buildID(m *module) string {
	file, err := h.files().mapped(&h.head.Files[m.start])
	if err != nil {
		return ""
	}
	defer file.Close()
	id, err := identify(file)
	if err != nil {
		return ""
	}
	if id.buildID == "" { // Go's linker puts it into a section that is in no segment
		return object.BuildIDOf(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	}
	return id.buildID
}

// keep writes the entry.
func (h *handler) keep(modules []*module) (string, error) {
	stage, err := h.spool.NewStage(h.kind, time.Now())
	if err != nil {
		return "", err
	}
	defer stage.Discard()
	k := &keeper{head: h.head, from: h.files(), stage: stage, facts: h.facts}
	defer k.close()
	redactor := new(corestream.Redactor)
	if h.process != nil {
		environment := h.process.text("environ")
		redactor.Learn(environment)
		redactor.Learn(h.process.text("cmdline"))
		h.facts.Redacted.Everywhere = len(environment) > 0
	}
	objects, err := k.keep(modules)
	if err != nil {
		return "", err
	}
	if err := h.write(stage, corestream.Options{Objects: objects, Redactor: redactor}); err != nil {
		return "", err
	}
	done := redactor.Redacted()
	h.facts.Redacted.Names = append(h.facts.Redacted.Names, done.Names...)
	h.facts.Redacted.Places = done.Places
	return stage.Commit(h.facts, time.Now())
}

const (
	// headerRoom is the space of the first zstd frame, which has the ELF header: it is written last.
	headerRoom = 512
	// window is how far back the compression looks, in bytes.
	window = 4 << 20
)

// write writes the core, compressed. The header is a frame of its own, with a skippable frame after it that
// fills the room (RFC 8878, 3.1).
func (h *handler) write(stage *spool.Stage, o corestream.Options) error {
	file, err := stage.Create()
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(headerRoom, io.SeekStart); err != nil {
		return err
	}
	z, err := zstd.NewWriter(stage.Limited(file), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	body := &afterHeader{w: z}
	result, err := h.head.Rewrite(body, o)
	if err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	first, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderPadding(headerRoom))
	if err != nil {
		return err
	}
	frame := first.EncodeAll(result.Header[:], nil)
	if len(frame) != headerRoom {
		return fmt.Errorf("the core's header takes %d bytes, not %d", len(frame), headerRoom)
	}
	if _, err := file.WriteAt(frame, 0); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h.facts.Core = collected.Core{Whole: h.head.Bytes, Kept: result.Bytes, Stored: info.Size(), LeftOut: result.LeftOut, Missing: result.Missing}
	return file.Sync()
}

// afterHeader drops the header's zeros that Rewrite begins with.
type afterHeader struct {
	w       io.Writer
	dropped int
}

func (a *afterHeader) Write(b []byte) (int, error) {
	n := min(corestream.HeaderBytes-a.dropped, len(b))
	a.dropped += n
	m, err := a.w.Write(b[n:])
	return n + m, err
}
