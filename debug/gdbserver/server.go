package gdbserver

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/replay"
)

// Server answers a debugger's packets.
type Server struct {
	Session *debug.Session
	// Program is the path of the executable.
	Program string
	// Causes diagnoses the recording; nil: it cannot be diagnosed here.
	Causes func(ctx context.Context) ([]debug.Cause, error)
	// Note tells the user the reason of an error that gdb 13 does not print; nil: it is not told.
	Note func(text string)

	out      io.Writer
	acks     bool
	features []feature
	threads  []replay.DebugThread
	// selected is the thread of g, p and m, as gdb's H packet says.
	selected uint32
	points   points
	// signals are those that stop the program before their handlers.
	signals debug.SignalSet
	// reason is added to the next stop reply.
	reason string
	// gone: the stop is where the user wanted to go.
	gone  bool
	files map[uint32]*registerFile
	// goal is where the next continue leads; nil: the program just continues.
	goal *debug.Position
	// changes are those in the copy of the stopped process; calling: a call of a function has begun there.
	changes changes
	calling bool
	// staying: the next continue stays where it is, without the copy.
	staying   bool
	libraries libraries
	over      bool
}

// unsupported is the answer to a packet that is not known.
const unsupported = ""

// Serve answers packets until the debugger leaves or the connection ends.
func (s *Server) Serve(ctx context.Context, connection io.ReadWriter) error {
	s.out, s.acks = connection, true
	s.Session.OnProgress(func(text string) { fmt.Fprintln(console{s}, text+".") })
	s.forget()
	inputs := make(chan input)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.read(ctx, bufio.NewReader(connection), inputs, failed)
	for !s.over {
		select {
		case in := <-inputs:
			if err := s.handle(ctx, string(in.data)); err != nil {
				return err
			}
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// read passes packets on. An interruption takes effect at once.
func (s *Server) read(ctx context.Context, r *bufio.Reader, inputs chan<- input, failed chan<- error) {
	for {
		in, err := readInput(r)
		if errors.Is(err, errPacket) {
			io.WriteString(s.out, "-")
			continue
		}
		if err != nil {
			failed <- err
			s.Session.Interrupt()
			return
		}
		if in.interrupt {
			s.Session.Interrupt()
			continue
		}
		select {
		case inputs <- in:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) handle(ctx context.Context, packet string) error {
	if s.acks {
		if _, err := io.WriteString(s.out, "+"); err != nil {
			return err
		}
	}
	answer, err := s.answer(ctx, packet)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		answer = "E." + oneLine(err.Error())
	}
	if packet == "QStartNoAckMode" {
		s.acks = false
	}
	return writePacket(s.out, []byte(answer))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// answer answers a packet.
func (s *Server) answer(ctx context.Context, packet string) (string, error) {
	if packet == "" {
		return unsupported, nil
	}
	rest := packet[1:]
	switch packet[0] {
	case '?':
		return s.stopReply()
	case 'g':
		return s.allRegisters()
	case 'p':
		return s.oneRegister(rest)
	case 'm':
		return s.memory(rest)
	case 'M', 'X':
		return s.writeMemory(packet)
	case 'P':
		return s.writeRegister(rest)
	case 'H':
		return s.selectThread(rest)
	case 'T':
		return s.alive(rest)
	case 'Z', 'z':
		return s.point(packet)
	case 'b':
		return s.backward(rest)
	case 'c', 'C':
		return s.resume("c")
	case 's', 'S':
		return s.resume("s")
	case 'D', 'k':
		s.over = true
		return "OK", nil
	case 'v':
		return s.verbose(rest)
	case 'q', 'Q':
		return s.query(ctx, packet)
	}
	return unsupported, nil
}

func (s *Server) verbose(packet string) (string, error) {
	switch {
	case packet == "Cont?":
		return "vCont;c;C;s;S;r", nil
	case strings.HasPrefix(packet, "Cont;"):
		return s.resume(packet[len("Cont;"):])
	case strings.HasPrefix(packet, "Kill"):
		s.over = true
		return "OK", nil
	}
	return unsupported, nil
}

// forget drops the facts on the last stop.
func (s *Server) forget() {
	s.threads, s.files, s.selected = nil, map[uint32]*registerFile{}, s.Session.Stop().Thread
}

// file returns a thread's registers.
func (s *Server) file(thread uint32) (*registerFile, error) {
	if f := s.files[thread]; f != nil {
		return f, nil
	}
	f := &registerFile{}
	err := s.Session.Inspect(func(x debug.State) (err error) {
		f.general, f.extended, err = x.ThreadRegisters(thread)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.files[thread] = f
	if s.features == nil {
		s.features = describe(hasAVX(f.extended))
	}
	return f, nil
}

func (s *Server) allRegisters() (string, error) {
	f, err := s.file(s.selected)
	if err != nil {
		return "", err
	}
	var out []byte
	for _, x := range s.features {
		for i := range x.registers {
			out = appendRegister(out, f, &x.registers[i])
		}
	}
	return string(out), nil
}

// appendRegister appends a register's digits; x is a digit that is not known.
func appendRegister(out []byte, f *registerFile, r *register) []byte {
	if v := f.value(r); v != nil {
		return hex.AppendEncode(out, v)
	}
	return append(out, strings.Repeat("x", r.bits/4)...)
}

func (s *Server) oneRegister(number string) (string, error) {
	n, err := parseHex(number)
	if err != nil {
		return "", err
	}
	f, err := s.file(s.selected)
	if err != nil {
		return "", err
	}
	if r := s.register(n); r != nil {
		return string(appendRegister(nil, f, r)), nil
	}
	return "E01", nil
}

// memory answers m: as many bytes from the address on as can be read.
func (s *Server) memory(arguments string) (string, error) {
	addr, length, err := parsePair(arguments)
	if err != nil {
		return "", err
	}
	const page = 4096
	b := make([]byte, min(length, mostPacket/2-1))
	n := 0
	err = s.Session.Inspect(func(x debug.State) error {
		if read, err := x.ReadMemory(evidence.Addr(addr), b); err == nil {
			n = read
			return nil
		}
		for n < len(b) {
			at := addr + uint64(n)
			part := b[n:min(len(b), n+int(page-at%page))]
			if _, err := x.ReadMemory(evidence.Addr(at), part); err != nil {
				return nil // the bytes before it are the answer
			}
			n += len(part)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if n == 0 && length > 0 {
		return "E0e", nil // EFAULT
	}
	return hex.EncodeToString(b[:n]), nil
}

// list returns the threads of the stop.
func (s *Server) list() ([]replay.DebugThread, error) {
	if s.threads != nil {
		return s.threads, nil
	}
	var err error
	s.threads, err = s.Session.Threads()
	return s.threads, err
}

// selectThread answers H: g for registers and memory, c for the old packets that resume.
func (s *Server) selectThread(arguments string) (string, error) {
	if arguments == "" {
		return "E01", nil
	}
	thread, err := parseThread(arguments[1:])
	if err != nil {
		return "", err
	}
	if arguments[0] == 'g' {
		if thread == 0 {
			thread = s.Session.Stop().Thread
		}
		s.selected = thread
	}
	return "OK", nil
}

func (s *Server) alive(number string) (string, error) {
	thread, err := parseThread(number)
	if err != nil {
		return "", err
	}
	threads, err := s.list()
	if err != nil {
		return "", err
	}
	for _, t := range threads {
		if t.Number == thread {
			return "OK", nil
		}
	}
	return "E01", nil
}

// stopReply says where and why the program has stopped.
func (s *Server) stopReply() (string, error) {
	stop := s.Session.Stop()
	signal := gdbTrap
	gone := s.gone
	s.gone = false
	switch {
	case gone && stop.Kind != replay.StopEnd:
		signal = 0
	case stop.Kind == replay.StopEnd && stop.Signal != 0 && s.reason == "":
		signal = gdbSignal(stop.Signal)
	case stop.Kind == replay.StopInterrupt:
		signal = gdbInterrupt
	case stop.Kind == replay.StopEvent && s.reason == "":
		number, err := s.Session.Signal()
		if err != nil {
			return "", err
		}
		if number != 0 {
			signal = gdbSignal(number)
		}
	}
	reason := s.reason
	s.reason = ""
	switch {
	case reason != "":
	case stop.Kind == replay.StopBreakpoint:
		reason = "swbreak:;"
	case stop.Kind == replay.StopWatch:
		reason = s.points.reasonOf(stop.Watch)
	case stop.Kind == replay.StopEnd && stop.Signal == 0:
		reason = "replaylog:end;"
	}
	if stop.Thread == 0 {
		return fmt.Sprintf("S%02x", signal), nil
	}
	return s.threadReply(signal, reason, stop.Thread)
}

// threadReply is the stop reply for a thread, with gdb's number of a signal.
func (s *Server) threadReply(signal int, reason string, thread uint32) (string, error) {
	f, err := s.file(thread)
	if err != nil {
		return "", err
	}
	value := func(index int) string { return hex.EncodeToString(f.general[8*index : 8*index+8]) }
	return fmt.Sprintf("T%02x%s06:%s;07:%s;10:%s;thread:%x;", signal, reason, value(indexRBP), value(indexRSP), value(indexRIP), thread), nil
}
