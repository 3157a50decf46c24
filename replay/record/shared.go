package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"diagnose/image/object"
)

// Shared says how users that are not trusted with a file may change the file at its path.
type Shared int

// The ways.
const (
	// NotShared: only root and the users that own the file and its directories may. Their
	// groups are trusted as well, since many users have a group of their own.
	NotShared Shared = iota
	// SharedSticky: all users may create files in a directory of the path, but may replace only
	// their own (the sticky bit of inode(7)). The entries of the path belong to root or to this
	// process's user.
	SharedSticky
	// SharedByAll: all users may write to the file or replace it, or it belongs to another user
	// and is in a directory where all may create files.
	SharedByAll
)

// SharedFile examines a file, the directories of its path, and those of the path that symbolic
// links lead to.
func SharedFile(path string) (Shared, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return SharedByAll, fmt.Errorf("record: %w", err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return SharedByAll, fmt.Errorf("record: %w", err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return SharedByAll, nil
	}
	found := NotShared
	for _, p := range slices.Compact([]string{filepath.Clean(path), resolved}) {
		for ; p != filepath.Dir(p); p = filepath.Dir(p) {
			s, err := sharedEntry(p)
			if err != nil {
				return SharedByAll, fmt.Errorf("record: %w", err)
			}
			found = max(found, s)
		}
	}
	return found, nil
}

// sharedEntry returns how a directory shares its entry.
func sharedEntry(path string) (Shared, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode().Perm()&0o002 == 0 {
		return NotShared, err
	}
	entry, err := os.Lstat(path)
	if err != nil {
		return SharedByAll, err
	}
	owner := entry.Sys().(*syscall.Stat_t).Uid
	if dir.Mode()&fs.ModeSticky != 0 && (owner == 0 || int(owner) == os.Geteuid()) {
		return SharedSticky, nil
	}
	return SharedByAll, nil
}

// FileSum is the SHA-256 digest of a regular file, in hexadecimal.
func FileSum(name string) (string, error) {
	f, _, err := object.OpenRegular(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
