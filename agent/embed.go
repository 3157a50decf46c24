package agent

import (
	"embed"
	"io/fs"
)

//go:embed src/*.c src/*.h src/*.map src/heap src/engine src/hunt src/wrap
var embedded embed.FS

// Sources is the libraries' source: C files, assembly, headers and the version
// maps.
func Sources() fs.FS {
	dir, err := fs.Sub(embedded, "src")
	if err != nil {
		panic(err) // "src" is a valid path
	}
	return dir
}

// prebuilt is a library that was built before, and the digest of the sources
// and flags it was built from.
type prebuilt struct {
	library []byte
	sources string
}
