package image

import "diagnose/image/object"

// DebugObject returns the file that holds the module's DWARF, which may be
// Object itself; nil when none was found. It does not open the DWARF.
func (m *Module) DebugObject() *object.File {
	// Debug returns the error.
	_ = m.findDebugFile()
	return m.file().debugFile
}
