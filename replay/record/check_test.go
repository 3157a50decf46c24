package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/agent"
)

// writeRecording makes a whole recording with a child, and returns its
// directory.
func writeRecording(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prog-0001-SIGSEGV")
	child := filepath.Join(dir, ChildrenName, "4712-1")
	for _, d := range []string{child, filepath.Join(dir, ObjectsName)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	list := sampleEvents()
	mapped := Mapped{Data: 4096, Length: 100, Path: "/x"}
	list[5].Payloads = []Payload{{0x7ffff7000000, PayloadFile, mapped.encode()}}
	core := coreHeaders(nil, 1000, 20)
	site := le.AppendUint64(nil, 0x401000)
	site = le.AppendUint64(site, 0x401007)
	for _, v := range []uint32{agent.PatchJump, 7, 5, 0} {
		site = le.AppendUint32(site, v)
	}
	files := map[string][]byte{
		LogName: logBytes(t, list), DataName: make([]byte, 8192), SitesName: site, CoreName: append(core, make([]byte, 1020-len(core))...),
		"objects/00ff": []byte("object"), "children/4712-1/" + LogName: logBytes(t, sampleEvents()),
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := sampleManifest()
	sum := sha256.Sum256([]byte("object"))
	m.Portable[0].SHA256 = hex.EncodeToString(sum[:])
	m.Sizes = Sizes{Log: int64(len(files[LogName])), Data: 8192, Core: int64(len(files[CoreName]))}
	c := sampleManifest()
	c.PID, c.Parent = 4711, &Parent{PID: 4711, Thread: 2, Ordinal: 9, Exec: true}
	c.Children, c.Portable, c.Sizes = nil, nil, Sizes{}
	m.Children[0].PID = 4711
	for d, manifest := range map[string]*Manifest{dir: m, child: c} {
		if err := manifest.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func checkOf(t testing.TB, dir string) *Checked {
	t.Helper()
	c, err := Check(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckWhole(t *testing.T) {
	c := checkOf(t, writeRecording(t))
	if len(c.Problems) != 0 || c.Recordings != 2 || c.Events != 2*uint64(len(sampleEvents())) {
		t.Errorf("%+v", c)
	}
}

// TestCheckNewer: a recording of a newer version is not called damaged.
func TestCheckNewer(t *testing.T) {
	for _, inside := range []string{"", "children/4712-1"} {
		dir := writeRecording(t)
		name := filepath.Join(dir, inside, ManifestName)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Replace(text, []byte(`"version": 1`), []byte(`"version": 99`), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		var newer *VersionError
		if _, err := Check(t.Context(), dir); !errors.As(err, &newer) || newer.Got != 99 {
			t.Errorf("in %q: %v", inside, err)
		}
	}
}

// TestCheckInterrupted: an interrupted check does not say that a recording is damaged.
func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Check(ctx, writeRecording(t)); !errors.Is(err, context.Canceled) || len(c.Problems) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCheckFinds(t *testing.T) {
	edit := func(name, old, new string) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			b, err := os.ReadFile(path)
			if err == nil && !bytes.Contains(b, []byte(old)) {
				err = errors.New(old + " is not in " + name)
			}
			if err != nil {
				return err
			}
			return os.WriteFile(path, bytes.Replace(b, []byte(old), []byte(new), 1), 0o600)
		}
	}
	truncate := func(name string, n int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), n) }
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	link := func(name, to string) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return os.Symlink(to, path)
		}
	}
	for name, c := range map[string]struct {
		change     func(dir string) error
		file, want string
		cut        bool
	}{
		"no manifest":     {remove(ManifestName), "", "no such file", false},
		"no log":          {remove(LogName), LogName, "no header", true},
		"log cut":         {truncate(LogName, extentSize+200), LogName, "was larger", true},
		"log empty":       {truncate(LogName, 0), LogName, "no header", true},
		"log corrupt":     {edit(LogName, "dgextent", "dgexten!"), "", "magic of an extent", false},
		"event corrupt":   {edit(LogName, "\x05\x00\x00\x00\x01\x00\x00\x00hello", "\x7f\x00\x00\x00\x01\x00\x00\x00hello"), LogName, "payload 1 of 127 bytes", false},
		"digest":          {edit(LogName, "\x10\x00\x00\x00\x02", "\x0f\x00\x00\x00\x02"), LogName, "payload digest of 15 bytes", false},
		"other process":   {edit(ManifestName, `"pid": 4711,`, `"pid": 4799,`), LogName, "of process 4711", false},
		"data cut":        {truncate(DataName, 4100), DataName, "100 bytes at 0x1000", true},
		"data gone":       {remove(DataName), DataName, "it had 8192", true},
		"sites cut":       {truncate(SitesName, 20), SitesName, "within an entry", true},
		"sites wrong":     {edit(SitesName, "\x07\x10\x40", "\x99\x10\x40"), SitesName, "continues at", false},
		"core cut":        {truncate(CoreName, 1010), CoreName, "the segment at", true},
		"core gone":       {remove(CoreName), CoreName, "missing", true},
		"core wrong":      {edit(CoreName, "ELF", "elf"), CoreName, "bad magic", false},
		"core is a link":  {link(CoreName, "/etc/passwd"), CoreName, "escapes", false},
		"object changed":  {edit("objects/00ff", "object", "Object"), "objects/00ff", "SHA-256", false},
		"child gone":      {remove("children/4712-1"), "children/4712-1", "no such file", false},
		"child is a link": {link("children/4712-1", "../."), "children/4712-1", "not a directory", false},
		"child of none":   {edit("children/4712-1/"+ManifestName, `"ordinal": 9`, `"ordinal": 8`), ManifestName, "event 9 of thread 2", false},
		"unfinished":      {edit(ManifestName, `"kind": "signal"`, `"kind": "running"`), ManifestName, "did not live", true},
		"other thread":    {edit(ManifestName, `"thread": 2,`+"\n    \"tid\"", `"thread": 3,`+"\n    \"tid\""), ManifestName, "thread 3", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeRecording(t)
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(checkOf(t, dir).Problems, func(p Problem) bool {
				return p.File == c.file && p.Cut == c.cut && strings.Contains(p.Err.Error(), c.want)
			})
			if !found {
				t.Errorf("%+v, want %q of %q", checkOf(t, dir).Problems, c.want, c.file)
			}
		})
	}
	if _, err := Check(context.Background(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// A recording whose recorder was killed opens, with the events that were written.
func TestOpenUnfinished(t *testing.T) {
	dir := writeRecording(t)
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Outcome, m.Sizes = Outcome{Kind: OutcomeRunning}, Sizes{}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, LogName), extentSize+300); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	list, err := collect(r.Log.Ordered())
	var cut *CutError
	if len(list) == 0 || !errors.As(err, &cut) {
		t.Errorf("%d events, %v", len(list), err)
	}
}

func TestOpenChildAndParent(t *testing.T) {
	r, err := Open(writeRecording(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	child, err := r.Child(r.Manifest.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	parent, err := child.Parent()
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	if parent.Dir != r.Dir {
		t.Errorf("the parent is %s, want %s", parent.Dir, r.Dir)
	}
	if _, err := r.Parent(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a recording that lies nowhere has the parent %v", err)
	}
	if _, err := r.Child(Child{Path: "../prog-0001-SIGSEGV"}); err == nil {
		t.Error("a child outside was opened")
	}
}

func TestSummary(t *testing.T) {
	b := logBytes(t, sampleEvents())
	s, err := mustReadLog(t, b).Summarize()
	if err != nil {
		t.Fatal(err)
	}
	bytesOf := func(thread uint32) (n int64) {
		for _, e := range sampleEvents() {
			if e.Thread == thread {
				b, _ := e.Encode(nil)
				n += int64(len(b))
			}
		}
		return n
	}
	want := []ThreadSummary{
		{Index: 1, TID: 4711, Events: 6, Bytes: bytesOf(1), Ended: true},
		{Index: 2, Parent: 1, TID: 4712, Events: 7, Bytes: bytesOf(2), Skipped: 7, Ended: true},
	}
	if d := cmp.Diff(want, s.Threads); d != "" {
		t.Error(d)
	}
	if s.Events != 13 || s.Kinds[0].Kind != KindSyscall || s.Kinds[0].Events != 3 || len(s.Calls) != 3 || s.Calls[2].Number != 202 ||
		s.Calls[2].Errors != 1 {
		t.Errorf("%+v", s)
	}
	if len(s.Limits) != 1 || s.Limits[0] != (Limit{Kind: "syscall", Text: "bpf\n\xff", Thread: 2, Ordinal: 6}) {
		t.Errorf("limits %+v", s.Limits)
	}
	// After a broken event of one thread the other threads still count.
	events, _ := collect(mustReadLog(t, b).Ordered())
	b[events[1].Offset] = 3
	s, err = mustReadLog(t, b).Summarize()
	if err != nil || s.Events != 1+7 || s.Threads[0].Err == nil || s.Threads[1].Err != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSchedule(t *testing.T) {
	l := mustReadLog(t, logBytes(t, sampleEvents()))
	s, err := l.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Schedule{{1, 3}, {2, 2}, {1, 2}, {2, 5}, {1, 1}}); !slices.Equal(s, want) {
		t.Errorf("%v, want %v", s, want)
	}
	again, err := ParseSchedule("# made by hand\n" + s.String())
	if err != nil || !slices.Equal(s, again) {
		t.Errorf("%v, %v", again, err)
	}
	for _, bad := range []string{"1", "0 1", "1 0", "1 2 3", "65536 1", "1 4294967296", "x 1"} {
		if _, err := ParseSchedule(bad); err == nil {
			t.Errorf("%q is a schedule", bad)
		}
	}
}

// A replayed process finds in the image what the log holds.
func TestImage(t *testing.T) {
	l := mustReadLog(t, logBytes(t, sampleEvents()))
	s, _ := l.Schedule()
	f := new(memoryFile)
	image, err := l.WriteImage(f, s, ImageOptions{Skipped: map[uint32]uint64{2: 5}})
	if err != nil {
		t.Fatal(err)
	}
	word := func(at uint64) uint64 { return le.Uint64(f.b[at:]) }
	offset := func(addr uint64) uint64 { return addr - agent.EngineImage }
	if word(0) != agent.RecordMagic || word(8) != agent.RecordVersion|3<<32 || word(48) != uint64(len(f.b)) || image.Size != int64(len(f.b)) {
		t.Errorf("header % x, %d bytes", f.b[:56], len(f.b))
	}
	table, runs := offset(word(16)), offset(word(24))
	if word(32) != uint64(len(s)) || word(40) != 13 {
		t.Errorf("%d runs, %d events", word(32), word(40))
	}
	for i, r := range s {
		if word(runs+uint64(i)*8) != uint64(r.Thread)|uint64(r.Events)<<32 {
			t.Errorf("run %d is %#x, want %v", i, word(runs+uint64(i)*8), r)
		}
	}
	for thread, skipped := range map[uint64]uint64{1: ^uint64(0), 2: 5} {
		at := table + thread*32
		if word(at+16) != skipped {
			t.Errorf("thread %d: skipped %d", thread, word(at+16))
		}
		b := f.b[offset(word(at)):offset(word(at+8))]
		if word(at)%8 != 0 || uint64(image.Threads[uint32(thread)].Start) != word(at) {
			t.Errorf("thread %d begins at %#x", thread, word(at))
		}
		for e := range l.Events(uint32(thread)) {
			got, n, err := DecodeEvent(b)
			if err != nil {
				t.Fatal(err)
			}
			b = b[n:]
			got.Thread = uint32(thread)
			if d := cmp.Diff(bare([]Event{*e}), bare([]Event{*got})); d != "" {
				t.Error(d)
			}
		}
		if len(b) != 0 {
			t.Errorf("thread %d: %d bytes more", thread, len(b))
		}
	}
	if _, err := l.WriteImage(new(memoryFile), append(s, Turn{2, 1}), ImageOptions{}); err == nil || !strings.Contains(err.Error(), "8 events of thread 2, the log 7") {
		t.Errorf("a schedule that is too long: %v", err)
	}
}

// TestImageLayout: the sizes are those of the structs.
func TestImageLayout(t *testing.T) {
	var header agent.RawReplayHeader
	var thread agent.RawReplayThread
	var run agent.RawRun
	var event agent.RawEvent
	var payload agent.RawPayload
	var extent agent.RawExtent
	var mapped agent.RawMapped
	var site agent.RawSitePatch
	for _, x := range []struct {
		name      string
		got, want int
	}{
		{"image", imageHeaderSize, sizeOf(header)}, {"thread", imageThreadSize, sizeOf(thread)}, {"run", runSize, sizeOf(run)},
		{"event", eventHeaderSize, sizeOf(event)}, {"payload", payloadHeader, sizeOf(payload)}, {"extent", extentHeaderSize, sizeOf(extent)},
		{"mapped", mappedSize, sizeOf(mapped)}, {"site", siteSize, sizeOf(site)}, {"log", logHeaderSize, sizeOf(agent.RawLogHeader{})},
	} {
		if x.got != x.want {
			t.Errorf("%s has %d bytes, want %d", x.name, x.got, x.want)
		}
	}
}

func sizeOf[T any](v T) int { return binary.Size(v) }

// After the end of the order the threads are read one by one.
func TestCheckBehindTheOrder(t *testing.T) {
	dir := writeRecording(t)
	path := filepath.Join(dir, LogName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, _ := collect(mustReadLog(t, b).Ordered())
	le.PutUint32(b[events[1].Offset:], 3)
	le.PutUint32(b[events[8].Offset:], 5)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := checkOf(t, dir)
	if len(c.Problems) != 2 || !strings.Contains(c.Problems[0].Err.Error(), "event of 3 bytes") || !strings.Contains(c.Problems[1].Err.Error(), "event of 5 bytes") {
		t.Errorf("%+v", c.Problems)
	}
}

// A long list of problems is cut.
func TestCheckManyProblems(t *testing.T) {
	dir := writeRecording(t)
	var list []Event
	for i := range uint64(mostProblems + 5) {
		list = append(list, Event{Thread: 1, Kind: KindSyscall, Ticket: i, Payloads: []Payload{{Kind: PayloadDigest}}})
	}
	list[0] = Event{Thread: 1, Kind: KindStart}
	if err := os.WriteFile(filepath.Join(dir, LogName), logBytes(t, list), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := checkOf(t, dir); len(c.Problems) != mostProblems || c.More < 4 {
		t.Errorf("%d problems and %d more", len(c.Problems), c.More)
	}
}

func FuzzSchedule(f *testing.F) {
	f.Add("1 3\n2 2 # and more\n\n1 4294967295\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			return
		}
		again, err := ParseSchedule(s.String())
		if err != nil || !slices.Equal(s, again) {
			t.Errorf("%v became %v, %v", s, again, err)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var decoded Schedule
		if err := json.Unmarshal(b, &decoded); err != nil || !slices.Equal(s, decoded) {
			t.Errorf("%s became %v, %v", b, decoded, err)
		}
	})
}
