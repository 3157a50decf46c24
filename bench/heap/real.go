package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// real are programs of Debian's packages at their usual work. Their threads
// are those of the process with the largest peak.
func real(dir string) []program {
	in := func(name string) string { return filepath.Join(dir, "input", name) }
	return append([]program{
		command("perl", 1, text60000, dir, "perl", script("words.pl")),
		command("python3", 1, text20000, dir, "python3", script("objects.py"), in("text20000")),
		repository("git-log", 1, dir, "git", "log", "-p", "--stat", "-1500", "main"),
		repository("git-gc", 3, dir, "sh", "-c", "git gc --quiet --prune=now && git rev-list --objects --all"),
		command("g++", 1, nil, dir, "g++", "-O2", "-g", "-S", "-o", "-", "-frandom-seed=1", script("containers.cc")),
		command("sqlite3", 1, nil, dir, "sqlite3", ":memory:", ".read "+script("orders.sql")),
		command("gawk", 1, text60000, dir, "gawk", "-f", script("report.awk"), in("text60000")),
		command("sort", 2, text400000, dir, "sort", "--parallel=2", "-k2,2", "-k1,1r", in("text400000")),
		command("xz", 1, text60000, dir, "xz", "-T1", "-3", "-c", in("text60000")),
		command("pigz", 4, text400000, dir, "pigz", "-p2", "-n", "-c", in("text400000")),
		command("imagemagick", 2, picture, dir, "convert-im6.q16", in("picture.ppm"), "-resize", "70%", "-blur", "0x2",
			"-rotate", "7", "-normalize", "-colors", "64", "ppm:-"),
		command("ffmpeg", 8, nil, dir, "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=25",
			"-vf", "hflip,scale=480:270", "-c:v", "mpeg4", "-threads", "2", "-f", "framemd5", "-"),
	}, servers(dir)...)
}

// script is a file of ours; the programs run in another directory.
func script(name string) string {
	path, err := filepath.Abs(filepath.Join("bench/heap/programs", name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}

// command is a program that runs once, reading text if its name wants it.
func command(name string, threads int, prepare func(dir string) error, dir string, argv ...string) program {
	return program{name: name, threads: threads, commands: argv[:1], job: func(allocator, int) (job, error) {
		if prepare != nil {
			if err := prepare(filepath.Join(dir, "input")); err != nil {
				return job{}, err
			}
		}
		j := job{argv: argv, env: []string{"PERL_HASH_SEED=0", "PYTHONHASHSEED=0"}, dir: dir}
		if name == "perl" {
			j.input = filepath.Join(dir, "input", "text60000")
		}
		return j, nil
	}}
}

func text20000(dir string) error  { return text(filepath.Join(dir, "text20000"), 20000) }
func text60000(dir string) error  { return text(filepath.Join(dir, "text60000"), 60000) }
func text400000(dir string) error { return text(filepath.Join(dir, "text400000"), 400000) }

// picture is a portable pixmap with soft and hard edges.
func picture(dir string) error {
	return input(filepath.Join(dir, "picture.ppm"), func() ([]byte, error) {
		const width, height = 1200, 800
		image := []byte(fmt.Sprintf("P6 %d %d 255\n", width, height))
		for y := range height {
			for x := range width {
				image = append(image, byte(x*y>>9), byte(x^y), byte((x/40+y/40)%2*200+y/16))
			}
		}
		return image, nil
	})
}

// repository runs in a fresh copy of the same history.
func repository(name string, threads int, dir string, argv ...string) program {
	return program{name: name, threads: threads, commands: []string{"git", argv[0]}, job: func(allocator, int) (job, error) {
		from := filepath.Join(dir, "input", "history.git")
		if err := history(from); err != nil {
			return job{}, err
		}
		copied := filepath.Join(dir, name+".git")
		if err := os.RemoveAll(copied); err != nil {
			return job{}, err
		}
		if out, err := exec.Command("cp", "-r", from, copied).CombinedOutput(); err != nil {
			return job{}, fmt.Errorf("cp: %w: %s", err, out)
		}
		return job{argv: argv, dir: copied}, nil
	}}
}
