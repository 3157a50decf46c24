package gdbserver

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
)

// threadLocal answers qGetTLSAddr:THREAD,OFFSET,LINK: where a thread has the thread-local variable at an offset in the block of the object with
// that struct link_map. gdb gives 0 for a program without a list of libraries.
func (s *Server) threadLocal(arguments string) (string, error) {
	number, rest, _ := strings.Cut(arguments, ",")
	thread, err := parseThread(number)
	if err != nil {
		return "", err
	}
	offset, node, err := parsePair(rest)
	if err != nil {
		return "", err
	}
	if thread == 0 {
		thread = s.selected
	}
	var at evidence.Addr
	err = s.inspectImage(func(p *image.Process) error {
		m := p.ModuleOfLink(evidence.Addr(node))
		if m == nil {
			return fmt.Errorf("thread-local storage: no object is loaded that has its struct link_map at %#x", node)
		}
		for i := range p.Threads {
			if t := &p.Threads[i]; t.Ref.Number == int(thread) {
				at, err = p.ThreadLocal(t, m)
				return err
			}
		}
		return fmt.Errorf("thread-local storage: there is no thread %d", thread)
	})
	if err != nil {
		if s.Note != nil {
			s.Note(oneLine(err.Error()))
		}
		return "", err
	}
	return fmt.Sprintf("%x", uint64(at)+offset), nil
}

// inspectImage calls a function with the process that gdb sees, opened for analysis.
func (s *Server) inspectImage(call func(*image.Process) error) error {
	return s.Session.Inspect(func(x debug.State) error {
		switch x := x.(type) {
		case *replay.Copy:
			p, err := x.Process()
			if err != nil {
				return err
			}
			return errors.Join(call(p), p.Close())
		case *replay.DebugStop: // which closes it
			p, err := x.Process()
			if err != nil {
				return err
			}
			return call(p)
		}
		return fmt.Errorf("gdbserver: a process of %T", x)
	})
}

// libraries are the lists of libraries that gdb knows.
type libraries struct {
	// known is the document that gdb has read last, or would read; nil: it has never asked for one.
	known []byte
	// held is the stop reply that is to follow the one by which gdb learns that the lists are others; empty: none does.
	held string
	auxv []byte
}

// librariesXML returns the lists of libraries in the form of qXfer:libraries-svr4 (gdb, features/library-list-svr4.dtd).
func (s *Server) librariesXML() ([]byte, error) {
	l := &s.libraries
	if l.auxv == nil {
		auxv, err := s.auxv()
		if err != nil {
			return nil, err
		}
		l.auxv = auxv
	}
	var objects []image.LinkedObject
	err := s.Session.Inspect(func(x debug.State) (err error) {
		objects, err = image.LinkedObjects(x, l.auxv)
		return err
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`<library-list-svr4 version="1.0"`)
	if len(objects) > 0 {
		fmt.Fprintf(&b, ` main-lm="%#x"`, uint64(objects[0].Node))
		objects = objects[1:]
	}
	b.WriteString(">")
	for _, o := range objects {
		if o.Name == "" {
			continue // the executable in another namespace
		}
		b.WriteString(`<library name="`)
		if err := xml.EscapeText(&b, []byte(o.Name)); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, `" lm="%#x" l_addr="%#x" l_ld="%#x" lmid="%#x"/>`, uint64(o.Node), uint64(o.Bias), uint64(o.Dynamic), uint64(o.List))
	}
	b.WriteString("</library-list-svr4>")
	return b.Bytes(), nil
}

// readLibraries is what gdb reads as libraries-svr4.
func (s *Server) readLibraries() ([]byte, error) {
	content, err := s.librariesXML()
	if err == nil {
		s.libraries.known = content
	}
	return content, err
}

// withLibraries returns the reply for a stop. If gdb has other lists of libraries than there are here, that is a reply by which it reads
// them again and continues; the stop's own reply then answers that. Without this gdb would not see what a way that does not lead through the
// dynamic linker's own breakpoint has changed.
func (s *Server) withLibraries(reply string) (string, error) {
	l := &s.libraries
	stop := s.Session.Stop()
	if l.known == nil || stop.Thread == 0 {
		return reply, nil
	}
	content, err := s.librariesXML()
	if err != nil || bytes.Equal(content, l.known) {
		// gdb reads lists that the dynamic linker changes at this moment when they are whole.
		return reply, nil
	}
	l.known, l.held = content, reply
	return s.threadReply(gdbTrap, "library:;", stop.Thread)
}

// takeHeld returns the stop reply that was held back; empty: none was.
func (s *Server) takeHeld() string {
	reply := s.libraries.held
	s.libraries.held = ""
	return reply
}
