package ending

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// call is a system call of interest: one that wrote to a standard stream, or one that
// failed.
type call struct {
	moment evidence.Moment
	// position counts the events of all threads up to the call.
	position uint64
	thread   evidence.ThreadRef
	number   uint64
	args     []uint64
	result   int64
	// logged is the event of a failed call, without payloads other than texts.
	logged eventlog.Event
	// stream is the stream that the call wrote to. If it is empty the call failed with errno; words
	// is the call as a C expression, and times counts equal calls.
	stream evidence.Stream
	errno  unix.Errno
	// refused: by the recorder, not by the kernel.
	refused bool
	words   string
	times   int

	// text is the text that it wrote, read from a replay. seen: a replay stopped there to read the
	// stack.
	text  []byte
	seen  bool
	stack evidence.Stack
	site  *evidence.Site
	// at is the offset in the file of a write to it, and differs the offset in the write, from 1, of the
	// byte that differs from the expected one; 0 if it gave none.
	at, differs int64
	// alike are the earlier calls that differ in their arguments alone.
	alike []*call
}

func newCall(e *eventlog.Event, position uint64, thread evidence.ThreadRef, stream evidence.Stream) call {
	c := call{moment: evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal}, position: position, thread: thread, number: e.Object,
		args: slices.Clone(e.Args), result: e.Result, stream: stream, times: 1}
	if stream == "" {
		c.logged = eventlog.Event{Kind: e.Kind, Flags: e.Flags, Object: e.Object, Result: e.Result, Args: c.args, Payloads: textsOf(e)}
		c.refused = e.RefusedByRecorder()
		c.errno = unix.Errno(-e.Result)
		c.word()
	}
	return c
}

// word makes the words of a failed call from its arguments and the texts that are known.
func (c *call) word() {
	c.words = strings.Replace(c.logged.CallText(), "(-100, ", "(AT_FDCWD, ", 1)
}

// textsOf are the texts that an event has.
func textsOf(e *eventlog.Event) []eventlog.Payload {
	var list []eventlog.Payload
	for _, p := range e.Payloads {
		if p.Kind == eventlog.PayloadText {
			list = append(list, eventlog.Payload{Addr: p.Addr, Kind: p.Kind, Data: slices.Clone(p.Data)})
		}
	}
	return list
}

// executions are the paths of the programs that threads were about to execute. The log has them in an
// event of their own before that of the call (agent/src/engine/fork.c, dg_execute).
type executions map[uint32][]eventlog.Payload

// complete notes the path of an execution, or adds it to the event of the call that failed.
func (x executions) complete(e *eventlog.Event) {
	switch {
	case e.Kind == eventlog.KindExec:
		x[e.Thread] = textsOf(e)
	case e.Kind == eventlog.KindSyscall && (e.Object == unix.SYS_EXECVE || e.Object == unix.SYS_EXECVEAT):
		e.Payloads = append(slices.Clone(e.Payloads), x[e.Thread]...)
		delete(x, e.Thread)
	}
}

// found are the calls of interest, the writes and the failed ones each in the order of the
// events.
type found struct {
	writes, failed []*call
	// earlier counts the writes and the failed calls that are left out.
	earlierWrites, earlierFailed int
	// file is the name of the declared file.
	file string
	// joins are those of threads, in the order of the events.
	joins []join
}

