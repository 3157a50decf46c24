package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// Limits bound what code may do at one place.
type Limits struct {
	// Time is how long it may run; 0 means DefaultTime. Output is how many bytes it may print; 0 means DefaultOutput.
	Time   time.Duration
	Output int
}

// The usual limits.
const (
	DefaultTime   = 10 * time.Second
	DefaultOutput = 16 << 20
)

// startTime bounds the start of a process, and the end of one that was told to end.
const startTime = 10 * time.Second

// Argument is what a slot stands for at a stop: the object at Addr, a copy of Bytes, or else nothing.
type Argument struct {
	Addr    evidence.Addr
	Bytes   []byte
	Missing bool
}

// Failure says why code did not run to its end.
type Failure struct {
	Kind FailureKind
	// Address was used; 0 if it is not known. Mapped: the program has memory there.
	Address evidence.Addr
	Mapped  bool
	// Number is that of the signal or the system call, or the exit status.
	Number int
	// Slot is the variable of a Missing, or the function of a Call or Called; -1: none.
	Slot int
	// File and Line are where the code was; empty if that is not known.
	File string
	Line int
	// Text is why a Load or Called failed.
	Text string
	// Over: the process has ended, so no more code can run.
	Over bool
}

// Memory reads len(p) bytes of the program, or fails.
type Memory func(addr evidence.Addr, p []byte) error

// Process runs code. It is for one goroutine.
type Process struct {
	binary   *Binary
	limits   Limits
	program  *neighbour
	own      *Own // from the first call of a function of the program on
	command  *exec.Cmd
	ended    chan struct{}
	release  chan struct{}
	commands *os.File
	events   *os.File
	control  *control
	pool     []byte
	pages    pages
	failed   *Failure
	text     []byte
	pinned   bool
}

// Start starts a process for the code of a binary, for the program with a process id.
func (b *Binary) Start(pid int, limits Limits) (*Process, error) {
	if limits.Time == 0 {
		limits.Time = DefaultTime
	}
	if limits.Output == 0 {
		limits.Output = DefaultOutput
	}
	// Where the kernel puts the stack and the executable is random. They may be where the program has memory.
	const tries = 32
	for range tries {
		p, err := b.start(pid, limits)
		if err != nil {
			return nil, err
		}
		free, err := p.program.settle(p.command.Process.Pid)
		if err == nil && free {
			return p, nil
		}
		p.Close()
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil, &UnsupportedError{"the program has memory wherever a process for the code was tried"}
}

func (b *Binary) start(pid int, limits Limits) (p *Process, err error) {
	p = &Process{binary: b, limits: limits, ended: make(chan struct{}), release: make(chan struct{})}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.program, err = openNeighbour(pid); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	shared, mapped, err := sharedMemory("diagnose-control", int(unsafe.Sizeof(control{})))
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer shared.Close()
	p.control = (*control)(unsafe.Pointer(&mapped[0]))
	p.control.Version = version
	pool, mapped, err := sharedMemory("diagnose-pages", poolPages*pageSize)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer pool.Close()
	p.pool = mapped
	p.pages = pages{pool: mapped, program: p.program}
	readable, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", pool.Fd())) // the process can map it for reading only
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer readable.Close()
	if err := p.launch(shared, readable); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	event, err := p.wait(startTime)
	if err != nil {
		return nil, err
	}
	if event != eventReady {
		f := p.failure(event)
		return nil, &UnsupportedError{"the code cannot be started: " + f.Text}
	}
	return p, nil
}

// sharedMemory makes memory that a process can map by a descriptor.
func sharedMemory(name string, size int) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	size = (size + pageSize - 1) &^ (pageSize - 1)
	err = unix.Ftruncate(fd, int64(size))
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	var mapped []byte
	if err == nil {
		mapped, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("memfd: %w", err)
	}
	return f, mapped, nil
}

