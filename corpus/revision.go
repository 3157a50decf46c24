package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Revision is a state of the database's file. Two that are equal are of the same rows, except that
// a file system's clock may be too coarse to tell two changes of one moment apart.
type Revision struct {
	inode    uint64
	size     int64
	modified time.Time
}

// Revision returns the present state. Every change writes to the database's file, because the
// journal is a rollback journal.
func (c *Corpus) Revision() (Revision, error) {
	// The file is not opened: closing it would release the locks that this process has on it.
	info, err := os.Stat(filepath.Join(c.Dir, databaseName))
	if err != nil {
		return Revision{}, fmt.Errorf("corpus: %w", err)
	}
	r := Revision{size: info.Size(), modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		r.inode = st.Ino
	}
	return r, nil
}
