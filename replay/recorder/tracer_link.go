package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/launch"
	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
)

// tracerName is the process name by which a process knows that it is a tracer.
const tracerName = "diagnose-tracer"

// order is what the launcher tells the tracer. The program inherits all other attributes from
// the tracer, which has them from the launcher.
type order struct {
	Path, Library, Output record.Text
	Args, Environ         []record.Text
	// Group is the process group of the launcher, and so of the program. It is 0 if the group's
	// leader is outside of this PID namespace: then the tracer is in the group from its start.
	Group int
	// Ignored are the signals that the program starts with ignored.
	Ignored       []int
	Portable, All bool
	KeepOutput    bool
	MaxSize       int64
	Hunt          *record.Hunt
	Turns         *record.Turns
	Atomics       bool
	Producer      string
}

// notice is a message from the tracer to the launcher; one of its members is set.
type notice struct {
	Started int         `json:",omitempty"` // the program's process
	Stopped int         `json:",omitempty"` // by this signal of job control
	Resumed bool        `json:",omitempty"`
	Ended   *Result     `json:",omitempty"`
	Dir     record.Text `json:",omitempty"` // Ended's
	Warning string      `json:",omitempty"`
	// Analysing: the launcher answers the end of the analysis with a byte.
	Analysing *sites.Analysis `json:",omitempty"`
	Failed    *failed         `json:",omitempty"` // nothing follows
}

// failed is an error that is sent between processes.
type failed struct {
	Text        string
	Unsupported bool
	Start       bool // the program could not be run
}

func newFailed(err error) *failed {
	var unsupported *launch.UnsupportedError
	var start *launch.StartError
	return &failed{err.Error(), errors.As(err, &unsupported), errors.As(err, &start)}
}

func (f *failed) err() error {
	switch err := errors.New(f.Text); {
	case f.Unsupported:
		return &launch.UnsupportedError{Err: err}
	case f.Start:
		return &launch.StartError{Err: err}
	default:
		return err
	}
}

// Init makes this process a tracer if a Run in another process of the same program started it
// for that; then it does not return. Every program that calls Run must call it first in main.
//
// The tracer is a separate process because a program may leave processes that are still
// recorded, while the caller waits only for the program; and because a recording should not end
// with a launcher that is killed.
func Init() {
	initialised = true
	if len(os.Args) != 2 || os.Args[0] != tracerName {
		return
	}
	n, err := strconv.Atoi(os.Args[1])
	if err != nil || n < 0 {
		os.Exit(2)
	}
	unix.CloseOnExec(n)
	os.Exit(serve(os.NewFile(uintptr(n), "link")))
}

var initialised bool

func serve(file *os.File) int {
	debug.SetGCPercent(800) // there is little to collect, and a program waits meanwhile
	conn, err := net.FileConn(file)
	if err != nil {
		return 2
	}
	file.Close()
	l := &link{conn: conn, encoder: json.NewEncoder(conn)}
	var o order
	if err := json.NewDecoder(conn).Decode(&o); err != nil {
		return 2
	}
	if err := trace(&o, l); err != nil {
		l.tell(notice{Failed: newFailed(err)})
		return 1
	}
	return 0
}

// link is the tracer's side of the connection. It is no error if the launcher has ended.
type link struct {
	conn    net.Conn
	encoder *json.Encoder
	// hear, unless nil, is the function of a launcher in this process.
	hear func(notice)
}

func (l *link) tell(n notice) {
	if l.hear != nil {
		l.hear(n)
		return
	}
	l.encoder.Encode(n)
}

// analysing returns, at the end of an analysis, when the launcher has cleared its line. The
// program's output comes after that.
func (l *link) analysing(a sites.Analysis) {
	l.tell(notice{Analysing: &a})
	if !a.Ended() {
		return
	}
	const patience = 300 * time.Millisecond
	l.conn.SetReadDeadline(time.Now().Add(patience))
	l.conn.Read(make([]byte, 1)) // a launcher that has ended, or is stopped, has no line to clear
	l.conn.SetReadDeadline(time.Time{})
}

func (l *link) warn(format string, args ...any) {
	l.tell(notice{Warning: fmt.Sprintf(format, args...)})
}