// launch starts the process, which ends with this one: a thread of its own waits for it, since the kernel sends the signal of
// PR_SET_PDEATHSIG when that thread ends. Where it is a child of another thread, a replay does not wait for it by mistake.
func (p *Process) launch(shared, pool *os.File) error {
	commands, toProcess, err := os.Pipe()
	if err != nil {
		return err
	}
	defer commands.Close()
	p.commands = toProcess
	fromProcess, events, err := os.Pipe()
	if err != nil {
		return err
	}
	defer events.Close()
	p.events = fromProcess
	p.command = exec.Command(filepath.Join(p.binary.dir, programName), filepath.Join(p.binary.dir, blocksName))
	p.command.Env, p.command.Dir = []string{}, "/"
	p.command.ExtraFiles = []*os.File{shared, pool, commands, events}
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setsid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			p.command.Wait() //nolint:errcheck // its status is in ProcessState
			close(p.ended)
			<-p.release
		}
	}()
	if err := <-started; err != nil {
		p.command = nil
		return err
	}
	return nil
}

// Close ends the process.
func (p *Process) Close() {
	if p.command != nil {
		p.command.Process.Kill()
		<-p.ended
		close(p.release)
		p.command = nil
	}
	for _, f := range []*os.File{p.commands, p.events} {
		if f != nil {
			f.Close()
		}
	}
	if p.control != nil {
		unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(p.control)), (int(unsafe.Sizeof(control{}))+pageSize-1)&^(pageSize-1)))
		p.control = nil
	}
	if p.pool != nil {
		unix.Munmap(p.pool)
		p.pool = nil
	}
	p.program.close()
	p.own.close()
}

// errTime: no event came in time.
var errTime = errors.New("sandbox: the process does not answer")

