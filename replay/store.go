package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/privatefile"
	"diagnose/replay/checkpoint"
	"diagnose/replay/record"
)

// Store is a directory with files of checkpoints, with which the replays of later processes begin. Its files have memory of the recorded
// program, and are for their owner alone. A file is used on the machine that wrote it until that starts again, by the same version of the
// tool. One that is damaged is removed.
type Store struct {
	dir, version string
	// least is the time that whole replays of a recording must have taken before checkpoints of it are written.
	least time.Duration
}

const (
	// mostOfRecording bounds the files of a recording that a diagnosis writes, mostFile the pages in each of them in bytes.
	mostOfRecording = 3
	mostFile        = 256 << 20
	// mostFiles and mostStored bound the files of a Store and their bytes. The oldest are removed.
	mostFiles  = 24
	mostStored = 1 << 30
	// leastReplay is Store.least: a file takes some 100 ms.
	leastReplay = time.Second
	fileSuffix  = ".checkpoint"
)

// OpenStore opens a directory, which is made if it is not there. version is that of the tool. It is an error if others may write to it.
func OpenStore(dir, version string) (*Store, error) {
	dir, err := agent.MakePrivate(dir)
	if err != nil {
		return nil, err
	}
	return &Store{dir, version, leastReplay}, nil
}

type storeKey struct{}

// UseStore returns a context in which KeepCheckpoints reads checkpoints from a Store and writes some to it at its end.
func UseStore(ctx context.Context, s *Store) context.Context {
	return context.WithValue(ctx, storeKey{}, s)
}

func storeOf(ctx context.Context) *Store {
	s, _ := ctx.Value(storeKey{}).(*Store)
	return s
}

// prefix returns the beginning of the names of a recording's files. It depends on all that a process in memory depends on, but for
// the log and the mapped files: these are compared when a file is used.
func (s *Store) prefix(rec *record.Recording) (string, error) {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	about, err := json.Marshal([]any{rec.Manifest, s.version, agent.RecordVersion, system.Release[:], system.Version[:], boot})
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	sum := sha256.Sum256(about)
	return hex.EncodeToString(sum[:16]) + "-", nil
}

// open opens a file of the Store. One that others can read or write to is not opened.
func (s *Store) open(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	if err == nil && (info.Mode != unix.S_IFREG|0o600 || int(info.Uid) != os.Geteuid()) {
		err = errors.New("replay: others may have written " + f.Name())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// names returns the names of a recording's files.
func (s *Store) names(prefix string) (names []string, err error) {
	list, err := os.ReadDir(s.dir)
	for _, e := range list {
		if name := e.Name(); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, fileSuffix) {
			names = append(names, name)
		}
	}
	return names, err
}

func (s *Store) remove(name string) { os.Remove(filepath.Join(s.dir, name)) }

// write writes a checkpoint.
func (s *Store) write(x *kept) error {
	prefix, err := s.prefix(x.of.rec)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, fmt.Sprintf("%s%d%s", prefix, x.position, fileSuffix))
	return privatefile.Replace(path, func(w io.Writer) error { return x.save(w, x.position, mostFile) })
}

// prune removes the files that were not used for the longest time.
func (s *Store) prune() error {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	left := int64(mostStored)
	for i, info := range files {
		if left -= info.Size(); i >= mostFiles || left < 0 {
			s.remove(info.Name())
		}
	}
	return nil
}

// stored is a checkpoint in a file that is not a process yet.
type stored struct {
	store *Store
	name  string
}

// find adds the checkpoints of a recording that are in the Store, once.
func (k *Kept) find(at *scope) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store == nil || at.free || k.searched[at.rec] || k.closed {
		return
	}
	k.searched[at.rec] = true
	prefix, err := k.store.prefix(at.rec)
	if err != nil {
		return // replays are whole, as without a Store
	}
	names, err := k.store.names(prefix)
	if err != nil {
		return
	}
	for _, name := range names[:min(len(names), k.most)] {
		f, err := k.store.open(name)
		if err != nil {
			continue
		}
		_, about, err := readCheckpoint(f)
		f.Close()
		switch damaged := (*checkpoint.DamagedError)(nil); {
		case errors.As(err, &damaged):
			k.store.remove(name)
		case err != nil:
		case about.Timing == at.timing:
			k.list = append(k.list, &kept{Checkpoint: about.checkpoint(), of: at, position: about.Position, stored: &stored{k.store, name}})
			if k.timings[at.rec] == "" {
				k.timings[at.rec] = about.Timing
			}
		}
	}
}

var errNoRoom = errors.New("replay: there is no room for the process of a checkpoint")

// load makes the process of a checkpoint that is in a file. If it cannot be made, the file is removed.
func (k *Kept) load(ctx context.Context, x *kept) (err error) {
	k.loading.Lock()
	defer k.loading.Unlock()
	if x.stored == nil || x.copied != nil {
		return nil
	}
	defer func() {
		if err != nil && ctx.Err() == nil && !errors.Is(err, errNoRoom) {
			x.stored.store.remove(x.stored.name)
		}
	}()
	f, err := x.stored.store.open(x.stored.name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !checkpoint.HasRoomFor(uint64(info.Size())) {
		return errors.Join(err, errNoRoom)
	}
	saved, about, err := readCheckpoint(f)
	if err != nil {
		return err
	}
	p := k.prepared[x.of.rec]
	if p == nil {
		if p, err = prepareRecording(ctx, x.of.rec, about.Timing); err != nil {
			return err
		}
		k.prepared[x.of.rec] = p
	}
	loaded, err := p.load(ctx, saved, about)
	if err != nil {
		return err
	}
	now := time.Now()
	os.Chtimes(f.Name(), now, now) // the order in which prune removes files is no more than useful
	k.mu.Lock()
	defer k.mu.Unlock()
	x.copied, x.recordings = loaded.copied, loaded.recordings
	k.counts.Loaded++
	return nil
}

// write writes the most useful checkpoints, before Close. Without them later processes take longer, so an error is none of the
// diagnosis's.
func (k *Kept) write() {
	if k.store == nil {
		return
	}
	written := false
	for rec, took := range k.whole {
		if took < k.store.least || k.timings[rec] == "" {
			continue
		}
		var list []*kept
		for _, x := range k.list {
			if x.of.rec == rec && !x.of.free && x.of.key == nil && !x.lost {
				list = append(list, x)
			}
		}
		for _, x := range useful(list) {
			if x.stored == nil {
				written = k.store.write(x) == nil || written
			}
		}
	}
	if written {
		k.store.prune()
	}
}

// useful chooses the checkpoints without which the replays that began at the given ones would have replayed the most events again.
func useful(list []*kept) (chosen []*kept) {
	saved := func(chosen []*kept) (events uint64) {
		for _, x := range list {
			var from uint64
			for _, c := range chosen {
				if c.position <= x.position {
					from = max(from, c.position)
				}
			}
			events += x.uses * from
		}
		return events
	}
	for len(chosen) < mostOfRecording {
		var next *kept
		best := saved(chosen)
		for _, x := range list {
			if n := saved(append(slices.Clip(chosen), x)); n > best {
				best, next = n, x
			}
		}
		if next == nil {
			break
		}
		chosen = append(chosen, next)
	}
	return chosen
}
