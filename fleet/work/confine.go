package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"diagnose/corpus/analysis"
	"diagnose/fleet/privateroot"
)

// Isolation confines analyses. Replays run in a private root (fleet/privateroot), which has the
// objects of their recordings and no other file of this machine. The analysis of a core executes
// nothing of the core, and needs the executable and the debug information that the host has: it
// gets a user namespace and a network namespace of its own (user_namespaces(7),
// network_namespaces(7)), without network.
//
// A worker of root's gives each analysis a user that nothing else has, so that it can read only
// what everybody can, and its own job. Another user's worker gives it its own user.
type Isolation struct {
	tool    string   // the diagnose that runs in private roots
	objects []string // privateroot.Sources.Objects
	users   atomic.Uint32
}

// firstUser begins the range of ids from which root's analyses have users: distributions and
// systemd assign none there (systemd's UIDS-GIDS.md).
const firstUser, mostUsers = 1_900_000_000, 100_000_000

// NewIsolation returns an Isolation for a program of diagnose, which must be a static executable.
// objects are those of privateroot.Sources.
func NewIsolation(tool string, objects ...string) *Isolation {
	n := &Isolation{tool: tool, objects: objects}
	n.users.Store(rand.Uint32N(mostUsers))
	return n
}

// Confine is that of analysis.Confiner.
func (n *Isolation) Confine(ctx context.Context, cmd *exec.Cmd, v analysis.View) (release func(), err error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid = firstUser + int(n.users.Add(1)%mostUsers)
		gid = uid
		if err := hand(cmd.Path, v, uid, gid); err != nil {
			return nil, err
		}
	}
	if len(v.Recordings) > 0 {
		return n.root(ctx, cmd, v, uid, gid)
	}
	namespaces(cmd, uid, gid)
	return func() {}, nil
}

// root puts a command into a private root for its recordings.
func (n *Isolation) root(ctx context.Context, cmd *exec.Cmd, v analysis.View, uid, gid int) (func(), error) {
	dir, err := os.MkdirTemp(filepath.Dir(v.Output), "root-")
	if err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	release := func() { os.RemoveAll(dir) }
	err = os.Chmod(dir, 0o711)
	var root *privateroot.Root
	if err == nil {
		root, err = privateroot.Build(ctx, filepath.Join(dir, "root"), privateroot.Sources{Recordings: v.Recordings, Objects: n.objects})
	}
	if err == nil {
		root.Tool, root.Writable = n.tool, []string{v.Output}
		err = root.Wrap(cmd, uid, gid)
	}
	var no *privateroot.UnsupportedError
	if errors.As(err, &no) {
		err = &analysis.UnsupportedError{What: no.Error()}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// namespaces gives a command a user namespace with one user, and a network namespace.
func namespaces(cmd *exec.Cmd, uid, gid int) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	a := cmd.SysProcAttr
	if os.Geteuid() == 0 {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}
	}
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
}

// hand gives a user what an analysis reads and writes. It fails if the user cannot reach it.
func hand(program string, v analysis.View, uid, gid int) error {
	own := append(v.Files[:len(v.Files):len(v.Files)], v.Output)
	for _, name := range append(own[:len(own):len(own)], program) {
		if err := reachable(name); err != nil {
			return err
		}
	}
	for _, dir := range own {
		if err := give(dir, uid, gid); err != nil {
			return fmt.Errorf("work: %w", err)
		}
	}
	return nil
}

// reachable fails if a directory above a file is closed to other users.
func reachable(name string) error {
	for up := filepath.Dir(name); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			return fmt.Errorf("work: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return &analysis.UnsupportedError{What: up + " is closed to other users"}
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

// give makes a user the owner of all files below a directory. Symbolic links are not followed.
func give(dir string, uid, gid int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(name, uid, gid)
	})
}
