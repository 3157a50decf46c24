package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"diagnose/image/object"
)

// siteCacheVersion changes with what FindSites finds.
const siteCacheVersion = 4

// CachedSites is FindSites, which takes a tenth of a second for the C library,
// with what it found before kept in the user's cache under the object's
// build-id. A cache that cannot be used or written is done without.
func CachedSites(f *object.File) (ObjectSites, error) {
	path := siteCachePath(f.BuildID())
	if path != "" {
		if b, err := os.ReadFile(path); err == nil {
			if found, ok := decodeSites(b); ok && found.fit(f) {
				return found, nil
			}
		}
	}
	found, err := FindSites(f)
	if err == nil && path != "" {
		keepSites(path, encodeSites(found))
	}
	return found, err
}

func siteCachePath(buildID string) string {
	dir, err := os.UserCacheDir()
	if err != nil || len(buildID) < 16 {
		return ""
	}
	return filepath.Join(dir, "diagnose", "sites", fmt.Sprintf("%s.%d", buildID, siteCacheVersion))
}

// keepSites writes a file that is whole or is not there.
func keepSites(path string, b []byte) {
	dir := filepath.Dir(path)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return
	}
	_, err = f.Write(b)
	if closeErr := f.Close(); err != nil || closeErr != nil || os.Rename(f.Name(), path) != nil {
		os.Remove(f.Name())
	}
}

// fit checks the sites against the object: a patch in the wrong place would
// destroy the program.
func (o ObjectSites) fit(f *object.File) bool {
	for _, s := range o.Sites {
		if !s.fits(readObject(f)) {
			return false
		}
	}
	return true
}

// encodeSites is the numbers of both, the sites, the undecided, how many
// instructions bring chance, and a digest of all that; everything little-endian.
func encodeSites(o ObjectSites) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(o.Sites)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(o.Undecided)))
	for _, s := range o.Sites {
		b, _ = binary.Append(b, binary.LittleEndian, s) // fixed size: it cannot fail
	}
	for _, at := range o.Undecided {
		b = binary.LittleEndian.AppendUint64(b, at)
	}
	b = binary.LittleEndian.AppendUint64(b, o.Random)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func decodeSites(b []byte) (o ObjectSites, ok bool) {
	if len(b) < 24+sha256.Size {
		return o, false
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return o, false
	}
	sites, undecided := binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:])
	o.Random = binary.LittleEndian.Uint64(body[len(body)-8:])
	body = body[16 : len(body)-8]
	size := uint64(binary.Size(Site{}))
	if sites > uint64(len(body))/size || undecided != (uint64(len(body))-sites*size)/8 {
		return o, false
	}
	o.Sites, o.Undecided = make([]Site, sites), make([]uint64, undecided)
	r := bytes.NewReader(body)
	if binary.Read(r, binary.LittleEndian, o.Sites) != nil || binary.Read(r, binary.LittleEndian, o.Undecided) != nil {
		return ObjectSites{}, false
	}
	return o, true
}
