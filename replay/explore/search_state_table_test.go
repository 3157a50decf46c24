package explore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/record"
)

// stateVariable names the file that the table of states is written to, stateTimes is the number of
// recordings of each program.
const (
	stateVariable = "DIAGNOSE_STATES"
	stateTimes    = "DIAGNOSE_STATES_TIMES"
)

// stateBudget is the time limit of a search for the recorded state.
const stateBudget = 2 * time.Minute

// subject is a program of the table of states.
type subject struct {
	name, what string
	// prepare returns how the program is run and ends; an empty end is any.
	prepare func(t *testing.T) (path string, args []string, ends string)
}

func subjects() []subject {
	list := []subject{
		{"sort", "`sort --parallel=4`, 400,000 lines", prepareSort},
		{"ffmpeg", "`ffmpeg -threads 3`, 40 frames of 352x288 as MPEG-4", prepareFFmpeg},
	}
	for _, p := range []struct{ path, what string }{
		{"cases/races/mysql12845", "a string that is taken away between a check and its use, 300 times by two threads"},
		{"schedule/counter", "four threads add 1000 times each to a counter; some additions are lost"},
		{"schedule/otherstate", "two words that two threads store in opposite orders"},
		{"schedule/lostsum", "lost additions to a counter, two threads"},
		{"schedule/lostnode", "lost nodes of a list"},
		{"schedule/ring", "a ring buffer whose end moves before the value is there"},
		{"schedule/checked", "a buffer that is taken away and given back, many times"},
		{"schedule/apache", "a log module with two races"},
	} {
		list = append(list, subject{filepath.Base(p.path), p.what, func(t *testing.T) (string, []string, string) {
			x, err := recordtest.Read("../../internal/testdata/" + p.path + ".c")
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(p.path, "cases/") {
				x.Flags, x.Ends = []string{"-O1"}, "SIGSEGV"
			}
			return x.Build(t), x.Args, x.Ends
		}})
	}
	return list
}

func prepareSort(t *testing.T) (string, []string, string) {
	t.Helper()
	path, err := exec.LookPath("sort")
	if err != nil {
		t.Skip(err)
	}
	var b strings.Builder
	numbers := rand.New(rand.NewPCG(1, 1))
	for range 400_000 {
		fmt.Fprintln(&b, numbers.Uint32())
	}
	input := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(input, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, []string{"--parallel=4", "-S", "1G", "-o", "/dev/null", input}, "exit 0"
}

func prepareFFmpeg(t *testing.T) (string, []string, string) {
	t.Helper()
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip(err)
	}
	const frames, width, height = 40, 352, 288
	picture := make([]byte, 0, frames*width*height*3/2)
	numbers := rand.New(rand.NewPCG(1, 1))
	for frame := range frames {
		for at := range width * height * 3 / 2 {
			picture = append(picture, byte(at%width+2*frame+numbers.IntN(8)))
		}
	}
	input := filepath.Join(t.TempDir(), "frames.yuv")
	if err := os.WriteFile(input, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, []string{"-nostdin", "-loglevel", "error", "-f", "rawvideo", "-s", fmt.Sprintf("%dx%d", width, height), "-i", input,
		"-threads", "3", "-c:v", "mpeg4", "-y", input + ".avi"}, "exit 0"
}

// stateRow is a line of the table of states.
type stateRow struct {
	subject
	runs, recordings           int
	direct, same, other, never int
	attempts                   []int
	seconds                    []float64
}

// TestStates records each program, and searches each recording for the recorded state.
func TestStates(t *testing.T) {
	path := os.Getenv(stateVariable)
	if path == "" {
		t.Skip(stateVariable + " does not say where the table goes")
	}
	times := 2
	if text := os.Getenv(stateTimes); text != "" {
		var err error
		if times, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var rows []stateRow
	for _, p := range subjects() {
		t.Run(p.name, func(t *testing.T) {
			r := stateRow{subject: p}
			r.measure(t, times)
			rows = append(rows, r)
		})
	}
	if len(rows) > 0 {
		if err := replaceTable(path, stateBegin, stateEnd, stateTable(rows)); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *stateRow) measure(t *testing.T, times int) {
	path, args, ends := r.prepare(t)
	for started := time.Now(); r.recordings < times && time.Since(started) < longest; {
		r.runs++
		made := recordtest.RecordProgram(t, path, args, "", "")
		if recordtest.EndOf(made.Result) == ends {
			r.recordings++
			r.search(t, made.Dir)
		}
		os.RemoveAll(filepath.Dir(made.Dir))
	}
}

// search searches a recording. That the state is the recorded one is checked by another replay.
func (r *stateRow) search(t *testing.T, dir string) {
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	found, err := explore.Search(t.Context(), rec, explore.Options{Budget: stateBudget})
	if err != nil {
		t.Fatal(err)
	}
	r.attempts = append(r.attempts, found.Attempts)
	r.seconds = append(r.seconds, found.Time.Seconds())
	t.Logf("%d attempts in %.1f s came to event %d of %d, %d places differ: %v; %v; not tried: %s",
		found.Attempts, found.Time.Seconds(), found.Events, found.Total, found.OtherState, found.Preemptions, found.Err, found.Unexplored)
	switch {
	case !found.Reproduced:
		r.never++
		return
	case found.OtherState != 0:
		if again, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true}); err == nil {
			t.Log(recordtest.Differences(again))
		}
		r.other++
		return
	case found.Level == explore.LevelPlain:
		r.direct++
	default:
		r.same++
	}
	again, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true})
	if err != nil || again.Comparison == nil || !again.Comparison.Identical() {
		t.Errorf("a replay with the preemptions that were found: %+v, %v", again, err)
	}
}

const (
	stateBegin = "<!-- states: begin -->\n"
	stateEnd   = "<!-- states: end -->\n"
)

func stateTable(rows []stateRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Program | What it is | Recordings | Direct | Same state | Other state | Not | Attempts | Seconds |\n| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d of %d runs | %d | %d | %d | %d | %s | %s |\n", r.name, r.what, r.recordings, r.runs,
			r.direct, r.same, r.other, r.never, spread(r.attempts, "%d"), spread(r.seconds, "%.1f"))
	}
	return b.String()
}
