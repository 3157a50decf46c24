package sites

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/image/object"
	"diagnose/internal/privatefile"
)

// siteCacheVersion changes with the results of FindSites and with their encoding.
const siteCacheVersion = 5

// objectCode is what the cache stores of an object file: its build-id, the addresses of its
// code, and the system calls in it.
type objectCode struct {
	buildID  string
	segments []codeSegment
	ObjectSites
}

// codeSegment is an executable segment.
type codeSegment struct{ Vaddr, Offset uint64 }

// siteCache stores the results of searches in object files, in this process and in the user's
// cache directory. There a file has two names. One is the digest of the object's contents: the
// same library at another path is not searched again. The other is the digest of the kernel's
// data about the object file (fileIdentity), so the next start reads no library at all. No file
// with other contents can get either name. A build-id would not do, since any user can write
// any build-id into a file. The cache is not used if others may write to it. If the cache
// cannot be used or written, it is ignored.
type siteCache struct {
	dir   func() string // empty: there is no directory
	files sync.Map      // fileIdentity: *objectCode
}

var knownSites = &siteCache{dir: sync.OnceValue(siteCacheDir)}

func siteCacheDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir, err := agent.MakePrivate(filepath.Join(cache, "diagnose", "sites"))
	if err != nil {
		return ""
	}
	return dir
}

// fileIdentity is data that changes whenever a file's contents do. Only the kernel sets the
// time of the last change of the inode. The type of the file system is part of it because a
// file system in user space may report anything.
type fileIdentity struct {
	Device, Inode  uint64
	Size           int64
	MTime, CTime   int64 // ns
	FileSystemType int64
}

// settleTime is longer than a tick of the clock for file times. A file may have been changed
// again within the tick of its last change.
const settleTime = 2 * time.Second

// largestHashed is the largest size of a file that is read completely. Larger files, mostly
// debug information, are known by their identity only.
const largestHashed = 256 << 20

