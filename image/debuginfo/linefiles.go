package debuginfo

import (
	"fmt"
	"path"
	"sync"
)

// lineHeader is the head of a line program (DWARF 5 section 6.2.4) and the
// files it names.
type lineHeader struct {
	unit         *unit
	offset       uint64 // in .debug_line
	program      []byte // the section up to the program's end
	start        int    // where the opcodes begin
	version      uint16
	wide         bool
	minInst      uint64
	defaultStmt  bool
	lineBase     int8
	lineRange    uint8
	opcodeBase   uint8
	opcodeLength []byte
	dirs         []string
	files        []lineFile
}

// lineFile is an entry of the file table: its full path, and the MD5 of its text; nil: it is not known.
type lineFile struct {
	path string
	md5  []byte
}

// lineTable is a unit's line program: its files, and on demand its rows.
type lineTable struct {
	header *lineHeader
	rows   func() ([]subfile, error)
}

func (u *unit) readLines() (*lineTable, error) {
	home := u.home()
	if home.root.stmtList.form == 0 {
		return nil, nil
	}
	h, err := home.readLineHeader(home.root.stmtList.number)
	if err != nil {
		return nil, err
	}
	return &lineTable{header: h, rows: sync.OnceValues(h.readSubfiles)}, nil
}

func (u *unit) readLineHeader(offset uint64) (*lineHeader, error) {
	r, err := u.src.reader(secLine, offset, "line program")
	if err != nil {
		return nil, err
	}
	h := &lineHeader{unit: u, offset: offset}
	length, wide := r.length()
	if r.bad || !r.has(length) {
		return nil, u.src.bad(secLine, offset, "line program is longer than the section")
	}
	h.wide = wide
	r.data, r.more = r.data[:r.pos+int(length)], nil
	h.program = r.data
	if err := h.readFields(&r); err != nil {
		return nil, err
	}
	if h.version >= 5 {
		err = h.readEntryTables(&r)
	} else {
		err = h.readOldTables(&r)
	}
	return h, err
}

func (h *lineHeader) bad(pos int, reason string) error {
	return h.unit.src.bad(secLine, uint64(pos), reason)
}

func (h *lineHeader) readFields(r *reader) error {
	h.version = r.u16()
	if h.version < 2 || h.version > 5 {
		return h.bad(int(h.offset), fmt.Sprintf("line program of version %d", h.version))
	}
	if h.version >= 5 {
		if size := r.u8(); size != 8 && !r.bad {
			return h.bad(r.pos, fmt.Sprintf("line program with addresses of %d bytes", size))
		}
		if selector := r.u8(); selector != 0 {
			return h.bad(r.pos, "line program with segment selectors")
		}
	}
	length := r.offset(h.wide)
	if length > uint64(r.left()) {
		return h.bad(int(h.offset), "line program header is longer than the program")
	}
	h.start = r.pos + int(length)
	h.minInst = uint64(r.u8())
	if h.version >= 4 {
		// maximum operations per instruction: 1 on everything but VLIW
		if ops := r.u8(); ops > 1 {
			return h.bad(r.pos, "line program for a VLIW machine")
		}
	}
	h.defaultStmt = r.u8() != 0
	h.lineBase = int8(r.u8())
	h.lineRange = r.u8()
	h.opcodeBase = r.u8()
	if h.lineRange == 0 || h.opcodeBase == 0 {
		return h.bad(int(h.offset), "line program with a line range or opcode base of 0")
	}
	h.opcodeLength = r.bytes(uint64(h.opcodeBase) - 1)
	if r.bad {
		return h.bad(int(h.offset), "line program header is cut off")
	}
	return nil
}

