package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Archive is a private view of Debian's archive: apt's lists and files in a directory of
// ours, so that nothing of the system's is changed.
type Archive struct{ Dir string }

// UnavailableError says that the archive does not give a package's sources.
type UnavailableError struct {
	Package string
	Err     error
}

func (e *UnavailableError) Error() string { return "source: " + e.Package + ": " + e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// Unpacked are the sources of a package.
type Unpacked struct {
	*Package
	// Version is Debian's, Dir the top of the sources.
	Version, Dir string
}

// suites are Debian's releases, the preferred one first. The archives of machines without all
// of Debian lack parts of packages, often in one suite only.
var suites = []string{"bookworm", "trixie"}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// prepare writes apt's configuration and fetches the lists, once.
func (a *Archive) prepare(ctx context.Context) error {
	stamp := filepath.Join(a.Dir, "updated-"+strings.Join(suites, "-"))
	if _, err := os.Stat(stamp); err == nil {
		return nil
	}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial", "sources"} {
		if err := os.MkdirAll(filepath.Join(a.Dir, d), 0o755); err != nil {
			return err
		}
	}
	var list strings.Builder
	for _, suite := range suites {
		fmt.Fprintf(&list, "deb-src [signed-by=%s] http://deb.debian.org/debian %s main\n", keyring, suite)
	}
	for name, text := range map[string]string{
		"state/status": "",
		"sources.list": list.String(),
		"apt.conf":     a.configuration(),
	} {
		if err := os.WriteFile(filepath.Join(a.Dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := a.apt(ctx, "update"); err != nil {
		return err
	}
	return os.WriteFile(stamp, nil, 0o644)
}

func (a *Archive) configuration() string {
	return fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/state/status";
Dir::Cache "%[1]s/cache";
APT::Sandbox::User "";
`, a.Dir)
}

// apt runs apt-get in the folder sources, for at most five minutes.
func (a *Archive) apt(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Dir = filepath.Join(a.Dir, "sources")
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.Dir, "apt.conf"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, lastLine(out))
	}
	return nil
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

var sourceVersion = regexp.MustCompile(`(?m)^Version: (\S+)$`)

// Fetch downloads and unpacks the sources of a package, unless that was done before.
func (a *Archive) Fetch(ctx context.Context, p *Package) (*Unpacked, error) {
	if err := a.prepare(ctx); err != nil {
		return nil, &UnavailableError{p.Name, err}
	}
	dir := filepath.Join(a.Dir, "unpacked", p.Name)
	version := a.versionFile(p.Name)
	if text, err := os.ReadFile(version); err == nil {
		return &Unpacked{p, string(text), dir}, nil
	}
	found, err := a.download(ctx, p.DebianName())
	if err != nil {
		return nil, &UnavailableError{p.Name, err}
	}
	if err := a.unpack(ctx, found, dir); err != nil {
		return nil, err
	}
	return &Unpacked{p, found.version, dir}, os.WriteFile(version, []byte(found.version), 0o644)
}

func (a *Archive) versionFile(name string) string {
	return filepath.Join(a.Dir, "unpacked", name+".version")
}

// Restore unpacks a package again, if an input of a run is no longer there: a program with a bug may remove what it was handed.
func (a *Archive) Restore(ctx context.Context, name string, run *Run) error {
	lost := slices.ContainsFunc(append([]string{run.Stdin}, run.Args...), func(path string) bool {
		if !strings.HasPrefix(path, filepath.Join(a.Dir, "unpacked")+"/") {
			return false
		}
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
	p := Named(name)
	if !lost || p == nil {
		return nil
	}
	if err := os.Remove(a.versionFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := a.Fetch(ctx, p)
	return err
}

// download is a package's files: control is the path of the .dsc file, or empty where only the
// tarball of the program's authors can be had.
type download struct{ version, control, tarball string }

// download fetches a package from the first suite that has it whole, or else the tarball alone.
func (a *Archive) download(ctx context.Context, name string) (*download, error) {
	var failed error
	for _, suite := range suites {
		err := a.apt(ctx, "source", "--download-only", name+"/"+suite)
		if err == nil {
			return a.control(name)
		}
		failed = errors.Join(failed, err, a.removeControl(name))
	}
	d, err := a.tarball(name)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return d, nil
}

// tarball is that of a package's authors, which a download left that failed.
func (a *Archive) tarball(name string) (*download, error) {
	found, err := filepath.Glob(filepath.Join(a.Dir, "sources", name+"_*.orig.tar.*"))
	if err != nil || len(found) == 0 {
		return nil, errors.Join(fmt.Errorf("source: %s: no tarball", name), err)
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(found[0]), name+"_"), ".orig.tar.")
	return &download{version: version, tarball: found[0]}, nil
}

// removeControl removes what remains of a package that cannot be had whole.
func (a *Archive) removeControl(name string) error {
	found, err := filepath.Glob(filepath.Join(a.Dir, "sources", name+"_*.dsc"))
	for _, f := range found {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// control is the newest .dsc file of a package.
func (a *Archive) control(name string) (*download, error) {
	found, err := filepath.Glob(filepath.Join(a.Dir, "sources", name+"_*.dsc"))
	if err != nil || len(found) == 0 {
		return nil, errors.Join(fmt.Errorf("source: %s: no .dsc file", name), err)
	}
	path := found[len(found)-1]
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	version := sourceVersion.FindSubmatch(text)
	if version == nil {
		return nil, fmt.Errorf("source: %s has no version", path)
	}
	return &download{version: string(version[1]), control: path}, nil
}

func (a *Archive) unpack(ctx context.Context, d *download, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dpkg-source", "-x", d.control, dir)
	if d.control == "" {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		cmd = exec.CommandContext(ctx, "tar", "-x", "-f", d.tarball, "-C", dir, "--strip-components=1", "--no-same-owner")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("source: %s: %w: %s", cmd.Args[0], err, lastLine(out))
	}
	return nil
}
