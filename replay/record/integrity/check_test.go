package integrity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// recordedLog has an event at which the other thread begins, and payloads of most kinds.
const recordedLog = `log 1 pid 4711
1 t1 start 1(0 0x1267 0x7ffff7d8a740 0x7ffffffde000 0x7ffffffff000) = 0
2 t1 syscall read(3 0x7fffffffe000 16) = 5 at 0x7ffff7e5a1b2 out 0x7fffffffe000:"hello"
3 t1 create 2(0x24a000001000 0x24a001000000 0x401000) = 0
4 t2 start 2(1 0x1268 0x24a000fff000 0x24a000001000 0x24a001000000) = 0
5 t2 mutex 0x404040(lock) = 0 at 0x401020 skipped 7
6 t1 syscall futex(0x404044 0 1) = -4(EINTR) at 0x7ffff7e5a000 interrupted soft
7 t1 mutex 0x404040(try) = 16 at 0x401090
8 t2 syscall write(1 0x404060 3) = 3 at 0x7ffff7e5b1b2 digest 0x404060:xa500a500a500a500a500a500a500a500
9 t2 signal 10(async 0x401033 1 2 3 4 0x401200 0x4000004) = 0 info 0x0:x+128
10 t2 signal-end 10() = 0
11 t2 limit syscall() = 0 text 0x0:"bpf\n\xff"
12 t2 exit 2() = 0
13 t1 end 0() = 3
`

// recordedEvents are those of recordedLog.
func recordedEvents(t testing.TB) []eventlog.Event {
	t.Helper()
	_, events, err := eventlog.ReadText(strings.NewReader(recordedLog))
	if err != nil {
		t.Fatal(err)
	}
	return allOf(t, events)
}

func allOf(t testing.TB, events iter.Seq2[*eventlog.Event, error]) []eventlog.Event {
	t.Helper()
	var list []eventlog.Event
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, *e)
	}
	return list
}

