package tracker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/reports"
)

// directory keeps issues as directories, named by their causes:
//
//	DIGEST/issue.md               title and report, as much as an issue holds
//	DIGEST/report.md              the whole report
//	DIGEST/state                  open or closed, for people to change
//	DIGEST/comments/2026-11-22.md the comment of a night
//
// Several hosts may share one. A directory is made under another name and renamed, which fails if
// the name exists. A comment is linked to its name, which fails in the same case.
type directory struct {
	path string
	dry  bool
	now  func() time.Time
}

const (
	issueName    = "issue.md"
	stateName    = "state"
	commentsName = "comments"
	stagePrefix  = ".new-"
)

func (d *directory) Name() string { return "dir:" + d.path }

func (d *directory) Upsert(ctx context.Context, r *Report) (Result, error) {
	if err := r.check(); err != nil {
		return Result{}, err
	}
	path := filepath.Join(d.path, r.Digest)
	_, err := os.Stat(filepath.Join(path, issueName))
	switch {
	case err == nil:
		return d.again(r, path)
	case !errors.Is(err, os.ErrNotExist):
		return Result{}, d.failed(err)
	case d.dry:
		return r.wouldOpen(reports.GitLabIssue)
	}
	made, err := d.open(r, path)
	if err != nil {
		return Result{}, err
	}
	if !made { // another host was faster
		return Result{Action: Quiet, Issue: r.Digest, URL: path, Attached: true, Note: "another host opened it at the same time"}, nil
	}
	return Result{Action: Opened, Issue: r.Digest, URL: path, Attached: true}, nil
}

func (d *directory) failed(err error) error { return &Error{Kind: Down, Tracker: d.Name(), Err: err} }

// open makes the directory of an issue. It returns false if the directory exists.
func (d *directory) open(r *Report, path string) (bool, error) {
	title, body, err := r.write(reports.GitLabIssue)
	if err != nil {
		return false, err
	}
	report, err := r.attachment()
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return false, d.failed(err)
	}
	d.sweep()
	stage, err := os.MkdirTemp(d.path, stagePrefix+"*")
	if err != nil {
		return false, d.failed(err)
	}
	defer os.RemoveAll(stage)
	err = os.Mkdir(filepath.Join(stage, commentsName), 0o700)
	for name, text := range map[string]string{issueName: "# " + title + "\n\n" + body, attachmentName: string(report), stateName: "open\n"} {
		if err == nil {
			err = writeSynced(filepath.Join(stage, name), []byte(text))
		}
	}
	if err != nil {
		return false, d.failed(err)
	}
	err = os.Rename(stage, path)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		return false, nil
	}
	if err != nil {
		return false, d.failed(err)
	}
	return true, nil
}

// sweep removes the unfinished files of hosts that died.
func (d *directory) sweep() {
	list, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	for _, e := range list {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), stagePrefix) && d.now().Sub(info.ModTime()) > time.Hour {
			os.RemoveAll(filepath.Join(d.path, e.Name()))
		}
	}
}

func (d *directory) again(r *Report, path string) (Result, error) {
	done := Result{Issue: r.Digest, URL: path, Attached: true}
	open, closed, err := state(path)
	if err != nil {
		return done, d.failed(err)
	}
	back := ""
	switch {
	case open:
		done.Action = Commented
	default:
		if back = r.BackSince(closed); back == "" {
			done.Action = LeftClosed
			return done, nil
		}
		done.Action = Reopened
	}
	said, err := d.said(path)
	if err != nil {
		return done, d.failed(err)
	}
	if open && said {
		done.Action = Quiet
		return done, nil
	}
	if d.dry {
		return done, nil
	}
	if !open {
		if err := replace(filepath.Join(path, stateName), []byte("open\n")); err != nil {
			return done, d.failed(err)
		}
	}
	made, err := create(d.comment(path), []byte(r.comment(back)))
	if err != nil {
		return done, d.failed(err)
	}
	if !made && open {
		done.Action = Quiet
	}
	return done, nil
}

// state reads whether an issue is open, and when it was closed.
func state(path string) (open bool, closed time.Time, err error) {
	name := filepath.Join(path, stateName)
	text, err := os.ReadFile(name)
	if err != nil {
		return false, time.Time{}, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return false, time.Time{}, err
	}
	switch word := strings.TrimSpace(string(text)); word {
	case "open":
		return true, time.Time{}, nil
	case "closed":
		return false, info.ModTime(), nil
	default:
		return false, time.Time{}, fmt.Errorf("%s is neither open nor closed, but %.40q", name, word)
	}
}

// comment returns the name of this night's comment, which is its date.
func (d *directory) comment(path string) string {
	return filepath.Join(path, commentsName, d.now().UTC().Format(time.DateOnly)+".md")
}

// said reports whether there is a comment of this night, or the issue itself is of this night.
func (d *directory) said(path string) (bool, error) {
	_, err := os.Stat(d.comment(path))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func writeSynced(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// aside writes a file under a new name in the directory of another.
func aside(name string, text []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), stagePrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}

// replace replaces a file by a complete new one.
func replace(name string, text []byte) error {
	temp, err := aside(name, text)
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil && temp != "" {
		os.Remove(temp)
	}
	return err
}

// create makes a complete file. It returns false if the name exists.
func create(name string, text []byte) (bool, error) {
	temp, err := aside(name, text)
	if temp != "" {
		defer os.Remove(temp)
	}
	if err != nil {
		return false, err
	}
	err = os.Link(temp, name)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	return err == nil, err
}
