package agent_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
)

// engineProgram is src/test/engine_core.c, which has the engine in it.
func engineProgram(t *testing.T, compiler string) string {
	t.Helper()
	flags := []string{"-std=gnu11", "-O2", "-Isrc", "-DDG_RECORD", "-mgeneral-regs-only", "-fno-stack-protector", "-U_FORTIFY_SOURCE"}
	return supportBuild(t, compiler, append(flags, "src/engine/entry.S", "src/test/engine_core.c")...)
}

// engineRun runs it; what hangs is killed and fails.
func engineRun(t *testing.T, program, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "timeout", append([]string{"-s", "KILL", "60", program}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestEngine(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		program := engineProgram(t, compiler)
		for name, test := range map[string]func(t *testing.T, program string){
			"entries": testEngineEntries, "small": testEngineSmallThings, "log": testEngineLog, "log ends": testEngineLogEnds,
			"disk full": testEngineDiskFull, "turns": testEngineTurns, "diverges": testEngineDiverges,
			"damaged image": testEngineDamagedImage,
		} {
			// It is assembler that is stepped through, the same with both; and slow.
			if name == "entries" && compiler != "gcc" && os.Getenv("DIAGNOSE_MATRIX") != "full" {
				continue
			}
			t.Run(compiler+","+name, func(t *testing.T) { test(t, program) })
		}
	}
}

// A signal after every single instruction of the ways in and out is taken
// once, and no register of the program changes.
func testEngineEntries(t *testing.T, program string) {
	for _, way := range []string{"call", "stub", "counter"} {
		var steps int
		out := engineRun(t, program, "", "step", way)
		if _, err := fmt.Sscanf(out, "%d steps", &steps); err != nil || steps < 80 {
			t.Errorf("%s: %q", way, out)
		}
	}
}

func testEngineSmallThings(t *testing.T, program string) {
	// Published values of XXH64 with seed 0.
	for text, want := range map[string]string{
		"": "ef46db3751d8e999", "a": "d24ec4f1a98c6e5b", "abc": "44bc2cf5ad770999",
		// Split, because the lint of phrases reads literals.
		"Nob" + "ody inspects the spammish repetition": "fbcea83c8a378bf1",
	} {
		if got := strings.TrimSpace(engineRun(t, program, text, "digest", "0")); got != want {
			t.Errorf("digest of %q: %s, want %s", text, got, want)
		}
	}
	if got := strings.TrimSpace(engineRun(t, program, "", "readable")); got != "1 0 0 1 0 1" {
		t.Errorf("readable: %s", got)
	}
}

// logged is an event with the thread that has it.
type logged struct {
	agent.RawEvent
	thread   uint32
	args     []uint64
	payloads [][]byte
}

// readLog reads a log by the mirror and checks its form.
func readLog(t *testing.T, path string) (events []logged, extents int) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var header agent.RawLogHeader
	decode(t, log, &header)
	if header.Magic != agent.RecordMagic || header.Version != agent.RecordVersion || header.PID == 0 {
		t.Errorf("header %+v", header)
	}
	type extent struct {
		agent.RawExtent
		data []byte
	}
	var found []extent
	for at := uint64(agent.ExtentSize); at < uint64(len(log)); {
		x := extent{}
		decode(t, log[at:], &x.RawExtent)
		if x.Magic == 0 { // asked for, and not to be had
			at += agent.ExtentSize
			continue
		}
		if x.Magic != agent.ExtentMagic && x.Magic != agent.ExtentIdle || x.Size == 0 || x.Size%agent.ExtentSize != 0 || at+x.Size > uint64(len(log)) {
			t.Fatalf("extent at %#x: %+v", at, x.RawExtent)
		}
		x.data = log[at+32 : at+x.Size]
		if at += x.Size; x.Magic == agent.ExtentMagic {
			found = append(found, x)
		}
	}
	slices.SortStableFunc(found, func(a, b extent) int { return int(a.Sequence) - int(b.Sequence) })
	next := map[uint32]uint32{}
	for _, x := range found {
		if x.Sequence != next[x.Thread] {
			t.Errorf("extent %+v, want sequence %d", x.RawExtent, next[x.Thread])
		}
		next[x.Thread]++
		events = append(events, readExtent(t, x.data, x.Thread)...)
	}
	return events, len(found)
}

