package image

import "diagnose/image/object"

// DebugObject returns the file that holds the module's DWARF, which may be
// Object itself; nil when none was found. Its DWARF is not opened for that.
func (m *Module) DebugObject() *object.File {
	// Why there is none is Debug's to say.
	_ = m.findDebugFile()
	return m.debugFile
}
