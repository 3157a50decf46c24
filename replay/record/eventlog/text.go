package eventlog

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"strconv"

	"golang.org/x/sys/unix"
)

// The text form of a log is a line "log VERSION pid PID" and a line for every
// event, such as
//
//	8 t2 syscall write(1 0x404060 3) = 3 at 0x7ffff7e5b1b2 digest 0x404060:xa500+8
//
// ticket, thread, kind, object, arguments, result, and if they are not 0 the site, the number
// of mutexes taken before it, and its flags; then the payloads. It has all the information of
// the binary form; ReadText converts it back. A line that begins with # is a comment.

// textVersion changes with the meaning of a line. The binary form may change without it.
const textVersion = 1

// TextOptions say what a text form shows.
type TextOptions struct {
	// Thread is the only one whose events are shown; 0 shows all.
	Thread uint32
	// Short cuts payloads after so many bytes, and such a text cannot be read again; 0 shows
	// them whole.
	Short int
	// Edit, if set, returns the bytes to show in place of those of a payload, as many. Such a
	// text cannot be read again.
	Edit func(data []byte) []byte
}

// WriteText writes the events in the order of their tickets. If the order ends too early, it
// ends the text with a comment and returns the error.
func (l *Log) WriteText(w io.Writer, o TextOptions) error {
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(out, "log %d pid %d\n", textVersion, l.PID)
	events := l.Ordered()
	if o.Thread != 0 {
		events = l.Events(o.Thread)
	}
	var line []byte
	for e, err := range events {
		if err != nil {
			fmt.Fprintf(out, "# %s\n", strconv.QuoteToASCII(err.Error()))
			if err := out.Flush(); err != nil {
				return fmt.Errorf("record: text: %w", err)
			}
			return err
		}
		line = append(e.appendText(line[:0], o), '\n')
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("record: text: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("record: text: %w", err)
	}
	return nil
}

// String returns the event's line of the text form.
func (e *Event) String() string { return string(e.appendText(nil, TextOptions{})) }

func (e *Event) appendText(b []byte, o TextOptions) []byte {
	b = fmt.Appendf(b, "%d t%d %v %s(", e.Ticket, e.Thread, e.Kind, e.objectText())
	for i, v := range e.Args {
		if i > 0 {
			b = append(b, ' ')
		}
		b = e.appendArgument(b, i, v)
	}
	b = appendNumber(append(b, ") = "...), uint64(e.Result))
	if e.Kind == KindSyscall && e.Result < 0 && e.Result > -4096 {
		if name := unix.ErrnoName(unix.Errno(-e.Result)); name != "" {
			b = fmt.Appendf(b, "(%s)", name)
		}
	}
	if e.Site != 0 {
		b = fmt.Appendf(b, " at %v", e.Site)
	}
	if e.Skipped != 0 {
		b = fmt.Appendf(b, " skipped %d", e.Skipped)
	}
	b = e.Flags.appendText(b)
	for i := range e.Payloads {
		b = e.Payloads[i].appendText(b, o)
	}
	return b
}

func (f EventFlags) appendText(b []byte) []byte {
	if f&FlagInterrupted != 0 {
		b = append(b, " interrupted"...)
	}
	if f&FlagSoft != 0 {
		b = append(b, " soft"...)
	}
	if f&FlagArrived != 0 {
		b = append(b, " arrived"...)
	}
	if rest := f &^ (FlagInterrupted | FlagSoft | FlagArrived); rest != 0 {
		b = fmt.Appendf(b, " flags %d", rest)
	}
	return b
}

// objectText formats the object by the event's kind: a thread's index, a signal's number, a
// name or an address.
func (e *Event) objectText() string {
	switch e.Kind {
	case KindStart, KindExit, KindCreate, KindJoin, KindDetach, KindSignal, KindSignalEnd:
		return strconv.FormatUint(e.Object, 10)
	case KindSyscall:
		return SyscallName(e.Object)
	case KindLimit:
		if name, ok := limitNames[LimitKind(e.Object)]; ok {
			return name
		}
	}
	return string(appendNumber(nil, e.Object))
}

// appendArgument writes the first argument by name where it is an operation.
func (e *Event) appendArgument(b []byte, i int, v uint64) []byte {
	if i == 0 {
		if names := e.Kind.operations(); names != nil {
			if name, ok := names(v); ok {
				return append(b, name...)
			}
		}
	}
	return appendNumber(b, v)
}

// operations returns the names of a kind's first argument, if it has names.
func (k Kind) operations() func(uint64) (string, bool) {
	switch k {
	case KindMutex, KindRWLock, KindSpin, KindCond, KindSem, KindBarrier, KindOnce, KindGuard:
		return func(v uint64) (string, bool) { name, ok := syncNames[Sync(v)]; return name, ok }
	case KindSignal:
		return func(v uint64) (string, bool) { name, ok := placeNames[SignalPlace(v)]; return name, ok }
	}
	return nil
}

// appendNumber writes small numbers, negative ones too, in decimal.
func appendNumber(b []byte, v uint64) []byte {
	if s := int64(v); s > -4096 && s < 4096 {
		return strconv.AppendInt(b, s, 10)
	}
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// mostZeros is how many zeros at a payload's end are written as a count. Without the limit a
// line of text could make its reader allocate unlimited memory.
const mostZeros = 4096

func (p *Payload) appendText(b []byte, o TextOptions) []byte {
	b = fmt.Appendf(b, " %v %v:", p.Kind, p.Addr)
	if p.Kind == PayloadFile {
		if m, ok := p.Mapped(); ok {
			return m.appendText(b)
		}
	}
	data := p.Data
	if o.Edit != nil {
		data = o.Edit(data)
	}
	if o.Short > 0 && len(data) > o.Short {
		return fmt.Appendf(p.appendData(b, data[:o.Short]), "...%d", len(data))
	}
	zeros := 0
	for zeros < min(len(data), mostZeros) && data[len(data)-1-zeros] == 0 {
		zeros++
	}
	const worthwhile = 8
	if zeros < worthwhile {
		return p.appendData(b, data)
	}
	return fmt.Appendf(p.appendData(b, data[:len(data)-zeros]), "+%d", zeros)
}

// appendData writes a quoted string if most of the bytes are text, and otherwise hexadecimal
// digits after an x.
func (p *Payload) appendData(b, data []byte) []byte {
	if p.Kind == PayloadText || p.Kind == PayloadOut && mostlyText(data) {
		return strconv.AppendQuoteToASCII(b, string(data))
	}
	return hex.AppendEncode(append(b, 'x'), data)
}

func mostlyText(data []byte) bool {
	odd := 0
	for _, c := range data {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			odd++
		}
	}
	return odd*4 <= len(data)
}

// Mapped is the payload of a file's mapping: struct dg_mapped.
type Mapped struct {
	// Data is the offset of its bytes in the recording's data file. NotKept says that they are
	// not there.
	Data    uint64
	Length  uint64
	Device  uint64
	Inode   uint64
	Size    uint64
	MTimeNS uint64
	Path    string
}

// NotKept in Mapped.Data says that the bytes are those of the file at the path.
const NotKept = ^uint64(0)

const (
	mappedNumbers = 6
	MappedSize    = 8*mappedNumbers + 216
)

// Mapped decodes the payload; ok is false if it is not that of a mapping.
func (p *Payload) Mapped() (m Mapped, ok bool) {
	if p.Kind != PayloadFile || len(p.Data) != MappedSize {
		return m, false
	}
	for i, into := range m.numbers() {
		*into = le.Uint64(p.Data[8*i:])
	}
	path := p.Data[8*mappedNumbers:]
	end := 0
	for end < len(path) && path[end] != 0 {
		end++
	}
	m.Path = string(path[:end])
	for _, c := range path[end:] {
		if c != 0 {
			return m, false
		}
	}
	return m, end < len(path)
}

func (m *Mapped) numbers() [mappedNumbers]*uint64 {
	return [...]*uint64{&m.Data, &m.Length, &m.Device, &m.Inode, &m.Size, &m.MTimeNS}
}

var mappedNames = [mappedNumbers]string{"data", "length", "device", "inode", "size", "mtime_ns"}

func (m *Mapped) appendText(b []byte) []byte {
	b = append(b, '{')
	for i, v := range m.numbers() {
		b = append(append(b, mappedNames[i]...), ' ')
		b = append(appendNumber(b, *v), ' ')
	}
	return append(strconv.AppendQuoteToASCII(append(b, "path "...), m.Path), '}')
}

// Encode is the reverse of Payload.Mapped.
func (m *Mapped) Encode() []byte {
	b := make([]byte, MappedSize)
	for i, v := range m.numbers() {
		le.PutUint64(b[8*i:], *v)
	}
	copy(b[8*mappedNumbers:MappedSize-1], m.Path)
	return b
}

// ReadText reads the text form. The pid is known when it returns. Events are read on demand,
// and their ordinals are counted.
func ReadText(r io.Reader) (pid uint32, events iter.Seq2[*Event, error], err error) {
	in := bufio.NewReader(r)
	number := 0
	head, err := nextLine(in, &number)
	if err != nil {
		return 0, nil, fmt.Errorf("record: text: no first line: %w", err)
	}
	var version int
	var rest string
	if n, _ := fmt.Sscanf(head, "log %d pid %d%s", &version, &pid, &rest); n != 2 {
		return 0, nil, fmt.Errorf("record: text, line %d: %.40q is not \"log VERSION pid PID\"", number, head)
	}
	if version > textVersion {
		return 0, nil, &VersionError{"text", version, textVersion}
	}
	ordinals := map[uint32]uint64{}
	return pid, func(yield func(*Event, error) bool) {
		for {
			line, err := nextLine(in, &number)
			if err == io.EOF {
				return
			}
			var e *Event
			if err == nil {
				e, err = ParseEvent(line)
			}
			if err != nil {
				yield(nil, fmt.Errorf("record: text, line %d: %w", number, err))
				return
			}
			ordinals[e.Thread]++
			e.Ordinal = ordinals[e.Thread]
			if !yield(e, nil) {
				return
			}
		}
	}, nil
}

// nextLine returns the next line that is neither empty nor a comment.
func nextLine(in *bufio.Reader, number *int) (string, error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil && (err != io.EOF || line == "") {
			return "", err
		}
		*number++
		if line = trimLine(line); line != "" && line[0] != '#' {
			return line, nil
		}
	}
}

func trimLine(line string) string {
	for line != "" && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}
