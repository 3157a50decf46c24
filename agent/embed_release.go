//go:build embedagent

package agent

import (
	_ "embed"
	"strings"
)

// The files that Export writes.
var (
	//go:embed prebuilt/libdiagnose.so
	broughtLibrary []byte
	//go:embed prebuilt/libdiagnose.so.sources
	broughtSources string
	//go:embed prebuilt/libdiagnose-record.so
	broughtRecordLibrary []byte
	//go:embed prebuilt/libdiagnose-record.so.sources
	broughtRecordSources string
)

var brought = map[string]*prebuilt{
	LibraryName:       {broughtLibrary, strings.TrimSpace(broughtSources)},
	RecordLibraryName: {broughtRecordLibrary, strings.TrimSpace(broughtRecordSources)},
}
