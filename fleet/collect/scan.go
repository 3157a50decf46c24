package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"golang.org/x/sys/unix"

	"diagnose/fleet/collect/spool"
	"diagnose/internal/privatefile"
)

const (
	// CoredumpDir is where systemd-coredump stores cores (coredump.conf(5), Storage=external).
	CoredumpDir = "/var/lib/systemd/coredump"
	// scannedName is the file of the spool that names the cores of the directory that were taken.
	scannedName = "scanned.json"
	// mostScanned bounds it, in bytes, and mostCores the cores of the directory.
	mostScanned, mostCores = 8 << 20, 1 << 15
)

// Scanned is the result of Scan.
type Scanned struct {
	Kept, Counted int
	// Failed has a line for each core that could not be taken. It is not tried again.
	Failed []string
}

// Scan takes the cores of systemd-coredump's directory that it has not taken before. systemd has no hook for
// a core that was stored, so the directory is looked at. The crashed process has ended by then: its files
// are those of this machine, and only the environment on its stack is searched for secrets.
func Scan(s *spool.Spool, dir string) (Scanned, error) {
	var done Scanned
	names, err := os.ReadDir(dir)
	if err != nil {
		return done, err
	}
	path := filepath.Join(s.Dir, scannedName)
	before, now := readScanned(path), map[string]int64{}
	for _, n := range names {
		info, err := n.Info()
		// A file that is being written has a name that begins with .# (coredump.c of systemd).
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(n.Name(), "core.") || len(now) == mostCores {
			continue
		}
		changed := info.ModTime().UnixNano()
		now[n.Name()] = changed
		if before[n.Name()] == changed {
			continue
		}
		outcome, err := scanOne(s, filepath.Join(dir, n.Name()))
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			done.Failed = append(done.Failed, fmt.Sprintf("%s: %v", n.Name(), err))
		case outcome.Dir != "":
			done.Kept++
		default:
			done.Counted++
		}
		// Written after each one: a scan that is killed does not count a core twice.
		if err := writeScanned(path, before, now); err != nil {
			return done, err
		}
	}
	return done, writeScanned(path, nil, now)
}

// readScanned reads which cores were taken, by name, with the time of their last change. Of an
// unreadable file none were.
func readScanned(path string) map[string]int64 {
	list := map[string]int64{}
	f, err := os.Open(path)
	if err != nil {
		return list
	}
	defer f.Close()
	if text, err := io.ReadAll(io.LimitReader(f, mostScanned)); err != nil || json.Unmarshal(text, &list) != nil {
		return map[string]int64{}
	}
	return list
}

func writeScanned(path string, before, now map[string]int64) error {
	all := map[string]int64{}
	for _, list := range []map[string]int64{before, now} {
		for k, v := range list {
			all[k] = v
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return privatefile.Write(path, text)
}

func scanOne(s *spool.Spool, path string) (*Outcome, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	crash, err := crashOf(f)
	if err != nil {
		return nil, err
	}
	in, done, err := unpacked(f)
	if err != nil {
		return nil, err
	}
	defer done()
	return Handle(s, in, crash)
}

// crashOf reads the extended attributes that systemd-coredump gives a core (coredump.c).
func crashOf(f *os.File) (Crash, error) {
	info, err := f.Stat()
	if err != nil {
		return Crash{}, err
	}
	number := func(name string) int64 {
		var b [64]byte
		n, err := unix.Fgetxattr(int(f.Fd()), "user.coredump."+name, b[:])
		if err != nil {
			return 0
		}
		v, err := strconv.ParseInt(string(b[:n]), 10, 64)
		if err != nil {
			return 0
		}
		return v
	}
	crash := Crash{UID: int(number("uid")), GID: int(number("gid")), Signal: int(number("signal")), Time: info.ModTime(), Ended: true}
	crash.PID = int(number("pid"))
	crash.TID = crash.PID
	const microseconds = 1e14 // earlier versions have seconds
	if t := number("timestamp"); t >= microseconds {
		crash.Time = time.UnixMicro(t)
	} else if t > 0 {
		crash.Time = time.Unix(t, 0)
	}
	return crash, nil
}

// unpacked reads a core that may be compressed, by zstd or LZ4.
func unpacked(f io.Reader) (io.Reader, func(), error) {
	const most = 128 << 20 // the largest window of zstd(1)
	in := bufio.NewReaderSize(f, 64<<10)
	head, _ := in.Peek(6) // a read returns the error
	switch {
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(most), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case bytes.HasPrefix(head, []byte("\x04\x22\x4d\x18")):
		return lz4.NewReader(in), func() {}, nil
	case bytes.HasPrefix(head, []byte("\xfd7zXZ")):
		return nil, nil, errors.New("it is compressed by xz, which is not supported here; Compress=no or zstd in coredump.conf(5)")
	}
	return in, func() {}, nil
}