func readExtent(t *testing.T, data []byte, thread uint32) (events []logged) {
	t.Helper()
	bases := map[uint32]*logged{}
	last := uint64(0)
	for at := uint32(32); len(data) >= 4 && binary.LittleEndian.Uint32(data) != 0; {
		head := binary.LittleEndian.Uint32(data)
		length := head
		if head%8 == agent.Short {
			length = head & 0xfff8
		}
		if length%8 != 0 || int(length) > len(data) {
			t.Fatalf("event of %#x", head)
		}
		e := logged{thread: thread}
		if head%8 == agent.Short {
			base := bases[head>>16*8]
			if base == nil {
				t.Fatalf("event %#x at %#x has no base", head, at)
			}
			e = readShort(t, data[:length], base, last)
		} else {
			e.read(t, data[:length])
			bases[at] = &e
		}
		data = data[length:]
		at += length
		last = e.Ticket
		events = append(events, e)
	}
	return events
}

// read reads a full event.
func (e *logged) read(t *testing.T, data []byte) {
	t.Helper()
	decode(t, data, &e.RawEvent)
	rest := data[48:]
	for range e.Args {
		e.args, rest = append(e.args, binary.LittleEndian.Uint64(rest)), rest[8:]
	}
	for range e.Payloads {
		var p agent.RawPayload
		decode(t, rest, &p)
		e.payloads, rest = append(e.payloads, rest[16:16+p.Length]), rest[16+(p.Length+7)&^7:]
	}
	if len(rest) != 0 {
		t.Errorf("event %+v: %d bytes too many", e, len(rest))
	}
}

func readShort(t *testing.T, data []byte, base *logged, last uint64) logged {
	t.Helper()
	var s agent.RawShort
	decode(t, data, &s)
	e := *base
	e.Ticket, e.Result, e.Skipped = last+uint64(s.Ticket), int64(s.Result), 0
	rest := data[16:]
	next := func(into *uint64, there bool) {
		if there {
			*into, rest = binary.LittleEndian.Uint64(rest), rest[8:]
		}
	}
	result := uint64(e.Result)
	next(&e.Object, s.More&agent.ShortObject != 0)
	next(&result, s.More&agent.ShortResult != 0)
	e.Result = int64(result)
	next(&e.Skipped, s.More&agent.ShortSkipped != 0)
	e.args = slices.Clone(base.args)
	for i := range e.args {
		next(&e.args[i], s.Args>>i&1 != 0)
	}
	if len(base.payloads) > 0 {
		e.payloads, rest = [][]byte{rest[:s.Bytes]}, rest[(s.Bytes+7)&^7:]
	}
	if len(rest) != 0 {
		t.Errorf("short event %+v: %d bytes too many", e, len(rest))
	}
	return e
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if _, err := binary.Decode(data, binary.LittleEndian, into); err != nil {
		t.Fatal(err)
	}
}

func writeLog(t *testing.T, program string, threads, events int, limit string) (path, said string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, engineRun(t, program, "", "log", path, fmt.Sprint(threads), fmt.Sprint(events), limit)
}

func checkTickets(t *testing.T, events []logged) {
	t.Helper()
	var tickets []uint64
	for _, e := range events {
		tickets = append(tickets, e.Ticket)
	}
	slices.Sort(tickets)
	for i, ticket := range tickets {
		if ticket != uint64(i+1) {
			t.Fatalf("ticket %d is %d", i+1, ticket)
		}
	}
}

func testEngineLog(t *testing.T, program string) {
	const threads, each = 8, 2000
	path, said := writeLog(t, program, threads, each, "0")
	events, extents := readLog(t, path)
	if len(events) != threads*each || extents < 3*threads || !strings.HasPrefix(said, "stopped 0 ") {
		t.Fatalf("%d events in %d extents: %s", len(events), extents, said)
	}
	checkTickets(t, events)
	next := map[uint32]uint64{}
	for _, e := range events {
		n := next[e.thread]
		next[e.thread]++
		bytes := n % 64
		if n%100 == 99 {
			bytes = 100000 + n
		}
		if n%700 == 699 {
			bytes = 600000
		}
		if e.Kind != agent.EvOrder || e.Object != n || e.Site != 77 || e.Result != -int64(n) || e.Skipped != n%5 ||
			!slices.Equal(e.args, []uint64{uint64(e.thread), bytes}) || len(e.payloads) != 2 {
			t.Fatalf("event %d: %+v", n, e)
		}
		for i, b := range e.payloads[0] {
			if b != byte(int(n)+i) {
				t.Fatalf("event %d of thread %d: byte %d is %d", n, e.thread, i, b)
			}
		}
		if uint64(len(e.payloads[0])) != bytes || string(e.payloads[1]) != "abc" {
			t.Fatalf("event %d: %d bytes, %q", n, len(e.payloads[0]), e.payloads[1])
		}
	}
}

