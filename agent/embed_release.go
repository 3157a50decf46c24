//go:build embedagent

package agent

import (
	_ "embed"
	"strings"
)

// The two files that Export writes.
var (
	//go:embed prebuilt/libdiagnose.so
	broughtLibrary []byte
	//go:embed prebuilt/sources
	broughtSources string
)

var brought = prebuilt{broughtLibrary, strings.TrimSpace(broughtSources)}