// writeLog writes the file of a log.
func writeLog(t testing.TB, dir string, list []eventlog.Event) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, record.LogName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = eventlog.WriteLog(f, 4711, func(yield func(*eventlog.Event, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// recordedCore is a core with only notes.
func recordedCore(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	for _, v := range []any{&header, &elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 1000, Filesz: 20, Align: 4}} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	return append(b.Bytes(), make([]byte, 1020-b.Len())...)
}

// recordedManifest is that of recordedLog's recording, and of a child of another.
func recordedManifest() *record.Manifest {
	return &record.Manifest{
		Version: 1, PID: 4711,
		Program:  record.Program{Path: "/bin/prog", Args: []record.Text{"prog"}, Directory: "/tmp"},
		Parent:   &record.Parent{PID: 4000, Thread: 1, Ordinal: 17},
		Children: []record.Child{{Path: "children/4712-1", PID: 4712, Thread: 2, Ordinal: 9, Exec: true}},
		Outcome:  record.Outcome{Kind: record.OutcomeSignal, Signal: 11, Thread: 2, TID: 4713},
		Portable: []record.Object{{Path: "/bin/prog", Stored: "objects/00ff"}},
		Start: record.Start{Auxv: []record.Aux{{Type: 7, Value: 0x7ffff7fc0000}}, // AT_BASE
			Mappings: []record.Mapping{{Start: 0x7ffff7fc0000, End: 0x7ffff7fc2000, Permissions: "rw-p", Path: "/lib/ld.so"}}},
	}
}

// recordedStart are two pages of the dynamic linker.
func recordedStart() (data []byte) {
	for _, addr := range []uint64{0x7ffff7fc0000, 0x7ffff7fc1000} {
		data = append(binary.LittleEndian.AppendUint64(data, addr), bytes.Repeat([]byte{0xa5}, record.StartPageSize)...)
	}
	return data
}

// writeRecording makes a whole recording with a child, and returns its
// directory.
func writeRecording(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prog-0001-SIGSEGV")
	child := filepath.Join(dir, record.ChildrenName, "4712-1")
	for _, d := range []string{child, filepath.Join(dir, record.ObjectsName)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	list := recordedEvents(t)
	mapped := eventlog.Mapped{Data: 4096, Length: 100, Path: "/x"}
	list[5].Payloads = []eventlog.Payload{{Addr: 0x7ffff7000000, Kind: eventlog.PayloadFile, Data: mapped.Encode()}}
	core := recordedCore(t)
	site := binary.LittleEndian.AppendUint64(nil, 0x401000)
	site = binary.LittleEndian.AppendUint64(site, 0x401007)
	for _, v := range []uint32{agent.PatchJump, 7, 5, 0} {
		site = binary.LittleEndian.AppendUint32(site, v)
	}
	files := map[string][]byte{record.DataName: make([]byte, 8192), record.SitesName: site, record.CoreName: core, record.StartName: recordedStart(), record.LinkerCacheName: []byte("glibc-ld.so.cache1.1"), "objects/00ff": []byte("object")}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeLog(t, dir, list)
	writeLog(t, child, recordedEvents(t))
	log, err := os.Stat(filepath.Join(dir, record.LogName))
	if err != nil {
		t.Fatal(err)
	}
	m := recordedManifest()
	sum := sha256.Sum256([]byte("object"))
	m.Portable[0].SHA256 = hex.EncodeToString(sum[:])
	m.Sizes = record.Sizes{Log: log.Size(), Data: 8192, Core: int64(len(files[record.CoreName]))}
	m.StartFile = record.Stored(recordedStart())
	m.LinkerCache = record.Stored(files[record.LinkerCacheName])
	c := recordedManifest()
	c.PID, c.Parent = 4711, &record.Parent{PID: 4711, Thread: 2, Ordinal: 9, Exec: true}
	c.Children, c.Portable, c.Sizes = nil, nil, record.Sizes{}
	m.Children[0].PID = 4711
	for d, manifest := range map[string]*record.Manifest{dir: m, child: c} {
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
	if len(c.Problems) != 0 || c.Recordings != 2 || c.Events != 2*uint64(len(recordedEvents(t))) {
		t.Errorf("%+v", c)
	}
}

// TestCheckStartOfEarlierVersion: without the size in the manifest a page that is cut, or is none of
// the linker's, is noticed, and a missing one is not.
func TestCheckStartOfEarlierVersion(t *testing.T) {
	for size, want := range map[int64]string{0: "", 1000: "within a page", 4104: "", 8208: ""} {
		dir := writeRecording(t)
		m, err := record.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.StartFile = nil
		if err := errors.Join(m.Write(dir), os.Truncate(filepath.Join(dir, record.StartName), size)); err != nil {
			t.Fatal(err)
		}
		c := checkOf(t, dir)
		if want == "" && len(c.Problems) > 0 || want != "" && (len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Err.Error(), want)) {
			t.Errorf("%d bytes: %+v, want %q", size, c.Problems, want)
		}
	}
}

// TestCheckNewer: a recording of a newer version is not called damaged.
func TestCheckNewer(t *testing.T) {
	for _, inside := range []string{"", "children/4712-1"} {
		dir := writeRecording(t)
		name := filepath.Join(dir, inside, record.ManifestName)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, regexp.MustCompile(`"version": \d`).ReplaceAll(text, []byte(`"version": 99`)), 0o600); err != nil {
			t.Fatal(err)
		}
		var newer *eventlog.VersionError
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
		"no manifest":     {remove(record.ManifestName), "", "no such file", false},
		"no log":          {remove(record.LogName), record.LogName, "no header", true},
		"log cut":         {truncate(record.LogName, agent.ExtentSize+200), record.LogName, "was larger", true},
		"log empty":       {truncate(record.LogName, 0), record.LogName, "no header", true},
		"log corrupt":     {edit(record.LogName, "dgextent", "dgexten!"), "", "magic of an extent", false},
		"event corrupt":   {edit(record.LogName, "\x05\x00\x00\x00\x01\x00\x00\x00hello", "\x7f\x00\x00\x00\x01\x00\x00\x00hello"), record.LogName, "payload 1 of 127 bytes", false},
		"digest":          {edit(record.LogName, "\x10\x00\x00\x00\x02", "\x0f\x00\x00\x00\x02"), record.LogName, "payload digest of 15 bytes", false},
		"other process":   {edit(record.ManifestName, `"pid": 4711,`, `"pid": 4799,`), record.LogName, "of process 4711", false},
		"data cut":        {truncate(record.DataName, 4100), record.DataName, "100 bytes at 0x1000", true},
		"data gone":       {remove(record.DataName), record.DataName, "it had 8192", true},
		"sites cut":       {truncate(record.SitesName, 20), record.SitesName, "within an entry", true},
		"sites wrong":     {edit(record.SitesName, "\x07\x10\x40", "\x99\x10\x40"), record.SitesName, "continues at", false},
		"start empty":     {truncate(record.StartName, 0), record.StartName, "it had 8208 bytes", true},
		"start cut":       {truncate(record.StartName, 1000), record.StartName, "it had 8208 bytes", true},
		"start a page":    {truncate(record.StartName, 4104), record.StartName, "it had 8208 bytes", true},
		"start gone":      {remove(record.StartName), record.StartName, "missing", true},
		"start larger":    {truncate(record.StartName, 8300), record.StartName, "within a page", true},
		"cache cut":       {truncate(record.LinkerCacheName, 5), record.LinkerCacheName, "it had 20 bytes", true},
		"cache gone":      {remove(record.LinkerCacheName), record.LinkerCacheName, "missing", true},
		"cache changed":   {edit(record.LinkerCacheName, "cache1.1", "cache1.2"), record.LinkerCacheName, "SHA-256", false},
		"start changed":   {edit(record.StartName, "\xa5", "\xa6"), record.StartName, "SHA-256", false},
		"start elsewhere": {edit(record.StartName, "\xfc", "\xfd"), record.StartName, "SHA-256", false},
		"core cut":        {truncate(record.CoreName, 1010), record.CoreName, "the segment at", true},
		"core gone":       {remove(record.CoreName), record.CoreName, "missing", true},
		"core wrong":      {edit(record.CoreName, "ELF", "elf"), record.CoreName, "bad magic", false},
		"core is a link":  {link(record.CoreName, "/etc/passwd"), record.CoreName, "escapes", false},
		"object changed":  {edit("objects/00ff", "object", "Object"), "objects/00ff", "SHA-256", false},
		"child gone":      {remove("children/4712-1"), "children/4712-1", "no such file", false},
		"child is a link": {link("children/4712-1", "../."), "children/4712-1", "not a directory", false},
		"child of none":   {edit("children/4712-1/"+record.ManifestName, `"ordinal": 9`, `"ordinal": 8`), record.ManifestName, "event 9 of thread 2", false},
		"unfinished":      {edit(record.ManifestName, `"kind": "signal"`, `"kind": "running"`), record.ManifestName, "did not live", true},
		"other thread":    {edit(record.ManifestName, `"thread": 2,`+"\n    \"tid\"", `"thread": 3,`+"\n    \"tid\""), record.ManifestName, "thread 3", false},
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
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Outcome, m.Sizes = record.Outcome{Kind: record.OutcomeRunning}, record.Sizes{}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, record.LogName), agent.ExtentSize+300); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	events := 0
	for _, err = range r.Log.Ordered() {
		if err == nil {
			events++
		}
	}
	var cut *eventlog.CutError
	if events == 0 || !errors.As(err, &cut) {
		t.Errorf("%d events, %v", events, err)
	}
}

func TestOpenChildAndParent(t *testing.T) {
	r, err := record.Open(writeRecording(t))
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
	if _, err := r.Child(record.Child{Path: "../prog-0001-SIGSEGV"}); err == nil {
		t.Error("a child outside was opened")
	}
}

// After the end of the order the threads are read one by one.
func TestCheckBehindTheOrder(t *testing.T) {
	dir := writeRecording(t)
	path := filepath.Join(dir, record.LogName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	events := allOf(t, r.Log.Ordered())
	r.Close()
	binary.LittleEndian.PutUint32(b[events[1].Offset:], 3)
	binary.LittleEndian.PutUint32(b[events[8].Offset:], 5)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := checkOf(t, dir)
	if len(c.Problems) != 2 || !strings.Contains(c.Problems[0].Err.Error(), "event of 3 bytes") || !strings.Contains(c.Problems[1].Err.Error(), "event of 5 bytes") {
		t.Errorf("%+v", c.Problems)
	}
}

// TestSiteSize: the size is that of the struct.
func TestSiteSize(t *testing.T) {
	if n := binary.Size(agent.RawSitePatch{}); n != siteSize {
		t.Errorf("%d bytes, want %d", siteSize, n)
	}
}

// A long list of problems is cut.
func TestCheckManyProblems(t *testing.T) {
	dir := writeRecording(t)
	var list []eventlog.Event
	for i := range uint64(mostProblems + 5) {
		list = append(list, eventlog.Event{Thread: 1, Kind: eventlog.KindSyscall, Ticket: i, Payloads: []eventlog.Payload{{Kind: eventlog.PayloadDigest}}})
	}
	list[0] = eventlog.Event{Thread: 1, Kind: eventlog.KindStart}
	writeLog(t, dir, list)
	if c := checkOf(t, dir); len(c.Problems) != mostProblems || c.More < 4 {
		t.Errorf("%d problems and %d more", len(c.Problems), c.More)
	}
}