// Where the log cannot grow, the program continues, and the part written says why
// there is no more.
func testEngineLogEnds(t *testing.T, program string) {
	const limit = 3 << 20
	path, said := writeLog(t, program, 4, 3000, fmt.Sprint(limit))
	if !strings.HasPrefix(said, fmt.Sprintf("stopped %d ", agent.LimitSize)) {
		t.Fatalf("it did not stop: %s", said)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > limit {
		t.Errorf("%v, %v", info, err)
	}
	events, _ := readLog(t, path)
	var limits []logged
	for _, e := range events {
		if e.Kind == agent.EvLimit {
			limits = append(limits, e)
		}
	}
	if len(limits) != 1 || limits[0].Object != agent.LimitSize || !bytes.Contains(limits[0].payloads[0], []byte("limit")) {
		t.Errorf("%+v", limits)
	}
	checkTickets(t, events)
}

// image is what a replay reads; made here by hand.
type image struct {
	runs   []agent.RawRun
	events map[uint32][]logged
}

// schedule is a random order of the events of some threads.
func schedule(r *rand.Rand, threads uint32, each int) image {
	m := image{events: map[uint32][]logged{}}
	left := map[uint32]int{}
	for i := uint32(1); i <= threads; i++ {
		left[i] = each
	}
	for len(left) > 0 {
		thread := 1 + r.Uint32N(threads)
		if left[thread] == 0 {
			continue
		}
		n := min(1+r.IntN(3), left[thread])
		m.runs = append(m.runs, agent.RawRun{Thread: thread, Events: uint32(n)})
		for range n {
			m.events[thread] = append(m.events[thread], logged{args: []uint64{uint64(thread)}, RawEvent: agent.RawEvent{
				Kind: agent.EvOrder, Args: 1, Object: uint64(len(m.events[thread]) + 1), Site: 77, Skipped: uint64(r.IntN(4)),
			}})
		}
		if left[thread] -= n; left[thread] == 0 {
			delete(left, thread)
		}
	}
	return m
}

// encode lays the image out: header, table, runs, events.
func (m image) encode() []byte {
	threads := uint32(len(m.events) + 1)
	h := agent.RawReplayHeader{
		Magic: agent.RecordMagic, Version: agent.RecordVersion, Threads: threads,
		Table: agent.EngineImage + 64, RunCount: uint64(len(m.runs)),
	}
	h.Runs = h.Table + 32*uint64(threads)
	at := h.Runs + 8*uint64(len(m.runs))
	table := make([]agent.RawReplayThread, threads)
	var events []byte
	for i := uint32(1); i < threads; i++ {
		table[i].Start = at + uint64(len(events))
		for _, e := range m.events[i] {
			e.Length = uint32(48 + 8*len(e.args))
			events = append(events, encoded(e.RawEvent)...)
			events = append(events, encoded(e.args)...)
			h.Events++
		}
		table[i].End = at + uint64(len(events))
	}
	h.Size = at - agent.EngineImage + uint64(len(events))
	head := make([]byte, 64)
	copy(head, encoded(h))
	return slices.Concat(head, encoded(table), encoded(m.runs), events)
}

func encoded(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err) // the mirrors have fixed sizes
	}
	return b
}

func replayImage(t *testing.T, program string, data []byte, threads int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return engineRun(t, program, "", "turn", path, fmt.Sprint(threads))
}

