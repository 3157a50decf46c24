package sites

import (
	"fmt"
	"os"
	"syscall"

	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/procmaps"
	"diagnose/replay/record"
)

// readMappings reads /proc/PID/maps.
func Mappings(pid int) ([]record.Mapping, error) {
	lines, err := procmaps.Read(pid)
	if err != nil {
		return nil, err
	}
	list := make([]record.Mapping, len(lines))
	for i, l := range lines {
		list[i] = record.Mapping{Start: l.Start, End: l.End, Offset: evidence.Addr(l.Offset), Permissions: l.Perms, Path: record.Text(l.Path)}
		if l.Inode != 0 {
			list[i].File = &record.File{Device: l.Device, Inode: l.Inode}
		}
	}
	return list, nil
}

func StatFile(path string) (record.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return record.File{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return record.File{}, fmt.Errorf("%s: no inode is known", path)
	}
	return record.File{Device: stat.Dev, Inode: stat.Ino, Size: stat.Size, MTimeNS: stat.Mtim.Nano()}, nil
}

// recordedBuildID is object.BuildIDOf, but reads no file whose sites are known.
func BuildIDOf(path string) string {
	if identity, err := identityOf(path); err == nil {
		if code := knownSites.lookup(identity); code != nil {
			return code.buildID
		}
	}
	return object.BuildIDOf(path)
}