func identityOf(path string) (fileIdentity, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return fileIdentity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fileIdentity{}, fmt.Errorf("%s is not a regular file", path)
	}
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil {
		return fileIdentity{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return fileIdentity{stat.Dev, stat.Ino, stat.Size, stat.Mtim.Nano(), stat.Ctim.Nano(), system.Type}, nil
}

// settled reports whether the file had no other contents with this identity.
func (i fileIdentity) settled() bool {
	return time.Since(time.Unix(0, max(i.CTime, i.MTime))) > settleTime
}

// lookup returns the cached data of a file; nil: there is none.
func (c *siteCache) lookup(identity fileIdentity) *objectCode {
	if code, ok := c.files.Load(identity); ok {
		return code.(*objectCode)
	}
	if !identity.settled() {
		return nil
	}
	code := c.read(identity.name())
	if code != nil {
		c.files.Store(identity, code)
	}
	return code
}

// analyse searches a file that lookup does not know. It stops with ctx.
func (c *siteCache) analyse(ctx context.Context, path string, identity fileIdentity) (*objectCode, error) {
	f, name, err := openContents(path, identity)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	code := (*objectCode)(nil)
	if name != "" {
		if code = c.read(name); code != nil && !code.fit(f) {
			code = nil
		}
	}
	if code == nil {
		if code, err = findCode(ctx, f); err != nil {
			return nil, err
		}
		if name != "" {
			c.write(name, code)
		}
	}
	if again, err := identityOf(path); err != nil || again != identity || !identity.settled() {
		return code, nil // it is being changed
	}
	c.files.Store(identity, code)
	switch dir := c.dir(); {
	case dir == "":
	case name == "":
		c.write(identity.name(), code)
	case os.Link(filepath.Join(dir, name), filepath.Join(dir, identity.name())) != nil:
		c.write(identity.name(), code) // the file system has no links, or the file in the cache is damaged
	}
	return code, nil
}

// openContents reads an object file into memory, so that the searched contents are those of the
// digest that names them. A large file has no name.
func openContents(path string, identity fileIdentity) (f *object.File, name string, err error) {
	if identity.Size > largestHashed {
		f, err = object.Open(path)
		return f, "", err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	data := make([]byte, identity.Size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	if f, err = object.FromBytes(path, data); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(data)
	return f, fmt.Sprintf("content-%s.%d", hex.EncodeToString(sum[:]), siteCacheVersion), nil
}

func findCode(ctx context.Context, f *object.File) (*objectCode, error) {
	found, err := FindSites(ctx, f)
	if err != nil {
		return nil, err
	}
	return &objectCode{f.BuildID(), codeSegments(f), found}, nil
}

// CachedSites is FindSites with the cache, for an object that was opened by its path.
func CachedSites(f *object.File) (ObjectSites, error) {
	identity, err := identityOf(f.Path())
	if err != nil {
		return ObjectSites{}, err
	}
	code := knownSites.lookup(identity)
	if code == nil || !code.fit(f) {
		if code, err = findCode(context.Background(), f); err != nil {
			return ObjectSites{}, err
		}
	}
	return code.ObjectSites, nil
}

func codeSegments(f *object.File) (list []codeSegment) {
	for _, s := range f.Segments() {
		if s.Flags&uint32(elf.PF_X) != 0 {
			list = append(list, codeSegment{s.Vaddr, s.Offset})
		}
	}
	return list
}

// codeSize is the size of an object's executable segments, in bytes. A linker may make many of them.
func codeSize(f *object.File) (size uint64) {
	for _, s := range f.Segments() {
		if s.Flags&uint32(elf.PF_X) != 0 {
			size += s.Filesz
		}
	}
	return size
}

func (i fileIdentity) name() string {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, i) // fixed size: it cannot fail
	return fmt.Sprintf("file-%s.%d", hex.EncodeToString(h.Sum(nil)), siteCacheVersion)
}

// largestEntry is larger than the entry of any object.
const largestEntry = 64 << 20

func (c *siteCache) read(name string) *objectCode {
	code, err := decodeCode(c.readFile(name, largestEntry))
	if err != nil {
		return nil
	}
	return code
}

// readFile returns the contents of a regular file of the cache with at most so many bytes; nil: there is none.
func (c *siteCache) readFile(name string, most int64) []byte {
	dir := c.dir()
	if dir == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil
	}
	return b
}

// write writes a file whole or not at all.
func (c *siteCache) write(name string, code *objectCode) {
	dir := c.dir()
	if dir == "" {
		return
	}
	_ = privatefile.Write(filepath.Join(dir, name), encodeCode(code)) // without a cache entry the next start takes longer
}

// fit checks the sites against the object: a patch in the wrong place would break the program.
func (o ObjectSites) fit(f *object.File) bool {
	for _, s := range o.Sites {
		if !s.fits(readObject(f)) {
			return false
		}
	}
	return true
}

// codeHeader begins an encoded objectCode: the numbers of bytes of the build-id, of segments,
// sites and undecided addresses that follow. A digest of all of it is at the end. Numbers are
// little-endian.
type codeHeader struct{ BuildID, Segments, Sites, Undecided, Random uint64 }

func encodeCode(o *objectCode) []byte {
	header := codeHeader{uint64(len(o.buildID)), uint64(len(o.segments)), uint64(len(o.Sites)), uint64(len(o.Undecided)), o.Random}
	var b []byte
	for _, part := range []any{header, []byte(o.buildID), o.segments, o.Sites, o.Undecided} {
		b, _ = binary.Append(b, binary.LittleEndian, part) // fixed sizes: it cannot fail
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

var errDamaged = errors.New("a damaged file of the cache")

func decodeCode(b []byte) (*objectCode, error) {
	var header codeHeader
	size := binary.Size(header)
	if len(b) < size+sha256.Size {
		return nil, errDamaged
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil, errDamaged
	}
	if _, err := binary.Decode(body, binary.LittleEndian, &header); err != nil {
		return nil, errDamaged
	}
	left := uint64(len(body) - size)
	counts := [...]uint64{header.BuildID, header.Segments, header.Sites, header.Undecided}
	for i, each := range [...]int{1, binary.Size(codeSegment{}), binary.Size(Site{}), 8} {
		if counts[i] > left/uint64(each) {
			return nil, errDamaged
		}
		left -= counts[i] * uint64(each)
	}
	if left != 0 {
		return nil, errDamaged
	}
	body = body[size:]
	o := &objectCode{buildID: string(body[:header.BuildID]), segments: make([]codeSegment, header.Segments), ObjectSites: ObjectSites{
		Sites: make([]Site, header.Sites), Undecided: make([]uint64, header.Undecided), Random: header.Random}}
	r := bytes.NewReader(body[header.BuildID:])
	for _, part := range []any{o.segments, o.Sites, o.Undecided} {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return nil, errDamaged
		}
	}
	return o, nil
}
