package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/load"
)

// manyLibraries are programs that do nothing but load what they are linked with;
// java maps its classes, too.
var manyLibraries = [][]string{{"/bin/true"}, {"git", "--version"}, {"python3", "-c", "pass"}, {"ffmpeg", "-version"}, {"java", "-version"}}

// firstRuns prints the cost of the first recording of a program, when nothing about its libraries
// is stored, and that of later ones, compared with the program by itself.
func firstRuns(l *launcher, s settings) error {
	fmt.Print("| program | first, wall ms | first, CPU ms | later, wall ms | later, CPU ms | native, wall ms | native, CPU ms | later / native | load |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, argv := range manyLibraries {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench/record: %s is not installed\n", argv[0])
			continue
		}
		row, err := l.first(job{argv: append([]string{path}, argv[1:]...), dir: l.dir}, s.runs)
		if err != nil {
			return fmt.Errorf("%s: %w", argv[0], err)
		}
		fmt.Printf("| %s | %s |\n", strings.Join(argv, " "), row)
	}
	return nil
}

// first measures one program, its runs in turn.
func (l *launcher) first(j job, runs int) (string, error) {
	recorded := way{wrapper: []string{l.diagnose, "record", "--output", filepath.Join(l.dir, "recordings"), "--"}}
	var figures [7][]float64
	for range runs {
		// A cold file cache of the system must not be measured.
		native, err := l.launch(j, way{})
		if err != nil {
			return "", err
		}
		if err := os.RemoveAll(filepath.Join(l.cache, "diagnose", "sites")); err != nil {
			return "", err
		}
		cold, err := l.launch(j, recorded)
		if err != nil {
			return "", err
		}
		time.Sleep(100 * time.Millisecond) // data of written files may still be waiting to reach the disk
		warm, err := l.launch(j, recorded)
		if err != nil {
			return "", err
		}
		for i, v := range []float64{1e3 * cold.wall, 1e3 * cold.cpu, 1e3 * warm.wall, 1e3 * warm.cpu, 1e3 * native.wall, 1e3 * native.cpu, warm.wall / native.wall} {
			figures[i] = append(figures[i], v)
		}
	}
	var cells []string
	for i, values := range figures {
		median, spread := load.Summary(values)
		format := "%.0f"
		if i == len(figures)-1 {
			format = "%.2f ± %.2f"
			cells = append(cells, fmt.Sprintf(format, median, spread))
			continue
		}
		cells = append(cells, fmt.Sprintf(format, median))
	}
	return strings.Join(append(cells, machineLoad()), " | "), nil
}

// machineLoad is how many processes wanted a processor in the last minute, this one's
// among them.
func machineLoad() string {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return "?"
	}
	const unit = 1 << 16 // SI_LOAD_SHIFT, <sys/sysinfo.h>
	return fmt.Sprintf("%.1f", float64(info.Loads[0])/unit)
}
