package record

import (
	"errors"
	"fmt"
	"io"
	"os"

	"diagnose/replay/record/eventlog"
)

// LinkerCachePath is the file in which glibc's dynamic linker looks up libraries (ld.so(8)). The
// linker maps it whole before the first library, so its size decides where the libraries are mapped.
const LinkerCachePath = "/etc/ld.so.cache"

// LinkerCacheName is the file with the contents that LinkerCachePath had when the process started.
// Installing a package changes the cache, and other machines have others; a replay's linker gets
// this one.
const LinkerCacheName = "linker-cache"

// MostLinkerCache is the maximum size of a linker's cache, in bytes: a hundred times that of a large
// installation.
const MostLinkerCache = 16 << 20

// LinkerCache returns the contents of LinkerCacheName, empty where the recorded system had no such
// file. known is false for a recording that an earlier version made, which did not keep it.
func (r *Recording) LinkerCache() (data []byte, known bool, err error) {
	stored := r.Manifest.LinkerCache
	if stored == nil {
		return nil, false, nil
	}
	if stored.Size == 0 {
		return nil, true, nil
	}
	data, err = r.stored(LinkerCacheName, stored, MostLinkerCache)
	if err == nil {
		err = checkSum(LinkerCacheName, stored, data)
	}
	return data, true, err
}

// stored reads a file of at most so many bytes. want is what the manifest says of it; nil: nothing,
// and the file may be missing. A file that is shorter than the manifest says is cut off.
func (r *Recording) stored(name string, want *StoredFile, most int64) ([]byte, error) {
	f, err := r.File(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && want == nil:
		return nil, nil
	case errors.Is(err, os.ErrNotExist):
		return nil, &eventlog.CutError{File: name, What: fmt.Sprintf("it is missing, it had %d bytes", want.Size)}
	case err != nil:
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	size := int64(len(data))
	switch {
	case err != nil:
		return nil, &eventlog.InputError{Err: fmt.Errorf("record: %s: %w", name, err)}
	case size > most:
		return nil, &eventlog.CorruptError{File: name, What: fmt.Sprintf("it has more than %d bytes", most)}
	case want != nil && size < want.Size:
		return nil, &eventlog.CutError{File: name, Offset: size, What: fmt.Sprintf("it had %d bytes", want.Size)}
	}
	return data, nil
}

// checkSum checks that a file's contents are as the manifest says; nil: it says nothing.
func checkSum(name string, want *StoredFile, data []byte) error {
	if got := Stored(data); want != nil && *got != *want {
		return &eventlog.CorruptError{File: name, What: fmt.Sprintf("its SHA-256 is %s, not %s", got.SHA256, want.SHA256)}
	}
	return nil
}
