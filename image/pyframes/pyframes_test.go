package pyframes_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"diagnose/image"
	"diagnose/image/pyframes"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// program crashes in an extension in C, called from a function that C calls, below a generator, while another thread waits.
// faulthandler writes what the frames are to the file that it is given.
const program = `import ctypes, faulthandler, sys, threading, time
faulthandler.enable(open(sys.argv[1], "w"))

class Reader:
    def __init__(self, depth):
        self.depth = depth

    def next(self):
        if self.depth:
            self.depth -= 1
            return self.next()
        return list(map(self.boom,
                        [1, 2]))

    def boom(self, n):
        return (lambda at:
                ctypes.string_at(at + n))(7)

def ü_größe(r):
    yield 1

    yield (
        r.next())

def waits():
    time.sleep(
        100)

threading.Thread(target=waits, daemon=True).start()
time.sleep(0.3)
for x in ü_größe(Reader(2)):
    pass
`

// interpreters are the installed ones of the versions that are known.
func interpreters(t *testing.T) (list []string) {
	home, _ := os.UserHomeDir()
	seen := map[string]bool{}
	for _, pattern := range []string{"/usr/bin/python3.1[123]", "/usr/local/bin/python3.1[123]", filepath.Join(home, ".pyenv/versions/3.1[123]*/bin/python3.1[123]")} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if real, err := filepath.EvalSymlinks(path); err == nil && !seen[real] {
				seen[real] = true
				list = append(list, real)
			}
		}
	}
	if len(list) == 0 {
		t.Skip("there is no Python 3.11 to 3.13")
	}
	return list
}

// The frames are those that the interpreter's own faulthandler writes, in the functions, files and lines.
func TestAgainstFaulthandler(t *testing.T) {
	for _, exe := range interpreters(t) {
		t.Run(strings.Trim(strings.ReplaceAll(exe, "/", "_"), "_"), func(t *testing.T) {
			if exec.Command(exe, "-c", "import ctypes, faulthandler").Run() != nil {
				t.Skip("it has no ctypes")
			}
			dir := t.TempDir()
			script, told := filepath.Join(dir, "crash.py"), filepath.Join(dir, "told")
			if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := image.OpenCore(crashtest.Core(t, exe, crashtest.Run{Args: []string{script, told}}), image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			threads, err := pyframes.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(told)
			if err != nil {
				t.Fatal(err)
			}
			got, want := shown(threads), reported(string(text))
			if len(want) != 2 || !slices.Equal(got, want) {
				t.Errorf("the frames are\n%s\nand faulthandler has\n%s", strings.Join(got, "\n\n"), strings.Join(want, "\n\n"))
			}
		})
	}
}

// shown has a text for each thread, in an order of its own.
func shown(threads []pyframes.Thread) (list []string) {
	for _, t := range threads {
		var lines []string
		for _, f := range t.Frames {
			lines = append(lines, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function[strings.LastIndexByte(f.Function, '.')+1:]))
		}
		if t.Stopped != "" {
			lines = append(lines, t.Stopped)
		}
		list = append(list, strings.Join(lines, "\n"))
	}
	slices.Sort(list)
	return list
}

var frameLine = regexp.MustCompile(`^  File "(.*)", line (\d+) in (.*)$`)

// reported is the same of faulthandler's text, which escapes all but ASCII.
func reported(text string) (list []string) {
	var lines []string
	add := func() {
		if lines != nil {
			list = append(list, strings.Join(lines, "\n"))
		}
		lines = nil
	}
	for _, l := range strings.Split(text, "\n") {
		m := frameLine.FindStringSubmatch(l)
		if m == nil {
			add()
			continue
		}
		name, err := strconv.Unquote(`"` + strings.ReplaceAll(m[3], `\x`, `\u00`) + `"`)
		if err != nil {
			name = m[3]
		}
		lines = append(lines, fmt.Sprintf("%s:%s %s", m[1], m[2], name))
	}
	add()
	slices.Sort(list)
	return list
}

// A program without Python has none.
func TestNone(t *testing.T) {
	f := crashtest.Named(t, "null_read")
	p, err := image.OpenCore(f.Crash(t, f.AllVariants()[0]).Core, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if list, err := pyframes.Read(p); err != pyframes.ErrNone || list != nil {
		t.Errorf("%v, %v", list, err)
	}
}
