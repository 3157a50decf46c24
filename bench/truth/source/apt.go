package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// prepare writes apt's configuration and fetches the lists, once.
func (a *Archive) prepare(ctx context.Context) error {
	stamp := filepath.Join(a.Dir, "updated")
	if _, err := os.Stat(stamp); err == nil {
		return nil
	}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial", "sources"} {
		if err := os.MkdirAll(filepath.Join(a.Dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"state/status": "",
		"sources.list": "deb-src [signed-by=" + keyring + "] http://deb.debian.org/debian bookworm main\n",
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
	version := filepath.Join(a.Dir, "unpacked", p.Name+".version")
	if text, err := os.ReadFile(version); err == nil {
		return &Unpacked{p, string(text), dir}, nil
	}
	if err := a.apt(ctx, "source", "--download-only", p.DebianName()); err != nil {
		return nil, &UnavailableError{p.Name, err}
	}
	control, text, err := a.control(p.DebianName())
	if err != nil {
		return nil, err
	}
	if err := a.unpack(ctx, control, dir); err != nil {
		return nil, err
	}
	found := sourceVersion.FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("source: %s has no version", control)
	}
	return &Unpacked{p, found[1], dir}, os.WriteFile(version, []byte(found[1]), 0o644)
}

// control is the path and the text of the newest .dsc file of a package.
func (a *Archive) control(name string) (path, text string, err error) {
	found, err := filepath.Glob(filepath.Join(a.Dir, "sources", name+"_*.dsc"))
	if err != nil || len(found) == 0 {
		return "", "", errors.Join(fmt.Errorf("source: %s: no .dsc file", name), err)
	}
	path = found[len(found)-1]
	content, err := os.ReadFile(path)
	return path, string(content), err
}

func (a *Archive) unpack(ctx context.Context, control, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "dpkg-source", "-x", control, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("source: dpkg-source: %w: %s", err, lastLine(out))
	}
	return nil
}
