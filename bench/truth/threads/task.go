package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/threads/raced"
	"diagnose/bench/truth/threads/tally"
	"diagnose/bench/truth/ways"
)

// compiler is one for C and C++, and a level of optimisation.
type compiler struct{ c, cpp, level string }

var compilers = []compiler{{"gcc", "g++", "-O0"}, {"clang", "clang++", "-O2"}}

const (
	buildLimit = time.Minute
	runLimit   = 20 * time.Second
	atOnce     = 2 // diagnoses
)

// task is a build of a program in one way of recording.
type task struct {
	program  *raced.Program
	compiler compiler
	way      string
}

func (t task) build() (name string) {
	if t.program.CPlusPlus() {
		return t.compiler.cpp
	}
	return t.compiler.c
}

func (t task) String() string {
	return t.program.Name() + t.compiler.level + "-" + t.way
}

// one measures a task in a directory of its own.
func (b *bench) one(ctx context.Context, t task) (*tally.Row, error) {
	dir := filepath.Join(b.dir, t.String())
	if err := limit.Empty(dir); err != nil {
		return nil, err
	}
	if b.options.keep == "" {
		defer os.RemoveAll(dir)
	}
	exe, err := t.compile(ctx, dir)
	if err != nil {
		return nil, err
	}
	row := &tally.Row{Program: t.program.Name(), Build: t.build() + " " + t.compiler.level, Way: t.way, Runs: b.options.runs}
	failing, passing, err := b.record(ctx, t, exe, dir)
	if err != nil {
		return nil, err
	}
	row.Failing = len(failing)
	progress("%s: %d of %d runs failed, %d passed", t, len(failing), row.Runs, len(passing))
	if len(failing)+len(passing) == 0 {
		return nil, errors.New("no run was recorded")
	}
	err = b.diagnose(ctx, t, row, b.choose(failing, passing), dir)
	progress("%s: %d of its failing recordings are diagnosed", t, row.Diagnosed)
	return row, err
}

func (t task) compile(ctx context.Context, dir string) (exe string, err error) {
	exe = filepath.Join(dir, t.program.Name())
	source, err := filepath.Abs(t.program.Path)
	if err != nil {
		return "", err
	}
	r, err := limit.Run(ctx, limit.Command{Path: t.build(), Args: []string{"-g", t.compiler.level, "-pthread", "-o", exe, source}, Dir: dir, Time: buildLimit})
	if err != nil {
		return "", err
	}
	if r.Status != 0 || r.Signal != 0 {
		return "", fmt.Errorf("%s ended with status %d: %s", t.build(), r.Status, r.Stderr)
	}
	return exe, nil
}

// record records the runs one by one, each in a directory of its own. A run that hangs has failed.
func (b *bench) record(ctx context.Context, t task, exe, dir string) (failing, passing []string, err error) {
	once := ways.Once{Path: exe, Options: []string{"--races=" + t.way}, Time: runLimit}
	for i := range b.options.runs {
		path, err := b.tool.RecordOnce(ctx, once, filepath.Join(dir, fmt.Sprintf("run-%03d", i)))
		switch {
		case err != nil:
			return nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case path == "":
		case ways.Passed(path):
			passing = append(passing, path)
		default:
			failing = append(failing, path)
		}
	}
	return failing, passing, nil
}

// choose are the failures that are diagnosed: each alone, and together with a passing run if there is one.
func (b *bench) choose(failing, passing []string) (list []ways.Failing) {
	random := rand.New(rand.NewPCG(b.options.seed, 0))
	random.Shuffle(len(failing), func(i, j int) { failing[i], failing[j] = failing[j], failing[i] })
	for _, path := range failing[:min(len(failing), b.options.per)] {
		list = append(list, ways.Failing{Recording: path})
		if len(passing) > 0 {
			list = append(list, ways.Failing{Recording: path, Passing: []string{passing[random.IntN(len(passing))]}})
		}
	}
	return list
}

// diagnose counts the judgements on failures in a row.
func (b *bench) diagnose(ctx context.Context, t task, row *tally.Row, list []ways.Failing, dir string) error {
	var group sync.WaitGroup
	var lock sync.Mutex
	var errs []error
	slots := make(chan struct{}, atOnce)
	for i := range list {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			err := b.judge(ctx, t, row, &lock, &list[i], filepath.Join(dir, fmt.Sprintf("diagnosis-%03d", i)))
			lock.Lock()
			defer lock.Unlock()
			errs = append(errs, err)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// judge counts the judgement on one failure, which it diagnoses in a directory.
func (b *bench) judge(ctx context.Context, t task, row *tally.Row, lock *sync.Mutex, f *ways.Failing, dir string) error {
	if err := limit.Empty(dir); err != nil {
		return err
	}
	doc, _, err := b.tool.Diagnose(ctx, f, dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	together := len(f.Passing) > 0
	lock.Lock()
	defer lock.Unlock()
	if !together {
		row.Diagnosed++
	}
	if failed, ok := errors.AsType[*ways.ToolError](err); ok {
		progress("%s: %s: %v", t, dir, failed)
		row.Add(together, score.Score{Outcome: score.ToolFailed}, nil)
		return nil
	}
	if err != nil {
		return err
	}
	s := t.program.Judge(doc.Case)
	row.Add(together, s, doc.Case)
	if s.Outcome == score.Wrong || s.Outcome == score.WrongProved {
		progress("%s: %s of %v is %s: %s", t, dir, f.Recording, s.Outcome, doc.Case.Diagnosis.Causes[0].Summary)
	}
	return nil
}