// wait waits for the next event. 0 is the end of the process without one.
func (p *Process) wait(within time.Duration) (uint32, error) {
	until := time.Now().Add(within)
	for {
		left := time.Until(until)
		if left <= 0 {
			return 0, errTime
		}
		fds := []unix.PollFd{{Fd: int32(p.events.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("sandbox: %w", err)
		}
		var b [1]byte
		if n, err := unix.Read(int(fds[0].Fd), b[:]); err != nil || n == 0 {
			return 0, nil // it has ended
		}
		return p.control.Event, nil
	}
}

// proceed has the process continue.
func (p *Process) proceed() error {
	if _, err := unix.Write(int(p.commands.Fd()), []byte{0}); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// Run runs a block with an argument for each slot. It returns what the code printed, which is valid until the next call, and why it
// did not end by itself, if so. The error is that of the tool.
func (p *Process) Run(number int, arguments []Argument, program Program) (output []byte, failure *Failure, err error) {
	p.text = p.text[:0]
	if p.failed != nil {
		return nil, p.failed, nil
	}
	if !p.pinned {
		p.pin()
	}
	c := p.control
	c.Block, c.Slots, c.Output, c.Failure = uint32(number), uint32(len(arguments)), 0, 0
	if !p.program.isFree() {
		return nil, p.over(Failure{Kind: Collision, Slot: -1}), nil
	}
	if err := p.place(arguments); err != nil {
		return nil, nil, err
	}
	p.send(p.pages.begin(program.Read))
	why := ""
	until := time.Now().Add(p.limits.Time)
	for {
		if err := p.proceed(); err != nil {
			return nil, nil, err
		}
		event, err := p.wait(time.Until(until))
		if errors.Is(err, errTime) {
			return p.text, p.tooLong(), nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch event {
		case eventWanted:
			p.send(p.pages.want(c.Address, program.Read))
			continue
		case eventCalled:
			if why, err = p.call(program, time.Until(until)); err != nil {
				return nil, nil, err
			}
			if soon := time.Now().Add(time.Second); until.Before(soon) {
				until = soon // the call took all of it
			}
			continue
		case eventPrinted:
			if p.take(); len(p.text) >= p.limits.Output {
				return p.text, p.over(Failure{Kind: Output, Slot: -1}), nil
			}
			c.Operations = 0
			continue
		}
		p.take()
		if event == eventDone {
			return p.text, nil, nil
		}
		f := p.failure(event)
		p.complete(f, why, arguments, program)
		if f.Over {
			p.over(*f)
		}
		return p.text, f, nil
	}
}

// complete adds to a failure what the process does not know. why is why a function of the program did not return.
func (p *Process) complete(f *Failure, why string, arguments []Argument, program Program) {
	if f.Kind == Store || f.Kind == Call {
		var b [1]byte
		f.Mapped = program.Read(f.Address, b[:]) == nil
	}
	if f.Kind != Call {
		return
	}
	for i := range arguments {
		if a := &arguments[i]; !a.Missing && a.Bytes == nil && a.Addr == f.Address {
			f.Slot = i
		}
	}
	if why != "" {
		f.Kind, f.Text = Called, why
	}
}

// pin has the process run on the processors that this thread may use: a stop of a replay costs half as much on one.
func (p *Process) pin() {
	p.pinned = true
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		unix.SchedSetaffinity(p.command.Process.Pid, &set)
	}
}

// send notes operations for the next command.
func (p *Process) send(list []operation) {
	p.control.Operations = uint32(copy(p.control.Operation[:], list))
}

// take takes the output.
func (p *Process) take() {
	n := min(p.control.Output, outputSize)
	p.text = append(p.text, p.control.Text[:n]...)
	p.control.Output = 0
}

// place writes the addresses of the slots, and the copies of values that are in no memory.
func (p *Process) place(arguments []Argument) error {
	table := unsafe.Slice((*uint64)(unsafe.Pointer(&p.pool[0])), mostSlots)
	at := mostSlots * 8
	for i, a := range arguments {
		switch {
		case a.Missing:
			table[i] = p.control.Missing + uint64(i)<<missingShift
		case a.Bytes == nil:
			table[i] = uint64(a.Addr)
		default:
			at = (at + 15) &^ 15
			if at+len(a.Bytes) > argumentPages*pageSize {
				return &UnsupportedError{"the values of the variables are too large to be copied"}
			}
			copy(p.pool[at:], a.Bytes)
			table[i] = p.control.Arguments + uint64(at)
			at += len(a.Bytes)
		}
	}
	return nil
}

// over notes that no more code can run.
func (p *Process) over(f Failure) *Failure {
	f.Over = true
	p.failed = &f
	return p.failed
}

// tooLong asks the process where it is, and ends it.
func (p *Process) tooLong() *Failure {
	f := &Failure{Kind: Time, Slot: -1}
	if p.command.Process.Signal(unix.SIGUSR2) == nil {
		for range 2 { // an event of before may come first
			if event, err := p.wait(time.Second); err == nil && event == eventEnded {
				f = p.failure(event)
				break
			}
		}
	}
	f.Kind = Time
	p.take()
	p.command.Process.Kill()
	return p.over(*f)
}

// failure reads why code failed. What the process wrote is not trusted.
func (p *Process) failure(event uint32) *Failure {
	c := p.control
	if event == 0 {
		<-p.ended
		f := &Failure{Kind: Exit, Slot: -1, Over: true}
		if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			f.Kind, f.Number = Signal, int(status.Signal())
		} else if ok {
			f.Number = status.ExitStatus()
		}
		return f
	}
	f := &Failure{Kind: FailureKind(c.Failure), Address: evidence.Addr(c.Address), Slot: -1, Over: event != eventFailed}
	switch f.Kind {
	case Missing:
		if n := (c.Address - c.Missing) >> missingShift; n < uint64(p.binary.slots) {
			f.Slot = int(n)
		}
		f.Address = 0
	case Read, Store:
		if c.Address == ^uint64(0) {
			f.Address = 0
		}
	case Signal, SystemCall:
		f.Number, f.Address = int(int32(c.Address)), 0
	case Load:
		n := min(c.Output, outputSize)
		f.Text = string(c.Text[:n])
	}
	for _, pc := range c.Frame[:min(c.Frames, mostFrames)] {
		if file, line := p.binary.line(pc - c.Base); line != 0 {
			f.File, f.Line = file, line
			break
		}
	}
	return f
}
