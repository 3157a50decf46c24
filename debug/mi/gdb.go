package mi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// GDB is a running gdb.
type GDB struct {
	command *exec.Cmd
	in      io.WriteCloser
	on      func(Record)

	mu      sync.Mutex
	token   int
	waiting map[string]chan Record
	ended   bool
}

// longestLine bounds the bytes of a line of gdb's output.
const longestLine = 64 << 20

// Start starts gdb with arguments. on is called for every record that is no result, in order; it must not send commands.
func Start(path string, arguments []string, on func(Record)) (*GDB, error) {
	g := &GDB{command: exec.Command(path, append([]string{"--interpreter=mi3"}, arguments...)...), on: on, waiting: map[string]chan Record{}}
	g.command.Stderr = os.Stderr
	var err error
	if g.in, err = g.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("mi: %w", err)
	}
	out, err := g.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("mi: %w", err)
	}
	if err := g.command.Start(); err != nil {
		return nil, fmt.Errorf("mi: %w", err)
	}
	go g.read(out)
	return g, nil
}

// read passes records on until gdb ends.
func (g *GDB) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		r, err := ParseRecord(lines.Text())
		if err != nil || r.Kind == 0 {
			continue // the program's own output may be among gdb's
		}
		if r.Kind != '^' {
			g.on(r)
			continue
		}
		g.mu.Lock()
		answer := g.waiting[r.Token]
		delete(g.waiting, r.Token)
		g.mu.Unlock()
		if answer != nil {
			answer <- r
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, answer := range g.waiting {
		close(answer)
	}
}

// ErrEnded says that gdb has ended.
var ErrEnded = errors.New("mi: gdb has ended")

// Error is gdb's answer to a command that failed.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// Send sends a command and waits for its result. Parameters are quoted.
func (g *GDB) Send(command string, parameters ...string) (Tuple, error) {
	for _, p := range parameters {
		command += " " + quote(p)
	}
	answer := make(chan Record, 1)
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return nil, ErrEnded
	}
	g.token++
	token := strconv.Itoa(g.token)
	g.waiting[token] = answer
	_, err := io.WriteString(g.in, token+command+"\n")
	g.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("mi: %w", err)
	}
	r, open := <-answer
	switch {
	case !open:
		return nil, ErrEnded
	case r.Class == "error":
		return nil, &Error{r.Results.Text("msg")}
	}
	return r.Results, nil
}

// quote makes a string of C in one line.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "").Replace(text) + `"`
}

// Close ends gdb.
func (g *GDB) Close() error {
	g.in.Close()
	return g.command.Wait()
}
