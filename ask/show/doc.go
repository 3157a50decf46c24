// Package show writes the answers of package ask: as tables for a terminal, and as a page with a timeline.
package show
