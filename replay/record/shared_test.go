package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestSharedFile(t *testing.T) {
	top := t.TempDir()
	for _, x := range []struct {
		name      string
		dir, file fs.FileMode
		want      Shared
	}{
		{"own", 0o755, 0o755, NotShared},
		{"group", 0o775, 0o775, NotShared},
		{"writable", 0o755, 0o757, SharedByAll},
		{"replaceable", 0o777, 0o755, SharedByAll},
		{"sticky", 0o777 | fs.ModeSticky, 0o755, SharedSticky},
	} {
		dir := filepath.Join(top, x.name)
		file, link := filepath.Join(dir, "file"), filepath.Join(top, x.name+"-link")
		err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, nil, 0o600), os.Chmod(file, x.file), os.Chmod(dir, x.dir), os.Symlink(file, link))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, link} {
			// No file can be shared less than the directories above it, usually /tmp.
			above, err := SharedFile(top)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := SharedFile(path); err != nil || got != max(above, x.want) {
				t.Errorf("%s: %d, %v, want %d", path, got, err, x.want)
			}
		}
		if os.Geteuid() != 0 {
			continue
		}
		if err := os.Lchown(file, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if got, err := SharedFile(file); x.name == "sticky" && (err != nil || got != SharedByAll) {
			t.Errorf("another user's in a sticky directory: %d, %v", got, err)
		}
	}
	if _, err := SharedFile(filepath.Join(top, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
