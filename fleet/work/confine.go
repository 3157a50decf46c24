package work

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"diagnose/corpus/analysis"
)

// Namespace confines an analysis to a user namespace and a network namespace of its own
// (user_namespaces(7), network_namespaces(7)): it has no network but a loopback device that is
// down, and no right that its user does not have. A worker of root's gives each analysis a user
// that nothing else has, so that it can read only what everybody can, and its own job. Another
// user's worker gives it its own user, which can read all that the worker can.
type Namespace struct{ users atomic.Uint32 }

// firstUser begins the range of ids from which root's analyses have users: distributions and
// systemd assign none there (systemd's UIDS-GIDS.md).
const firstUser, mostUsers = 1_900_000_000, 100_000_000

// NewNamespace returns a Namespace.
func NewNamespace() *Namespace {
	n := &Namespace{}
	n.users.Store(rand.Uint32N(mostUsers))
	return n
}

// Confine is that of analysis.Confiner.
func (n *Namespace) Confine(cmd *exec.Cmd, read []string, write string) error {
	a := cmd.SysProcAttr
	if a == nil {
		a = &syscall.SysProcAttr{}
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid = firstUser + int(n.users.Add(1)%mostUsers)
		gid = uid
		for _, dir := range append(append([]string{filepath.Dir(cmd.Path)}, read...), write) {
			if err := open(dir); err != nil {
				return err
			}
		}
		for _, dir := range append(read[:len(read):len(read)], write) {
			if err := give(dir, uid, gid); err != nil {
				return fmt.Errorf("work: %w", err)
			}
		}
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}
	}
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	cmd.SysProcAttr = a
	return nil
}

// open fails if another user cannot reach a directory: one above it is closed to others.
func open(dir string) error {
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			return fmt.Errorf("work: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return &analysis.UnsupportedError{What: fmt.Sprintf("%s is closed to other users, so the analyses run as the worker's", up)}
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
