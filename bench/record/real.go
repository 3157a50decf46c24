package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"diagnose/bench/load"
)

// real are programs of Debian's packages at their usual work.
func real(dir string) []program {
	in := func(name string) string { return filepath.Join(dir, "input", name) }
	text := in("text")
	return append([]program{
		command("pigz", dir, "pigz", "-p4", "-n", "-c", text),
		command("pbzip2", dir, "pbzip2", "-p4", "-b5", "-c", "-k", text),
		command("xz", dir, "xz", "-T4", "--block-size=4MiB", "-1", "-c", text),
		command("sort", dir, "sort", "--parallel=4", "-S", "200M", "-k2,2", "-k1,1r", text),
		database(dir),
		command("python3", dir, "python3", source("work.py"), "6000"),
		gc(dir),
		unordered(command("ffmpeg", dir, "ffmpeg", "-nostdin", "-v", "error", "-filter_threads", "4", "-f", "lavfi", "-i",
			"testsrc2=size=640x360:rate=25", "-t", "40", "-vf", "hflip,scale=480:270", "-c:v", "mpeg4", "-threads", "4", "-f", "framemd5", "-")),
		unordered(clip(dir, command("x264", dir, "x264", "--quiet", "--threads", "4", "--preset", "veryfast", "-o", "/dev/null", in("clip.y4m")))),
	}, servers(dir)...)
}

// unordered programs' threads tell each other their progress by variables that
// no event orders.
func unordered(p program) program {
	p.never = "threads tell each other their progress by variables that no event orders"
	return p
}

// source is a file of ours; the programs run in another directory.
func source(name string) string {
	path, err := filepath.Abs(filepath.Join("bench/record/programs", name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}

func command(name, dir string, argv ...string) program {
	return program{name: name, replayed: 100, commands: []string{argv[0]}, job: func(way, int) (job, error) {
		return job{argv: argv, dir: dir}, text(filepath.Join(dir, "input", "text"))
	}}
}

// text is a file of some 25 MB of lines whose words have the frequencies of a
// language. It is the same everywhere.
func text(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	r := rand.New(rand.NewSource(1))
	frequency := rand.NewZipf(r, 1.2, 8, 30000)
	var b bytes.Buffer
	for range 400_000 {
		for range 4 + r.Intn(10) {
			b.WriteString(strconv.FormatUint(frequency.Uint64()*2654435761%(1<<32)|1, 36))
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// clip makes the picture sequence that x264 gets.
func clip(dir string, p program) program {
	run := p.job
	p.commands = append(p.commands, "ffmpeg")
	p.job = func(w way, share int) (job, error) {
		path := filepath.Join(dir, "input", "clip.y4m")
		if _, err := os.Stat(path); err != nil {
			out, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-t", "10",
				"-pix_fmt", "yuv420p", path).CombinedOutput()
			if err != nil {
				os.Remove(path)
				return job{}, fmt.Errorf("ffmpeg: %w: %s", err, load.Tail(string(out)))
			}
		}
		return run(w, share)
	}
	return p
}

// database is SQLite in a program of ours: its own has one thread.
func database(dir string) program {
	return program{name: "sqlite3", replayed: 100, job: func(way, int) (job, error) {
		target, file := filepath.Join(dir, "database"), filepath.Join(dir, "work.db")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(file + suffix)
		}
		return job{argv: []string{target, file, "2000"}, dir: dir}, load.Compile("gcc", "bench/record/programs/database.c", target, "-lsqlite3")
	}}
}

// gc collects a fresh clone of the repository that contains this file.
func gc(dir string) program {
	return program{name: "git gc", replayed: 100, commands: []string{"git"}, job: func(way, int) (job, error) {
		clone := filepath.Join(dir, "clone.git")
		if err := os.RemoveAll(clone); err != nil {
			return job{}, err
		}
		out, err := exec.Command("git", "clone", "-q", "--bare", "--no-local", ".", clone).CombinedOutput()
		if err != nil {
			return job{}, fmt.Errorf("git clone: %w: %s", err, load.Tail(string(out)))
		}
		// Without --aggressive it would take over what the clone has just packed.
		return job{argv: []string{"git", "-c", "pack.threads=4", "gc", "-q", "--aggressive", "--prune=now"}, dir: clone}, nil
	}}
}
