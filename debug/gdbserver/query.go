package gdbserver

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strings"

	"diagnose/replay"
)

// query answers the packets that begin with q or Q.
func (s *Server) query(ctx context.Context, packet string) (string, error) {
	name, arguments, _ := strings.Cut(packet, ":")
	switch name {
	case "qSupported":
		return fmt.Sprintf("PacketSize=%x;QStartNoAckMode+;vContSupported+;swbreak+;hwbreak+;ReverseStep+;ReverseContinue+;"+
			"QPassSignals+;qXfer:features:read+;qXfer:threads:read+;qXfer:auxv:read+;qXfer:exec-file:read+;qXfer:libraries-svr4:read+", mostPacket), nil
	case "QStartNoAckMode", "qSymbol":
		return "OK", nil
	case "QPassSignals":
		return s.passSignals(arguments)
	case "qAttached":
		return "1", nil
	case "qC":
		return fmt.Sprintf("QC%x", s.Session.Stop().Thread), nil
	case "qfThreadInfo":
		return s.threadInfo()
	case "qsThreadInfo":
		return "l", nil
	case "qGetTLSAddr":
		return s.threadLocal(arguments)
	case "qXfer":
		return s.transfer(arguments)
	}
	if command, is := strings.CutPrefix(packet, "qRcmd,"); is {
		return s.command(ctx, command)
	}
	return unsupported, nil
}

func (s *Server) threadInfo() (string, error) {
	threads, err := s.list()
	if err != nil {
		return "", err
	}
	var numbers []string
	for _, t := range threads {
		numbers = append(numbers, fmt.Sprintf("%x", t.Number))
	}
	return "m" + strings.Join(numbers, ","), nil
}

// transfer answers qXfer:OBJECT:read:ANNEX:OFFSET,LENGTH.
func (s *Server) transfer(arguments string) (string, error) {
	parts := strings.Split(arguments, ":")
	if len(parts) != 4 || parts[1] != "read" {
		return unsupported, nil
	}
	offset, length, err := parsePair(parts[3])
	if err != nil {
		return "", err
	}
	content, known, err := s.object(parts[0], parts[2])
	if err != nil || !known {
		return unsupported, err
	}
	if offset >= uint64(len(content)) {
		return "l", nil
	}
	rest := content[offset:]
	// A byte may be escaped.
	if most := min(length, mostPacket/2-1); uint64(len(rest)) > most {
		return "m" + string(rest[:most]), nil
	}
	return "l" + string(rest), nil
}

func (s *Server) object(name, annex string) (content []byte, known bool, err error) {
	switch name {
	case "features":
		if annex != "target.xml" {
			return nil, false, nil
		}
		if _, err := s.file(s.Session.Stop().Thread); err != nil {
			return nil, false, err
		}
		return []byte(targetXML(s.features)), true, nil
	case "threads":
		content, err = s.threadsXML()
		return content, true, err
	case "auxv":
		content, err = s.auxv()
		return content, true, err
	case "libraries-svr4":
		content, err = s.readLibraries()
		return content, true, err
	case "exec-file":
		return []byte(s.Program), true, nil
	}
	return nil, false, nil
}

func (s *Server) auxv() (content []byte, err error) {
	err = s.Session.Do(func(d *replay.DebugStop) error {
		content, err = d.Auxv()
		return err
	})
	return content, err
}

func (s *Server) threadsXML() ([]byte, error) {
	threads, err := s.list()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0"?><threads>`)
	for _, t := range threads {
		fmt.Fprintf(&b, `<thread id="%x" name="`, t.Number)
		if err := xml.EscapeText(&b, []byte(t.Name)); err != nil {
			return nil, err
		}
		b.WriteString(`"/>`)
	}
	b.WriteString(`</threads>`)
	return b.Bytes(), nil
}

// console writes a command's output to gdb's console as it comes.
type console struct{ s *Server }

func (c console) Write(p []byte) (int, error) {
	const most = mostPacket/2 - 1
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), most)]
		if err := writePacket(c.s.out, []byte("O"+hex.EncodeToString(part))); err != nil {
			return 0, err
		}
		rest = rest[len(part):]
	}
	return len(p), nil
}

func (s *Server) command(ctx context.Context, digits string) (string, error) {
	text, err := hex.DecodeString(digits)
	if err != nil {
		return "E01", nil
	}
	if err := (monitor{s, console{s}}).execute(ctx, strings.TrimSpace(string(text))); err != nil {
		fmt.Fprintln(console{s}, oneLine(err.Error()))
	}
	return "OK", nil
}