// scan reads the log. file is the declared file; nil if there is none.
func scan(log *eventlog.Log, file *fileWrites) (*found, error) {
	out, errs, failed, filed := &recent{most: mostWrites}, &recent{most: mostWrites}, &recent{most: mostFailed}, &recent{most: mostWrites}
	threads, executed := map[uint32]evidence.ThreadRef{}, executions{}
	position := uint64(0)
	f := &found{}
	for e, err := range log.Ordered() {
		position++
		if err != nil {
			if eventlog.Damaged(err) {
				break // a replay ends at this event as well
			}
			return nil, err
		}
		if e.Kind == eventlog.KindStart && len(e.Args) >= 2 {
			threads[e.Thread] = evidence.ThreadRef{Number: int(e.Thread), TID: int(e.Args[1]), Recorded: int(e.Thread)}
		}
		executed.complete(e)
		if j, ok := joinOf(e, position); ok {
			f.addJoin(j)
		}
		if at, wrote := file.follow(e); wrote {
			c := newCall(e, position, threads[e.Thread], evidence.DeclaredFile)
			c.at = at
			filed.addCall(c)
			continue
		}
		switch stream := streamOf(e); {
		case stream == evidence.StandardOutput:
			out.addCall(newCall(e, position, threads[e.Thread], stream))
		case stream == evidence.StandardError:
			errs.addCall(newCall(e, position, threads[e.Thread], stream))
		case tells(e):
			failed.addOnce(newCall(e, position, threads[e.Thread], ""))
		}
	}
	for _, r := range []*recent{out, errs, failed, filed} {
		r.trim()
	}
	f.earlierWrites, f.earlierFailed = out.dropped+errs.dropped+filed.dropped, failed.dropped
	if file != nil {
		f.file = file.name
		file.markDiffering(filed.list)
	}
	for _, list := range [][]call{out.list, errs.list, filed.list} {
		for i := range list {
			f.writes = append(f.writes, &list[i])
		}
	}
	for i := range failed.list {
		f.failed = append(f.failed, &failed.list[i])
	}
	slices.SortFunc(f.writes, func(a, b *call) int { return cmp.Compare(a.position, b.position) })
	return f, nil
}

// The calls that write to a descriptor (arch/x86/entry/syscalls/syscall_64.tbl).
const (
	callWrite   = unix.SYS_WRITE
	callWritev  = unix.SYS_WRITEV
	callPwrite  = unix.SYS_PWRITE64
	callPwritev = unix.SYS_PWRITEV
)

// streamOf is the standard stream that an event wrote to; empty if it wrote to none.
func streamOf(e *eventlog.Event) evidence.Stream {
	if e.Kind != eventlog.KindSyscall || e.Object != callWrite && e.Object != callWritev || e.Result <= 0 || len(e.Args) < 3 {
		return ""
	}
	switch int(int32(e.Args[0])) {
	case unix.Stdout:
		return evidence.StandardOutput
	case unix.Stderr:
		return evidence.StandardError
	}
	return ""
}

// tells reports whether a call failed in a way that may matter. Some errors are part of a program's
// usual course: try again, the descriptor is no terminal or cannot seek, the kernel lacks the call.
func tells(e *eventlog.Event) bool {
	const lastErrno = 4095 // MAX_ERRNO, include/linux/err.h
	if e.Kind != eventlog.KindSyscall || e.Result >= 0 || e.Result < -lastErrno {
		return false
	}
	if e.RefusedByRecorder() {
		return true
	}
	switch unix.Errno(-e.Result) {
	case unix.EAGAIN, unix.EINTR, unix.EINPROGRESS, unix.ENOSYS:
		return false
	case unix.ENOTTY:
		return e.Object != unix.SYS_IOCTL
	case unix.ESPIPE:
		return e.Object != unix.SYS_LSEEK
	case unix.ETIMEDOUT:
		return e.Object != unix.SYS_FUTEX
	}
	return unix.ErrnoName(unix.Errno(-e.Result)) != "" // the kernel's own restarts have no name
}

// recent keeps the last calls of a kind.
type recent struct {
	most, dropped int
	list          []call
}

func (r *recent) addCall(c call) {
	if r.list = append(r.list, c); len(r.list) > 2*r.most { // so that few are moved
		r.trim()
	}
}

func (r *recent) trim() {
	if n := len(r.list) - r.most; n > 0 {
		for i := range r.list[:n] {
			r.dropped += r.list[i].times
		}
		r.list = slices.Clone(r.list[n:])
	}
}

// addOnce counts a call that is equal to one in the list with that one.
func (r *recent) addOnce(c call) {
	for i := range r.list {
		if o := &r.list[i]; o.number == c.number && o.errno == c.errno && o.words == c.words {
			c.times += o.times
			r.list = slices.Delete(r.list, i, i+1)
			break
		}
	}
	r.addCall(c)
}
