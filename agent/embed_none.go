//go:build !embedagent

package agent

// brought is what a release build brings along, by the library's name; a
// development build has nothing.
var brought map[string]*prebuilt