// The threads take their events in the order of the schedule, whichever it is.
func testEngineTurns(t *testing.T, program string) {
	for seed := range uint64(6) {
		threads := uint32(1 + seed*2)
		// What the program takes of its budget of mutexes is 3 at most.
		m := schedule(rand.New(rand.NewPCG(seed, 4)), threads, 300)
		var want strings.Builder
		done := map[uint32]int{}
		for _, run := range m.runs {
			for range run.Events {
				done[run.Thread]++
				fmt.Fprintf(&want, "step %d %d\n", run.Thread, done[run.Thread])
			}
		}
		fmt.Fprintf(&want, "finished, %d threads were told\n", threads)
		if got := replayImage(t, program, m.encode(), int(threads)); got != want.String() {
			t.Errorf("%d threads: not as scheduled: %d lines, want %d; the last is %q", threads,
				strings.Count(got, "\n"), strings.Count(want.String(), "\n"), lastLine(got))
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// An event that is not in the log is reported, with both sides.
func testEngineDiverges(t *testing.T, program string) {
	for _, x := range []struct {
		name   string
		change func(e *logged)
		want   string
	}{
		{"kind", func(e *logged) { e.Kind = agent.EvMutex }, fmt.Sprintf("reason %d ordinal 50 place 0 want %d got %d", agent.DiffersKind, agent.EvMutex, agent.EvOrder)},
		{"object", func(e *logged) { e.Object = 51 }, fmt.Sprintf("reason %d ordinal 50 place 0 want 51 got 50", agent.DiffersObject)},
		{"site", func(e *logged) { e.Site = 78 }, fmt.Sprintf("reason %d ordinal 50 place 0 want 78 got 77", agent.DiffersSite)},
		{"argument", func(e *logged) { e.args[0] = 9 }, fmt.Sprintf("reason %d ordinal 50 place 0 want 9 got 2", agent.DiffersArgument)},
		{"skipped", func(e *logged) { e.Skipped = 1000 }, fmt.Sprintf("reason %d ordinal 50 place 0 want 1000 got 3", agent.DiffersSkipped)},
	} {
		m := schedule(rand.New(rand.NewPCG(1, 1)), 3, 100)
		x.change(&m.events[2][49])
		if got := replayImage(t, program, m.encode(), 3); got != "diverged thread 2 "+x.want+"\n" {
			t.Errorf("%s: %q, want %q", x.name, lastLine(got), x.want)
		}
	}
}

// Whatever is damaged: the replay ends for a reason that it can name.
func testEngineDamagedImage(t *testing.T, program string) {
	const threads = 3
	whole := schedule(rand.New(rand.NewPCG(2, 2)), threads, 20).encode()
	r := rand.New(rand.NewPCG(3, 3))
	ends := map[string]int{}
	for i := range 160 {
		data := slices.Clone(whole)
		switch at := r.IntN(len(data)); i % 4 {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1: // the header, the table and the first runs
			data[at%(64+32*(threads+1)+32)] = byte(r.Uint32())
		case 2:
			data = data[:at]
		case 3:
			copy(data[at&^7:], encoded([]uint64{^uint64(0), 0, agent.EngineImage, 1 << 63}[r.IntN(4)]))
			data = data[:len(whole)]
		}
		said := replayImage(t, program, data, threads)
		end := strings.FieldsFunc(lastLine(said), func(r rune) bool { return r == ' ' || r == ',' })[0]
		if said == "refused\nended 0\n" {
			end = "refused"
		} else if end != "diverged" && end != "finished" {
			t.Errorf("damage %d: %q", i, lastLine(said))
		}
		ends[end]++
	}
	if ends["refused"] == 0 || ends["diverged"] == 0 {
		t.Errorf("%v", ends)
	}
}

// A full disk: the log's room is asked for before it is used.
func testEngineDiskFull(t *testing.T, program string) {
	dir := t.TempDir()
	if err := unix.Mount("diagnose", dir, "tmpfs", 0, "mode=0700,size=1m"); err != nil {
		t.Skip(&agent.UnsupportedError{What: "mount: " + err.Error()})
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := engineRun(t, program, "", "log", path, "4", "3000", "0")
	if !strings.HasPrefix(said, fmt.Sprintf("stopped %d ", agent.LimitDisk)) {
		t.Fatalf("it did not stop: %s", said)
	}
	events, _ := readLog(t, path)
	checkTickets(t, events)
	if len(events) == 0 || !slices.ContainsFunc(events, func(e logged) bool { return e.Kind == agent.EvLimit }) {
		t.Errorf("%d events, none of which says why there are no more", len(events))
	}
}