// readOldTables reads the directories and files of versions 2 to 4, where
// directory 0 is the unit's and files count from 1.
func (h *lineHeader) readOldTables(r *reader) error {
	h.dirs = []string{h.compDir()}
	for {
		dir := r.cstring()
		if len(dir) == 0 {
			break
		}
		h.dirs = append(h.dirs, string(dir))
	}
	h.files = []lineFile{{}}
	for !r.bad {
		name := r.cstring()
		if len(name) == 0 {
			break
		}
		h.addFile(string(name), r)
	}
	if r.bad {
		return h.bad(r.pos, "file table is cut off")
	}
	return nil
}

// addFile adds a file of versions 2 to 4, whose directory, time and length r
// reads.
func (h *lineHeader) addFile(name string, r *reader) {
	dir := r.uleb()
	r.skipLEB()
	r.skipLEB()
	h.files = append(h.files, lineFile{path: h.join(name, dir)})
}

func (h *lineHeader) compDir() string { return h.unit.describe().CompDir }

// join builds a file's path from the parts that the compiler recorded. Nothing
// is cleaned: "a/../b" is another file than "b" where a is a link.
func (h *lineHeader) join(name string, dir uint64) string {
	if path.IsAbs(name) {
		return name
	}
	if dir > 0 && dir < uint64(len(h.dirs)) {
		name = joinPath(h.dirs[dir], name)
	} else if dir == 0 && h.version >= 5 && len(h.dirs) > 0 {
		name = joinPath(h.dirs[0], name)
	}
	if path.IsAbs(name) || dir == 0 && h.version >= 5 && len(h.dirs) > 0 {
		return name
	}
	return joinPath(h.compDir(), name)
}

func joinPath(dir, name string) string {
	if dir == "" || path.IsAbs(name) {
		return name
	}
	if dir[len(dir)-1] == '/' {
		return dir + name
	}
	return dir + "/" + name
}

// Content types of the entry formats (DWARF 5 section 6.2.4.1).
const (
	contentPath      = 1
	contentDirectory = 2
	contentMD5       = 5
)

type lineEntryFormat struct {
	content uint64
	form    form
}

// readEntryTables reads the directories and files of version 5, which both
// count from 0.
func (h *lineHeader) readEntryTables(r *reader) error {
	err := h.readEntries(r, func(name string, _ uint64, _ []byte) { h.dirs = append(h.dirs, name) })
	if err != nil {
		return err
	}
	return h.readEntries(r, func(name string, dir uint64, md5 []byte) {
		h.files = append(h.files, lineFile{h.join(name, dir), md5})
	})
}

func (h *lineHeader) readEntries(r *reader, add func(name string, dir uint64, md5 []byte)) error {
	formats := make([]lineEntryFormat, r.u8())
	for i := range formats {
		formats[i] = lineEntryFormat{r.uleb(), form(r.uleb())}
	}
	count := r.uleb()
	// each entry takes at least a byte, if it has any part at all
	if count > uint64(r.left()) || count > 0 && len(formats) == 0 {
		return h.bad(r.pos, fmt.Sprintf("file table with %d entries", count))
	}
	// the forms are read in the line program's own format
	u := &unit{src: h.unit.src, section: secLine, wide: h.wide, version: h.version, root: h.unit.root}
	for range count {
		var name string
		var dir uint64
		var md5 []byte
		for _, f := range formats {
			v := readForm(r, u, f.form, 0)
			switch f.content {
			case contentPath:
				s, err := v.str()
				if err != nil {
					return err
				}
				name = s
			case contentDirectory:
				dir = v.number
			case contentMD5:
				if f.form == formData16 {
					md5 = v.block
				}
			}
		}
		if r.bad {
			return h.bad(r.pos, "file table is cut off")
		}
		add(name, dir, md5)
	}
	return nil
}

// fileName returns the path of the file that an attribute's index names.
func (u *unit) fileName(index uint64) (string, error) {
	table, err := u.lines()
	if err != nil || table == nil {
		return "", err
	}
	files := table.header.files
	if index >= uint64(len(files)) {
		return "", table.header.bad(int(table.header.offset), fmt.Sprintf("no file has the index %d", index))
	}
	return files[index].path, nil
}
