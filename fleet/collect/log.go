package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	logName = "log"
	// mostLog is the size, in bytes, at which the log becomes the old one, in place of an older one.
	mostLog = 1 << 20
)

// Log adds a line to the spool's log. The kernel gives the handler no other place for messages. If
// the disk is full the line goes to the kernel's log.
func Log(dir, text string) {
	line := fmt.Sprintf("%s %q\n", time.Now().UTC().Format(time.RFC3339), text)
	path := filepath.Join(dir, logName)
	if info, err := os.Lstat(path); err == nil && info.Size() > mostLog {
		os.Rename(path, path+".old") // a longer log is no reason to lose the line
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
		f.Close()
	}
	if err == nil {
		return
	}
	if f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0); err == nil {
		defer f.Close()
		fmt.Fprintf(f, "diagnose collect: %.700q\n", text) // a line of the kernel's log has about 1000 bytes
	}
}
