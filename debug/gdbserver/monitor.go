package gdbserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
)

const monitorHelp = `monitor when              the moment: THREAD:EVENT:PC:COUNT
monitor goto MOMENT       where 'continue' leads next; also begin, end
monitor who-wrote ADDRESS SIZE   the last store to a word before here
monitor discard           the next 'continue' stays here, and gives up the changes
monitor leave             leave the recording: the program continues with the changes made here
monitor cause             the cause of the failure, with the moment of each step
Commands of gdb that 'diagnose debug' defines: goto MOMENT, who-wrote EXPRESSION, discard, leave.
`

// monitor answers commands of the user after "monitor".
type monitor struct {
	*Server
	out io.Writer
}

func (s monitor) execute(ctx context.Context, command string) error {
	fields := strings.Fields(command)
	if len(fields) == 0 {
		fields = []string{"help"}
	}
	arguments := fields[1:]
	switch fields[0] {
	case "when":
		return s.tellMoment()
	case "goto":
		return s.setGoal(arguments)
	case "who-wrote":
		return s.whoWrote(arguments)
	case "discard":
		s.staying = true
		fmt.Fprintln(s.out, "The next 'continue' stays here, and gives up the changes.")
		return nil
	case "leave":
		return s.leave()
	case "cause":
		return s.tellCause(ctx)
	}
	_, err := io.WriteString(s.out, monitorHelp)
	return err
}

func (s monitor) tellMoment() error {
	m, err := s.Session.Moment()
	if err != nil {
		return err
	}
	text := m.String()
	if s.Session.Left() != nil {
		text = "The process has left the recording at " + text + "; 'discard' goes back there."
	}
	fmt.Fprintln(s.out, text)
	return nil
}

// setGoal notes where the next continue leads: gdb learns of another place of the program only by a stop.
func (s monitor) setGoal(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("goto takes one moment, as in 1:40:0x401156, or begin, or end")
	}
	var goal debug.Position
	switch arguments[0] {
	case "begin":
		goal = s.Session.Begin()
	case "end":
		goal = debug.Position{End: true}
	default:
		m, err := evidence.ParseMoment(arguments[0])
		if err != nil {
			return err
		}
		goal = debug.PositionOf(m)
	}
	s.goal, s.libraries.held = &goal, ""
	fmt.Fprintln(s.out, "The next 'continue' leads there.")
	return nil
}

// whoWrote tells the last store to a word.
func (s monitor) whoWrote(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("who-wrote takes an address and a size in bytes")
	}
	addr, err := strconv.ParseUint(arguments[0], 0, 64)
	if err != nil {
		return fmt.Errorf("%.40q is no address", arguments[0])
	}
	size, err := strconv.ParseUint(arguments[1], 0, 64)
	if err != nil || size == 0 {
		return fmt.Errorf("%.40q is no size in bytes", arguments[1])
	}
	if addr >= 1<<47 {
		return fmt.Errorf("no program has memory at %#x", addr)
	}
	list := words(addr, size, true)
	if list == nil {
		return fmt.Errorf("%d bytes at %#x are more than the debug registers can watch", size, addr)
	}
	w, err := s.Session.LastWrite(list)
	switch {
	case errors.Is(err, debug.ErrLeft):
		return errors.New("the process has left the recording, in which the last store is looked for: 'discard' goes back there")
	case errors.Is(err, debug.ErrBegin):
		fmt.Fprintf(s.out, "No instruction stored to it since the beginning of the recording (%s: the kernel's stores are not seen).\n", evidence.Inferred)
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintf(s.out, "%d bytes at %#x were last stored to by thread %d at %s, moment %v", size, addr, w.Before.Thread, s.placeOf(w.Before.PC), w.Before)
	if w.ChangedSince {
		fmt.Fprintf(s.out, "; they have changed since without an instruction that was seen, so the kernel stored to them (%s)", evidence.Inferred)
	}
	fmt.Fprintln(s.out)
	return nil
}

// placeOf names code.
func (s *Server) placeOf(pc evidence.Addr) string {
	name := pc.String()
	// Without a name the address is told.
	_ = s.Session.Do(func(d *replay.DebugStop) error {
		p, err := d.Process()
		if err != nil {
			return err
		}
		if calls := p.Symbolize(pc, image.AtInstruction); len(calls) > 0 {
			name = siteText(&calls[0].Site, pc)
		}
		return nil
	})
	return name
}

func (s monitor) tellCause(ctx context.Context) error {
	if s.Causes == nil {
		return errors.New("no diagnosis is available here")
	}
	causes, err := s.Causes(ctx)
	if err != nil {
		return err
	}
	if len(causes) == 0 {
		fmt.Fprintln(s.out, "No cause was found; 'diagnose crash --recording' names the steps that found nothing.")
	}
	for _, c := range causes {
		fmt.Fprintf(s.out, "%s: %s.\n", c.Proof, c.Summary)
		for i, x := range c.Steps {
			fmt.Fprintf(s.out, "  %d. %s (%s)", i+1, x.Text, x.Proof)
			if x.Moment.Thread != 0 {
				fmt.Fprintf(s.out, "; goto %v", x.Moment)
			}
			fmt.Fprintln(s.out)
		}
	}
	return nil
}

// siteText is FUNCTION (FILE:LINE), as far as it is known.
func siteText(site *evidence.Site, pc evidence.Addr) string {
	switch {
	case site.Function == "":
		return pc.String()
	case site.File == "":
		return site.Function
	}
	return fmt.Sprintf("%s (%s:%d)", site.Function, site.File, site.Line)
}
