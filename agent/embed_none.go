//go:build !embedagent

package agent

// brought is what a release build brings along; a development build has
// nothing.
var brought prebuilt
