package agent

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPrivilege refuses a program that gains rights when it is run: ld.so(8)
// ignores LD_PRELOAD then (secure-execution mode), without a word. What gains
// nothing is no such program: a set-user-ID file of the very user.
func (t *Target) checkPrivilege() error {
	info, err := os.Stat(t.File)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: no owner is known", t.File)
	}
	gains := ""
	switch {
	case info.Mode()&fs.ModeSetuid != 0 && int(stat.Uid) != os.Getuid():
		gains = fmt.Sprintf("set-user-ID, to user %d", stat.Uid)
	// Without the group's right to run it, the bit means mandatory locking.
	case info.Mode()&fs.ModeSetgid != 0 && info.Mode()&0o010 != 0 && int(stat.Gid) != os.Getgid():
		gains = fmt.Sprintf("set-group-ID, to group %d", stat.Gid)
	case os.Getuid() != 0 && hasCapabilities(t.File):
		gains = "file capabilities"
	}
	if gains == "" || !gainsPossible(t.File) {
		return nil
	}
	return fmt.Errorf("%s gains rights when it is run (%s): the dynamic linker loads no agent into such a program; run it as the user whose rights it gains, or a copy without them", t.File, gains)
}

func hasCapabilities(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}

// gainsPossible: the bits mean nothing on a file system that is mounted
// nosuid, nor in a process that gave up gaining rights (prctl(2)).
func gainsPossible(path string) bool {
	var system unix.Statfs_t
	if unix.Statfs(path, &system) == nil && system.Flags&unix.ST_NOSUID != 0 {
		return false
	}
	gaveUp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err != nil || gaveUp == 0
}
