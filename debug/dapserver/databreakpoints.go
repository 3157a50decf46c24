package dapserver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-dap"
)

// watchpoints is the name of gdb's watchpoints among the breakpoints by file; no file has it.
const watchpoints = "\x00"

// dataBreakpointInfo names the memory of a variable, which a watchpoint can then be set on.
func (s *Server) dataBreakpointInfo(r *dap.DataBreakpointInfoRequest) error {
	x := &dap.DataBreakpointInfoResponse{Response: response(r)}
	memory, err := s.memoryOf(&r.Arguments)
	if err != nil {
		x.Body.Description = err.Error()
	} else {
		x.Body.DataId, x.Body.Description = memory, r.Arguments.Name
		x.Body.AccessTypes = []dap.DataBreakpointAccessType{"write", "readWrite"}
	}
	s.send(x)
	return nil
}

// memoryOf returns an expression for the memory of a variable that has the same meaning in every frame.
func (s *Server) memoryOf(a *dap.DataBreakpointInfoArguments) (string, error) {
	f, err := s.frameOf(a.FrameId)
	if err != nil && a.FrameId != 0 {
		return "", err
	}
	expression := a.Name
	if n := a.VariablesReference; n > 0 && n <= len(s.handles.values) {
		of := &s.handles.values[n-1]
		f = of.frame
		if member := of.members[a.Name]; member != "" {
			info, err := s.gdb.Send("-var-info-path-expression " + member)
			if err != nil {
				return "", err
			}
			expression = info.Text("path_expr")
		}
	}
	address, err := s.evaluated(f, "(unsigned long)&("+expression+")")
	if err != nil {
		return "", err
	}
	size, err := s.evaluated(f, "sizeof("+expression+")")
	if err != nil {
		return "", err
	}
	kind, whole := map[uint64]string{1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}[size]
	if !whole {
		return fmt.Sprintf("*(unsigned char (*)[%d]) %#x", size, address), nil
	}
	return fmt.Sprintf("*(%s *) %#x", kind, address), nil
}

// evaluated returns the value of an expression that is a number.
func (s *Server) evaluated(f *frame, expression string) (uint64, error) {
	info, err := s.gdb.Send("-data-evaluate-expression"+f.where(), expression)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(info.Text("value"), 0, 64)
	if err != nil {
		return 0, errors.New("the value is not in memory")
	}
	return n, nil
}

// setDataBreakpoints replaces the watchpoints.
func (s *Server) setDataBreakpoints(r *dap.SetDataBreakpointsRequest) error {
	x := &dap.SetDataBreakpointsResponse{Response: response(r)}
	s.remove(watchpoints)
	x.Body.Breakpoints = []dap.Breakpoint{}
	for _, b := range r.Arguments.Breakpoints {
		x.Body.Breakpoints = append(x.Body.Breakpoints, s.watch(&b))
	}
	s.send(x)
	return nil
}

func (s *Server) watch(b *dap.DataBreakpoint) dap.Breakpoint {
	command := "-break-watch"
	switch b.AccessType {
	case "readWrite":
		command += " -a"
	case "read":
		return dap.Breakpoint{Message: "reads alone cannot be watched"}
	}
	info, err := s.gdb.Send(command, b.DataId)
	if err != nil {
		return dap.Breakpoint{Message: err.Error()}
	}
	number := info.Tuple("wpt").Text("number") + info.Tuple("hw-awpt").Text("number")
	if strings.TrimSpace(b.Condition) != "" {
		if _, err := s.gdb.Send("-break-condition " + number + " " + oneLine(b.Condition)); err != nil {
			_, _ = s.gdb.Send("-break-delete " + number)
			return dap.Breakpoint{Message: err.Error()}
		}
	}
	s.breakpoints[watchpoints] = append(s.breakpoints[watchpoints], number)
	id, _ := strconv.Atoi(number)
	return dap.Breakpoint{Id: id, Verified: true}
}

// oneLine keeps a text from being two of gdb's commands.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
